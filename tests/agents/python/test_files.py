"""Metrics, judges, rubrics and hooks in files of the user's, through the commands."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import Project

CHECKS = """
    import asyncio
    import attrs
    import helper
    from keval import Rubric, Scale, Score, Trial

    def brevity(trial):
        '''Score short answers.'''
        return len(trial.output) < 20

    async def same(output: str, answer: str) -> float:
        await asyncio.sleep(0)
        return float(answer in output)

    def words(output, longest=3):
        return Score(len(output.split()), "counted")

    words.scale, words.blocks = Scale(0, 9), True

    async def broken(trial: Trial) -> float:
        return {}["x"]

    @attrs.frozen
    class AtMost:
        '''Score 1 for at most so many `words`.'''
        words: int = 5
        def score(self, trial):
            return len(trial.output.split()) <= self.words

    polite = Rubric("named otherwise", "How polite is it?", {1: "rude", 5: "polite"})

    @attrs.frozen
    class Mine:
        lenient: bool = False
        async def grade(self, trial, rubrics, context):
            return {rubric.name: Score(5 if self.lenient else 1) for rubric in rubrics}

    def two(output, expected): ...
    def named(*, key): ...
"""
HOOKS = """
    from keval.plugin import hookimpl

    @hookimpl
    def keval_run_finished(directory, summary):
        (directory / "told.txt").write_text("finished", encoding="utf-8")
"""
CONFIG = """
    dataset: {path: questions.jsonl}
    agents:
      mine: {type: python, target: my_agent.py:answer}
    metrics:
      - checks.py:brevity
      - checks.py:same
      - checks.py:words
      - checks.py:broken
      - checks.py:AtMost: {words: 2}
    judge: {type: checks.py:Mine, lenient: true}
    rubrics: [checks.py:polite]
    plugins: [hooks.py]
"""
QUESTIONS = """
    {"id": "q1", "question": "What is 2 + 3?", "answer": "5"}
    {"id": "q2", "question": "What is 1 + 4?"}
"""


@pytest.fixture
def folder(project: Project) -> Project:
    (project.root / "sub").mkdir()
    project.write(
        **{
            "sub/eval_yaml": CONFIG,
            "sub/questions_jsonl": QUESTIONS,
            "sub/checks_py": CHECKS,
            "sub/helper_py": "",
            "sub/hooks_py": HOOKS,
            "sub/my_agent_py": "def answer(question): return 'It is 5.'\n",
        }
    )
    return project


@pytest.mark.parametrize("executor", ["local", "double/apart"])
def test_metrics_a_judge_a_rubric_and_hooks_come_from_files(folder: Project, executor: str) -> None:
    outcome = folder.keval("run", "sub/eval.yaml", "-j", "2", "--executor", executor)

    assert 3 == outcome.code, outcome.stderr  # as `broken` fails
    (run,) = folder.root.glob("results/*/*")
    scores = [json.loads(line) for line in (run / "scores.jsonl").read_text(encoding="utf-8").splitlines()]
    found = {each["metric"]: each["value"] for each in scores if each["sample"] == "q1"}
    assert found == {"brevity": 1, "same": 1, "words": 3, "broken": None, "AtMost": 0, "polite": 5}
    lacking = {each["metric"]: each["reason"] for each in scores if each["sample"] == "q2" and each["value"] is None}
    assert "the sample has no answer" == lacking["same"]
    assert lacking["broken"].startswith("KeyError: broken() of checks.py: 'x'\n  File "), lacking
    assert 'checks.py", line 20, in broken' in lacking["broken"]
    manifest: dict[str, Any] = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    assert [*CONFIG_METRICS, {"checks.py:AtMost": {"words": 2}}] == manifest["config"]["metrics"]
    assert ["hooks.py"] == manifest["config"]["plugins"]
    assert [9] == [entry["scale"]["high"] for entry in manifest["scorers"] if entry["metric"] == "words"]
    assert "finished" == (run / "told.txt").read_text(encoding="utf-8")


CONFIG_METRICS = [f"checks.py:{name}" for name in ("brevity", "same", "words", "broken")]


def test_a_run_does_not_go_on_with_another_file_and_can_be_scored_by_it(folder: Project) -> None:
    folder.write(**{"sub/eval_yaml": CONFIG.replace("      - checks.py:broken\n", "")})
    assert 0 == folder.keval("run", "sub/eval.yaml").code
    again = folder.keval("resume", "latest", "--add-repetitions", "1")
    (folder.root / "sub/checks.py").write_text(
        (folder.root / "sub/checks.py").read_text(encoding="utf-8").replace("< 20", "> 20"), encoding="utf-8"
    )

    refused = folder.keval("resume", "latest", "--add-repetitions", "1")
    scored = folder.keval("score", "latest")

    assert (0, 2, 0) == (again.code, refused.code, scored.code), again.stderr + scored.stderr
    assert "plugin keval.metrics:brevity: was checks.py " in refused.stderr
    (run,) = folder.root.glob("results/*/*")
    scores = [json.loads(line) for line in (run / "scores.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [0] * 4 == [each["value"] for each in scores if each["metric"] == "brevity"]


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (
            "metrics: [nowhere.py:x]",
            "nowhere.py cannot be read: No such file or directory; it is relative to the config",
        ),
        ("metrics: [checks.py:brevty]", "5:11: checks.py has no 'brevty'; did you mean 'brevity'?"),
        ("metrics: [checks.py]", "5:11: checks.py is a file; name what in it is the metric: checks.py:NAME; it has br"),
        ("metrics: [checks.py:two]", "5:11: two(output, expected) of checks.py does not take what keval gives it; let"),
        ("metrics: [checks.py:named]", "5:11: named(*, key) of checks.py does not take what keval gives it"),
        ("metrics: [checks.py:Mine]", "checks.py:Mine of checks.py is no metric: it has no method score()"),
        ("metrics: [checks.py:AtMost: {word: 2}]", "5:30: unknown key 'word'; did you mean 'words'? (metric 'AtMost')"),
        ("metrics: [checks.py:same: {a: 1}]", "5:11: the metric 'same' takes no options"),
        ("metrics: [wrong.py:x]", "5:11: the file wrong.py cannot be imported; correct it, or install what it import"),
        ("metrics: [checks.py:same, ./checks.py:same]", "5:27: 'same' is listed twice; keep one"),
        (
            "plugins: [checks.py]",
            "5:11: checks.py has no hook; mark functions such as keval_run_finished with @hookimpl",
        ),
        ("judge: {type: checks.py:polite}", "checks.py:polite of checks.py is no judge: it has no method grade()"),
        ("rubrics: [checks.py:same]", "checks.py:same of checks.py is no Rubric"),
        ("agents: {a: {type: checks.py:same}}", "write `{type: python, target: checks.py:same}`"),
    ],
)
def test_what_a_file_lacks_is_an_error_at_its_line(project: Project, written: str, told: str) -> None:
    config = "dataset: {path: questions.jsonl}\nagents:\n  mine: {type: python, target: my_agent.py:answer}\n\n"
    config = config if not written.startswith("agents") else "dataset: {path: questions.jsonl}\n"
    project.write(
        eval_yaml=config + written + "\n",
        questions_jsonl=QUESTIONS,
        checks_py=CHECKS,
        helper_py="",
        wrong_py="x = undefined\n",
        my_agent_py="def answer(question): return 'x'\n",
    )

    outcome = project.keval("validate", "eval.yaml")

    assert (2, True) == (outcome.code, told in outcome.stderr), outcome.stderr
    if "wrong" in written:
        assert 'wrong.py", line 1, in <module>' in outcome.stderr


def test_keval_plugins_tells_the_options_of_what_is_in_a_file(folder: Project) -> None:
    told = {name: folder.keval("plugins", f"sub/checks.py:{name}").stdout for name in ("AtMost", "same", "polite")}

    assert "options, with defaults\n  words  5  whole number\n" in told["AtMost"]
    assert "example\n  metrics:\n  - sub/checks.py:AtMost:\n      words: 5\n" in told["AtMost"]
    assert told["same"].startswith("sub/checks.py:same: metric of checks.py ")
    assert "  rubrics:\n  - sub/checks.py:polite" in told["polite"]
    assert "  judges:\n    Mine:\n" in folder.keval("plugins", "sub/checks.py:Mine").stdout
    assert folder.keval("plugins", "sub/hooks.py").stdout.startswith("sub/hooks.py: hook plugin of hooks.py ")


def test_flags_name_files_too(folder: Project) -> None:
    outcome = folder.keval(
        *("run", "sub/eval.yaml", "--metric", "sub/checks.py:brevity", "-p", "no:hooks.py", "-p", "sub/hooks.py"),
        *("--judge", "Mine"),
    )

    assert 0 == outcome.code, outcome.stderr
    assert 1 == len([*folder.root.glob("results/*/*/told.txt")])
