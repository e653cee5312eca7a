"""How a target is found and imported, and what is said before the run if that fails: through the command."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keval.plugin import PreflightError
from keval_python.target import load_target
from tests.conftest import Outcome, Project

CONFIG = """
    dataset: {path: questions.jsonl}
    agents:
      mine:
        type: python
        target: TARGET
    metrics: [basic/contains]
"""
PLACE = "error: eval.yaml:3:3: "
AT_TARGET = "error: eval.yaml:5:13: "
IMPORT = "cannot be imported; correct it, or install what it imports: "


@pytest.fixture
def run(project: Project) -> Callable[..., Outcome]:
    """Run a config whose agent has this target, in a folder with these files."""

    def run(target: str, config: str = CONFIG, **files: str) -> Outcome:
        project.write(
            eval_yaml=config.replace("TARGET", target),
            questions_jsonl='{"id": "q1", "question": "What is 2 + 3?", "answer": "5"}\n',
            **files,
        )
        return project.keval("run", "eval.yaml")

    return run


@pytest.mark.parametrize(
    ("target", "place", "told"),
    [
        ("my_agent.py", AT_TARGET, "'target' must be FILE.py:FUNCTION or PACKAGE.MODULE:FUNCTION"),
        ("'my_agent.py:'", AT_TARGET, "'target' must be FILE.py:FUNCTION or PACKAGE.MODULE:FUNCTION"),
        ("agents/mine.py:answer", AT_TARGET, "agents/mine.py does not; it is relative to the config"),
        ("nowhere.mine:answer", PLACE, f"{IMPORT}ModuleNotFoundError: No module named 'nowhere'"),
        (
            "broken.py:answer",
            PLACE,
            f"the target broken.py {IMPORT}ModuleNotFoundError: No module",
        ),
        (
            "wrong.py:answer",
            PLACE,
            f"the target wrong.py {IMPORT}SyntaxError: expected ':'",
        ),
        ("mine.py:anser", PLACE, "the target mine.py has no function 'anser'; did you mean 'answer'?"),
        ("mine.py:NAME", PLACE, "the target mine.py has something else than a function as 'NAME'; functions: answer"),
        ("mine.py:two", PLACE, "two(a, b) of mine.py does not take what keval gives it; write two(question), two("),
        ("mine.py:named", PLACE, "named(question, *, key) of mine.py does not take what keval gives it"),
        (
            "mine.py:sampled",
            PLACE,
            "sampled(sample: keval.records.trial.Sample) of mine.py does not take what keval gives it",
        ),
    ],
)
def test_a_target_that_cannot_be_used_is_an_error_at_its_place(
    run: Any, project: Project, target: str, place: str, told: str
) -> None:
    outcome = run(
        target,
        broken_py="import no_such_package\n",
        wrong_py="def answer(question)\n",
        mine_py="""
            from keval import Sample
            NAME = "x"
            def answer(question): ...
            def two(a, b): ...
            def named(question, *, key): ...
            def sampled(sample: Sample): ...
        """,
    )

    assert (2, [], True) == (outcome.code, [*project.root.glob("results/*/*/trials.jsonl")], told in outcome.stderr)
    assert outcome.stderr.startswith(place), outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_a_model_for_a_function_that_takes_no_context_is_an_error(run: Any) -> None:
    config = CONFIG.replace("target: TARGET", "target: TARGET\n        model: simulated/any")

    outcome = run("mine.py:answer", config, mine_py="def answer(question): ...\n")

    assert (2, True) == (outcome.code, "answer() of mine.py takes no Context, which has the model" in outcome.stderr)


@pytest.mark.slow
def test_servers_for_a_function_that_takes_none_are_an_error_before_the_run(run: Any, project: Project) -> None:
    config = CONFIG + "    contexts: {weather: {}}\n    conditions: {with: {contexts: [weather]}}\n"

    outcome = run("mine.py:answer", config, mine_py="def answer(question): ...\n")

    problem = "condition 'with' has MCP servers, and 'mine' can have none: answer() of mine.py takes none;"
    assert (2, True) == (outcome.code, outcome.stderr.startswith(f"{PLACE}{problem}")), outcome.stderr


def test_a_failure_keeps_what_the_function_raised(run: Any, project: Project) -> None:
    outcome = run("mine.py:answer", mine_py="def answer(question):\n    raise LookupError('no such city')\n")

    failure = project.lines("trials.jsonl")[0]["failure"]
    assert (3, "agent", "target_failed", None) == (
        outcome.code,
        failure["stage"],
        failure["kind"],
        failure["traceback"],
    )
    assert "answer() of mine.py raised LookupError: no such city" in failure["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "function", ["def answer(question): time.sleep(600)", "async def answer(question): await asyncio.sleep(600)"]
)
def test_a_function_that_hangs_is_late_and_keval_ends(project: Project, function: str) -> None:
    hurry = "execution: {timeout_seconds: 0.5, retry: {max_attempts: 1}}"
    project.write(
        eval_yaml=CONFIG.replace("TARGET", "mine.py:answer") + f"    {hurry}\n",
        questions_jsonl='{"id": "q1", "question": "What is 2 + 3?", "answer": "5"}\n',
        mine_py=f"import asyncio, time\n{function}\n",
    )

    outcome = project.fork("run", "eval.yaml", timeout=60)

    assert (3, "timeout") == (outcome.code, project.lines("trials.jsonl")[0]["failure"]["kind"])


def test_a_module_of_the_configs_folder_can_be_the_target(run: Any, project: Project) -> None:
    (project.root / "kit").mkdir()
    (project.root / "kit" / "mine.py").write_text("def answer(question): return 'It is 5.'\n", encoding="utf-8")

    outcome = run("kit.mine:answer")

    assert (0, "It is 5.") == (outcome.code, project.lines("trials.jsonl")[0]["output"])


def test_files_of_one_name_and_their_neighbours_are_told_apart_and_read_anew(tmp_path: Path) -> None:
    def answers() -> list[str]:
        targets = [load_target(tmp_path / name / "mine.py:answer") for name in ("one", "two")]
        return [target.function("x") for target in targets]

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text("import near\ndef answer(question): return near.NAME\n", "utf-8")
        (tmp_path / name / "near.py").write_text(f"NAME = {name!r}\n", "utf-8")
    first = answers()
    (tmp_path / "one" / "near.py").write_text("NAME = 'changed'\n", "utf-8")

    assert (["one", "two"], ["changed", "two"]) == (first, answers())


def test_what_a_target_imports_from_elsewhere_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import colorsys\ndef answer(question): ...\n", encoding="utf-8")
    load_target(tmp_path / "mine.py:answer")
    before = sys.modules["colorsys"]

    load_target(tmp_path / "mine.py:answer")

    assert before is sys.modules["colorsys"]


def test_a_function_may_import_its_neighbours_when_it_is_called_and_they_hide_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def answer(question):\n    import later\n    return later.NAME\n", "utf-8")
    (tmp_path / "later.py").write_text("NAME = 'later'\n", "utf-8")
    before = [*sys.path]

    target = load_target(tmp_path / "mine.py:answer")

    assert ("later", [*before, str(tmp_path)]) == (target.function("x"), sys.path)


def test_another_thread_that_imports_meanwhile_misses_no_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def answer(question): ...\n", encoding="utf-8")
    walked = sys.path  # what an import of another thread goes through
    before = [*walked]

    load_target(tmp_path / "mine.py:answer")

    assert before == walked


def test_a_target_may_begin_an_event_loop_of_its_own_and_define_records(tmp_path: Path, runner: Any) -> None:
    (tmp_path / "mine.py").write_text(
        "import asyncio\nfrom dataclasses import dataclass\n@dataclass\nclass Note:\n    text: str\n"
        "async def read(): return Note('ready')\nNOTE = asyncio.run(read())\ndef answer(question): return NOTE.text\n",
        encoding="utf-8",
    )
    from keval import Sample
    from keval.plugin import Context
    from keval_python import Python

    transcript = runner.run(Python(target=tmp_path / "mine.py:answer").run(Sample("q", "One?"), Context()))

    assert "ready" == transcript.output


def test_a_target_that_ends_the_program_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import sys\nsys.exit('no key')\n", encoding="utf-8")

    with pytest.raises(PreflightError, match=r"the target mine\.py cannot be imported; .*: SystemExit: no key"):
        load_target(tmp_path / "mine.py:answer")


def test_loopback_needs_no_proxy_whatever_client_a_function_uses(
    run: Callable[..., Outcome], project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, {"HTTP_PROXY": "http://127.0.0.1:9"}.get(name, ""))
    told = "import os\n\n\ndef answer(question):\n    return os.environ['NO_PROXY']\n"

    outcome = run("told.py:answer", told_py=told)

    (trial,) = project.lines("trials.jsonl")
    assert (0, "127.0.0.1,localhost,::1") == (outcome.code, trial["output"])
