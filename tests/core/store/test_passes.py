"""Scoring passes: what is cut short, changed in between, asked for in part or by two at once never mixes or is lost."""

from __future__ import annotations

import json
import re
import resource
import shlex
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import pytest

from keval import Rubric, Score, Trial
from keval.plan.plan import ResolvedPlugin, Scorers
from keval.plugin import Endpoint, JudgeContext, Model, TrialError
from keval.score.scoring import scorer_digests
from keval.seams.registry import Component
from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
judges: {reader: {key: "${KEY:-level}", journal: journal.txt}}
rubrics: [tone.yaml]
execution: {max_concurrent: 1, seed: 1}  # by which a is asked before b, and b before c
"""
TONE = "instructions: Is it polite?\nlevels: {1: No., 2: Hardly., 3: Fairly., 4: Yes., 5: Very.}\n"
LEVELS = [{"id": "a", "level": 1, "other": 5}, {"id": "b", "level": 2, "other": 4}, {"id": "c", "level": 3, "other": 3}]
KILLED = -signal.SIGKILL


@pytest.fixture
def judged(project: Project) -> Project:
    """A run that was judged: levels 1, 2 and 3."""
    questions = "".join(json.dumps({"question": "q", "answer": "g", **levels}) + "\n" for levels in LEVELS)
    project.write(eval_yaml=CONFIG, tone_yaml=TONE, questions_jsonl=questions)
    assert 0 == project.keval("run", "eval.yaml").code
    (project.root / "journal.txt").unlink()
    return project


def asked(project: Project) -> list[str]:
    """Which samples the judge was asked about, by which rubrics."""
    journal = project.root / "journal.txt"
    lines = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
    return [f"{line.split()[0]} {line.split()[4]}" for line in lines]


def arm(project: Project, judge: str = "reader", metric: str = "tone") -> dict[str, Any]:
    """What `keval report` says of one judge."""
    arms = project.keval("report", "latest", "--json").data["arms"]
    (found,) = (arm for arm in arms if (arm["judge"], arm["metric"]) == (judge, metric))
    return dict(found)


def test_judging_again_that_is_killed_leaves_the_report_as_it_was(judged: Project) -> None:
    killed = judged.fork("score", "latest", env={"KEY": "other", "READER_DIES_AFTER": "2"})

    cut_short = arm(judged)
    completed = judged.keval("score", "latest", env={"KEY": "other"})

    assert (KILLED, 2.0, 0) == (killed.code, cut_short["mean"], cut_short["missing"])
    assert (0, 4.0) == (completed.code, arm(judged)["mean"])
    assert ["a tone", "b tone", "c tone"] == asked(judged)


def test_a_pass_does_not_go_on_with_what_another_version_of_its_judge_said(judged: Project) -> None:
    judged.fork("score", "latest", env={"KEY": "other", "READER_DIES_AFTER": "2"})

    outcome = judged.keval("score", "latest", "--json")

    assert (0, 2.0) == (outcome.code, outcome.data["arms"][0]["mean"])
    assert ["a tone", "b tone", *("a tone", "b tone", "c tone")] == asked(judged)


def test_a_rubric_that_changed_in_between_is_another_one(judged: Project) -> None:
    judged.fork("score", "latest", env={"READER_DIES_AFTER": "2"})
    judged.write(tone_yaml=TONE.replace("polite", "kind"))

    outcome = judged.keval("score", "latest")

    assert (0, 5) == (outcome.code, len(asked(judged)))


def test_a_torn_line_of_a_pass_is_made_again(judged: Project) -> None:
    judged.fork("score", "latest", env={"READER_DIES_AFTER": "2"})
    (unfinished,) = judged.run_directory().glob(".scores.*.jsonl")
    unfinished.write_bytes(unfinished.read_bytes()[:-40])

    outcome = judged.keval("score", "latest")

    assert (0, 2.0) == (outcome.code, arm(judged)["mean"])
    assert ["a tone", "b tone", "b tone", "c tone"] == asked(judged)


def test_scores_of_a_pass_survive_its_being_killed_twice(judged: Project) -> None:
    both = ("score", "latest", "--judge", "reader", "--judge", "strict")
    judged.fork(*both, env={"READER_DIES_AFTER": "2", "READER_BREAKS_ON": "a"})
    again = judged.fork(*both, env={"READER_DIES_AFTER": "0"})

    outcome = judged.keval(*both)

    assert (KILLED, 0) == (again.code, outcome.code)
    # b was judged before; a failed, and c was never asked about.
    assert ["a tone", "b tone", "a tone", "c tone"] == asked(judged)
    assert [3, 3] == [arm(judged)["scored"], arm(judged, "strict")["scored"]]


def test_missing_asks_every_judge_only_about_what_it_lacks(judged: Project) -> None:
    judged.keval("score", "latest", env={"READER_BREAKS_ON": "b"})
    (judged.root / "journal.txt").unlink()

    outcome = judged.keval("score", "latest", "--judge", "reader", "--judge", "strict", "--missing")

    assert (0, ["b tone"]) == (outcome.code, asked(judged))
    assert [3, 3] == [arm(judged)["scored"], arm(judged, "strict")["scored"]]


def test_missing_asks_by_the_rubric_that_is_new_alone(judged: Project) -> None:
    judged.write(eval_yaml=CONFIG)
    manifest = judged.read("manifest.json")
    manifest["config"]["rubrics"].append("completeness")
    (judged.run_directory() / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")

    outcome = judged.keval("score", "latest", "--missing")

    assert (0, ["a completeness", "b completeness", "c completeness"]) == (outcome.code, asked(judged))
    assert (2.0, 2.0) == (arm(judged)["mean"], arm(judged, metric="completeness")["mean"])


def test_missing_holds_scores_of_another_version_of_a_judge_for_none(judged: Project) -> None:
    outcome = judged.keval("score", "latest", "--missing", env={"KEY": "other"})

    assert (0, 3, 4.0) == (outcome.code, len(asked(judged)), arm(judged)["mean"])
    assert 3 == len(judged.lines("scores.jsonl"))


def test_more_repetitions_of_a_judge_are_added_and_fewer_taken_away(judged: Project) -> None:
    judged.keval("score", "latest", "--judge-repetitions", "3", "--missing")
    more = (len(asked(judged)), arm(judged)["scored"], len(judged.lines("scores.jsonl")))

    judged.keval("score", "latest", "--judge-repetitions", "1", "--missing")

    assert (6, 9, 9) == more
    assert (6, 3, 3) == (len(asked(judged)), arm(judged)["scored"], len(judged.lines("scores.jsonl")))


def test_a_pass_asks_every_judge_as_often_as_the_one_before(judged: Project) -> None:
    judged.keval("score", "latest", "--judge-repetitions", "3", env={"READER_BREAKS_ON": "b"})
    (judged.root / "journal.txt").unlink()

    outcome = judged.keval("score", "latest", "--judge", "reader", "--judge", "strict", "--missing")

    assert (0, ["b tone"] * 3) == (outcome.code, asked(judged))
    assert [9, 3] == [arm(judged)["scored"], arm(judged, "strict")["scored"]]


def test_a_judging_that_was_cut_short_goes_on_though_another_scorer_came_between(project: Project) -> None:
    questions = "".join(json.dumps({"question": "q", "answer": "g", **levels}) + "\n" for levels in LEVELS)
    project.write(eval_yaml=CONFIG, tone_yaml=TONE, questions_jsonl=questions)
    project.fork("run", "eval.yaml", env={"READER_DIES_AFTER": "2"})
    project.keval("score", "latest", "--metric", "double/length")
    between = arm(project)

    outcome = project.keval("score", "latest", "--judge", "reader")

    assert (0, ["a tone", "b tone", "c tone"]) == (outcome.code, asked(project))
    assert [(2, 1), (3, 0)] == [(found["scored"], found["missing"]) for found in (between, arm(project))]


def test_what_two_passes_scored_stands_once(judged: Project) -> None:
    judged.keval("score", "latest", env={"READER_BREAKS_ON": "abc"})
    both = ("score", "latest", "--judge", "reader", "--judge", "strict", "--missing")
    judged.fork(*both, env={"READER_DIES_AFTER": "2"})
    judged.keval("score", "latest", "--judge", "reader", "--missing")

    outcome = judged.keval(*both)

    assert (0, 6) == (outcome.code, len(judged.lines("scores.jsonl")))
    assert [3, 3] == [arm(judged)["scored"], arm(judged, "strict")["scored"]]


def test_what_only_agents_need_from_the_environment_need_not_be_there_to_score(project: Project) -> None:
    questions = json.dumps({"question": "q", "answer": "g", "level": 2}) + "\n"
    config = CONFIG.replace("{scripted: {}}", '{one: {type: "${AGENT}", suffix: "${SUFFIX}"}}')
    project.write(eval_yaml=config, tone_yaml=TONE, questions_jsonl=questions)
    project.keval("run", "eval.yaml", env={"AGENT": "scripted", "SUFFIX": "!"})

    outcome = project.keval("score", "latest")

    assert (0, "") == (
        outcome.code,
        outcome.stderr.replace(f"{project.run_directory().relative_to(project.root)}\n", ""),
    )


def test_what_a_file_of_a_scorer_says_is_part_of_what_it_is(project: Project) -> None:
    config = (
        "dataset: {path: questions.jsonl}\nagents: {scripted: {}}\nmetrics: [basic/json_schema: {path: shape.json}]\n"
    )
    project.write(
        eval_yaml=config,
        questions_jsonl=json.dumps({"id": "a", "question": "q", "says": "{}"}) + "\n",
        shape_json=json.dumps({"type": "object"}),
    )
    project.keval("run", "eval.yaml")
    project.write(shape_json=json.dumps({"type": "array"}))

    outcome = project.keval("score", "latest", "--missing", "--json")

    assert (0, [0.0]) == (outcome.code, [found["mean"] for found in outcome.data["arms"]])


@pytest.mark.parametrize("flags", [(), ("--missing",), ("--judge", "strict")])
def test_a_damaged_line_is_told_at_its_place_and_nothing_is_scored(judged: Project, flags: tuple[str, ...]) -> None:
    scores = judged.run_directory() / "scores.jsonl"
    scores.write_text(scores.read_text(encoding="utf-8") + "{}\n", encoding="utf-8")

    outcome = judged.keval("score", "latest", *flags)

    assert 2 == outcome.code
    where = scores.relative_to(judged.root)
    assert outcome.stderr.startswith(f"error: {where}:4: this line is damaged: ")


def test_what_judging_took_counts_every_judgement_that_stands_once(judged: Project) -> None:
    manifest = judged.read("manifest.json")
    manifest["config"]["rubrics"].append("completeness")
    (judged.run_directory() / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    judged.keval("score", "latest", "--missing")
    alone = judged.keval("report", "latest", "--json").data["judging"]

    judged.keval("score", "latest", "--judge", "reader")

    together = judged.keval("report", "latest", "--json").data["judging"]
    took = [
        (entry["judgements"], entry["model_calls"], entry["usage"]["input_tokens"]) for entry in (*alone, *together)
    ]
    # One rubric in one call and the other in another; then both in one.
    assert [(6, 6, 60), (3, 3, 30)] == took


@pytest.mark.parametrize("added", [("--judge", "panel/one"), ("--judge", "panel")], ids=["a plugin", "a vendor's"])
def test_a_judge_whose_name_has_a_slash_can_be_asked_again(judged: Project, added: tuple[str, ...]) -> None:
    judged.keval("score", "latest", *added)

    again = judged.keval("score", "latest", "--json")

    assert 0 == again.code
    judges = {found["judge"] for found in again.data["arms"]}
    assert {"reader", "panel.one", *(["panel.two"] if added[-1] == "panel" else [])} == judges


def test_a_run_with_an_agent_whose_name_has_a_slash_can_be_scored_again(project: Project) -> None:
    questions = json.dumps({"question": "q", "answer": "g", "level": 2}) + "\n"
    project.write(eval_yaml=CONFIG, tone_yaml=TONE, questions_jsonl=questions)
    project.keval("run", "eval.yaml", "--agent", "stage/actor")

    again = project.keval("score", "latest", "--missing", "--json")

    assert (0, ["stage.actor"]) == (again.code, [found["agent"] for found in again.data["arms"]])


def test_the_command_that_completes_a_scoring_can_be_pasted(project: Project) -> None:
    questions = "".join(json.dumps({"question": "q", "answer": "g", **levels}) + "\n" for levels in LEVELS)
    config = CONFIG.replace("{reader: {key", "{my judge: {type: reader, key")
    project.write(eval_yaml=config, tone_yaml=TONE, questions_jsonl=questions)
    project.fork("run", "eval.yaml", "-o", "my runs", env={"READER_DIES_AFTER": "2"})

    report = project.keval("report", "latest", "-o", "my runs")

    (command,) = re.findall(r"keval (score .*--missing)", " ".join(report.stdout.split()))
    assert (3, 0) == (report.code, project.keval(*shlex.split(command)).code)


@pytest.mark.parametrize(
    "changed",
    [{"digest": "0123456789ab"}, {"judgement": {"repetition": 2}}],
    ids=["by another version of the judge", "by a repetition that is none"],
)
def test_a_score_that_the_manifest_does_not_tell_of_counts_for_nothing(
    judged: Project, changed: dict[str, Any]
) -> None:
    first, *others = judged.lines("scores.jsonl")
    if "judgement" in changed:
        changed = {"judgement": {**first["judgement"], **changed["judgement"]}}
    lines = [{**first, **changed, "value": 5.0}, *others]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (judged.run_directory() / "scores.jsonl").write_text(text, encoding="utf-8")

    found = arm(judged)

    assert (2.5, 2, 1) == (found["mean"], found["scored"], found["missing"])


def test_where_a_judge_is_asked_is_part_of_what_it_is_and_a_simulated_ones_port_and_a_module_are_not() -> None:
    def digest(url: str, *, simulated: bool, target: str = "x:One") -> str:
        model = Model("openai", "m", Endpoint("m", {"openai-chat": url}, "k", simulated=simulated))
        judge = AskedJudge(model)
        planned = ResolvedPlugin("one", Component("keval.judges", "one", target, "x", "1"), judge)
        rubric = Rubric("tone", "Is it polite?", {1: "No.", 2: "Yes."})
        (found,) = scorer_digests(Scorers(judges=(planned,), rubrics=(rubric,)), {}, 0).values()
        return found

    real = {digest(f"http://{host}/v1", simulated=False) for host in ("one", "two")}
    simulated = {digest(f"http://127.0.0.1:{port}/v1", simulated=True) for port in (1, 2)}

    moved = digest("http://one/v1", simulated=False, target="x.judges:One")

    assert (2, 1, True) == (len(real), len(simulated), moved in real)


@attrs.frozen
class AskedJudge:
    """A judge with a model."""

    model: Model

    async def grade(
        self, trial: Trial, rubrics: Sequence[Rubric], context: JudgeContext
    ) -> Mapping[str, Score | TrialError]:
        return {}


def test_a_disk_that_fills_up_while_scoring_is_explained_and_loses_nothing(judged: Project) -> None:
    size = (judged.run_directory() / "scores.jsonl").stat().st_size
    before = judged.lines("scores.jsonl")

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))

    outcome = spawn_limited(judged, limit)

    assert (2, before) == (outcome[0], judged.lines("scores.jsonl"))
    assert "scores.jsonl cannot be written" in outcome[1]


def spawn_limited(project: Project, limit: Callable[[], None]) -> tuple[int, str]:
    """Score again in a process of its own, under a limit of the operating system."""
    import os
    import subprocess
    import sys

    from tests.conftest import ON_PATH

    done = subprocess.run(
        [sys.executable, "-m", "keval", "score", "latest"],
        cwd=project.root,
        # What Python compiles it would write under the same limit, cut off.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(ON_PATH), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        preexec_fn=limit,
        timeout=60,
    )
    return done.returncode, done.stderr


def test_metrics_are_scored_again_though_a_rubrics_file_is_gone(judged: Project) -> None:
    (judged.root / "tone.yaml").unlink()

    outcome = judged.keval("score", "latest", "--metric", "double/length")

    assert (0, 2.0) == (outcome.code, arm(judged)["mean"])
    (rubric,) = judged.read("manifest.json")["rubrics"].values()
    assert ("tone", "Is it polite?") == (rubric["name"], rubric["instructions"])


def test_judges_by_two_rubrics_of_one_name_are_not_held_against_each_other(judged: Project) -> None:
    judged.write(tone_yaml=TONE.replace("polite", "kind"))

    outcome = judged.keval("score", "latest", "--judge", "strict", "--json")

    assert [] == [pair for rubric in outcome.data["agreement"] for pair in rubric["pairs"]]
    told = [rubric["instructions"] for rubric in judged.read("manifest.json")["rubrics"].values()]
    assert ["Is it polite?", "Is it kind?"] == told
    assert [2.0, 2.0] == [arm(judged)["mean"], arm(judged, "strict")["mean"]]


def test_repetitions_of_an_agent_count_alike_though_their_judge_failed_at_some(judged: Project) -> None:
    scores = judged.run_directory() / "scores.jsonl"
    lines = judged.lines("scores.jsonl")
    manifest = judged.read("manifest.json")
    (entry,) = manifest["scorers"]
    entry["repetitions"] = 3
    first = {**lines[0], "sample": "a"}
    values = [("t1", 1, 5.0), ("t1", 2, 5.0), ("t1", 3, 5.0), ("t2", 1, 1.0)]
    made = [
        {**first, "trial": trial, "value": value, "judgement": {**first["judgement"], "repetition": repetition}}
        for trial, repetition, value in values
    ]
    scores.write_text("".join(json.dumps(line) + "\n" for line in made), encoding="utf-8")
    (judged.run_directory() / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")

    assert 3.0 == arm(judged)["mean"]


@pytest.mark.usefixtures("simulated_here")
def test_a_real_judge_in_place_of_a_simulated_one_is_not_called_simulated(project: Project) -> None:
    config = CONFIG.replace('reader: {key: "${KEY:-level}", journal: journal.txt}', "openai: {model: simulated/judge}")
    question = json.dumps({"id": "a", "question": "q", "answer": "g", "says": "g"})
    config = config.replace("max_concurrent: 1", "retry: {max_attempts: 1, max_request_attempts: 1}")
    project.write(eval_yaml=config, tone_yaml=TONE, questions_jsonl=question + "\n")
    project.keval("run", "eval.yaml")
    before = project.read("manifest.json")["simulated"]

    nobody = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    retry = ("score", "latest", "--model", "openai=openai/gpt-4o")
    project.keval(*retry, env=nobody)

    manifest = project.read("manifest.json")
    assert (["simulated/judge"], []) == (before, manifest["simulated"])
    assert {"model": "openai/gpt-4o"} == manifest["judges"]["openai"]["options"]


def test_claims_that_a_judge_does_not_tell_of_are_unknown(judged: Project) -> None:
    outcome = judged.keval("score", "latest", "--judge", "strict", "--json")

    claims = {line["judge"]: line["judgement"]["unverified_claims"] for line in judged.lines("scores.jsonl")}
    told = {entry["judge"]: (entry["judgements"], entry["told"]) for entry in outcome.data["judging"]}
    assert {"reader": [], "strict": None} == claims
    assert {"reader": (3, 3), "strict": (3, 0)} == told


def test_the_judge_that_a_models_variable_means_is_chosen(judged: Project) -> None:
    judges = 'judges: {one: {model: "${JUDGE_MODEL}"}}\n'
    judged.write(eval_yaml=CONFIG.replace(CONFIG.splitlines()[3] + "\n", judges))
    dry = ("run", "eval.yaml", "--dry-run", "--json")

    by_variable = judged.keval(*dry, env={"JUDGE_MODEL": "anthropic/claude-x"}).data["judges"]
    by_flag = judged.keval(*dry, "--model", "one=openai/gpt", env={"JUDGE_MODEL": "anthropic/claude-x"}).data["judges"]

    assert {"one": {"type": "anthropic", "model": "anthropic/claude-x"}} == by_variable
    assert {"one": {"type": "openai", "model": "openai/gpt"}} == by_flag
