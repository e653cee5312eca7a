"""`setup:` and `cleanup:` of a run, its conditions and its trials, and `keval clean`, through the commands."""

from __future__ import annotations

import json
import signal

import pytest

from keval.plugin import PluginWarning
from tests.conftest import Project

SECTIONS = """
    setup:
      run: {command: "echo run $REALM $KEVAL_RUN >> log", env: [REALM]}
      condition: "echo condition $KEVAL_CONDITION >> log"
      trial: {command: "echo trial $KEVAL_SAMPLE $KEVAL_ATTEMPT >> log", conditions: [one]}
    cleanup:
      trial: {command: "echo end of trial $KEVAL_SAMPLE >> log", conditions: [one]}
      condition: "echo end of $KEVAL_CONDITION >> log"
      run: "echo end of run >> log"
"""
CONFIG = """
    dataset: {path: questions.jsonl}
    agents:
      mine: {type: python, target: my_agent.py:answer}
    conditions: {one: {}, two: {}}
    metrics: [basic/contains]
    execution: {max_concurrent: 1, retry: {max_attempts: 2, initial_backoff_seconds: 0}}
"""
AGENT = """
    import os, pathlib, threading

    def answer(question):
        with open("log", "a") as log:
            log.write("asked\\n")
        if pathlib.Path("kill").exists():
            os.kill(os.getpid(), int(pathlib.Path("kill").read_text()))
            threading.Event().wait(60)
        return "It is 5."
"""


def written(project: Project, sections: str = SECTIONS) -> Project:
    project.write(
        eval_yaml=CONFIG + sections,
        questions_jsonl='{"id": "q1", "question": "What is 2 + 3?", "answer": "5"}\n',
        my_agent_py=AGENT,
    )
    return project


def log(project: Project) -> list[str]:
    return (project.root / "log").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def env() -> dict[str, str]:
    return {"REALM": "a-realm"}


@pytest.mark.parametrize("executor", ["local", "double/apart"])
def test_commands_run_once_for_each_scope_in_their_order(project: Project, env: dict[str, str], executor: str) -> None:
    outcome = written(project).keval("run", "eval.yaml", "--executor", executor, env=env)
    (run,) = project.root.glob("results/*/*")
    again = project.keval("resume", "latest", env=env)

    assert (0, 0) == (outcome.code, again.code), outcome.stderr
    found = log(project)
    assert [f"run a-realm {run.name}", "condition one", "condition two"] == found[:3]
    assert ["end of two", "end of one", "end of run"] == found[-3:]
    of_one = found[found.index("trial q1 1") :][:3]
    assert ["trial q1 1", "asked", "end of trial q1"] == of_one
    assert 9 + 1 == len(found), found  # and the question under `two`
    assert "cleaned up: nothing" in project.keval("clean").stderr


def test_a_setup_that_fails_fails_the_trial_and_is_tried_again(project: Project) -> None:
    sections = """
    setup: {trial: {command: "echo for $KEVAL_SAMPLE with $TOKEN; test $KEVAL_ATTEMPT = 3", env: [TOKEN]}}
    cleanup: {trial: "echo end $KEVAL_ATTEMPT >> log"}
    """
    outcome = written(project, sections).keval("run", "eval.yaml", env={"TOKEN": "sk-0123456789"})

    assert 3 == outcome.code, outcome.stderr
    (path,) = project.root.glob("results/*/*/trials.jsonl")
    failures = [json.loads(line)["failure"] for line in path.read_text(encoding="utf-8").splitlines()]
    assert [("context", "hook_failed")] * 2 == [(each["stage"], each["kind"]) for each in failures]
    assert "the setup of the trial one" in failures[0]["message"] + failures[1]["message"]
    assert "ended with exit code 1; its output ends:\nfor q1 with $TOKEN" in failures[0]["message"]
    assert ["end 1", "end 2"] * 2 == log(project)


def test_a_run_that_cannot_be_set_up_ends_and_is_cleaned_up(project: Project) -> None:
    sections = """
    setup: {run: {command: "echo no cluster; sleep 60", timeout_seconds: 0.3}}
    cleanup: {run: "echo end >> log; test -e fine"}
    """
    written(project, sections)
    with pytest.warns(PluginWarning) as warned:
        outcome = project.keval("run", "eval.yaml")
    (run,) = project.root.glob("results/*/*")
    with pytest.warns(PluginWarning, match="the cleanup of the run ended with exit code 1"):
        failed = project.keval("clean")
    (project.root / "fine").touch()
    cleaned = project.keval("clean")

    told = (
        "the setup of the run did not end within 0.3 s; its output ends:\nno cluster\nno trial was run; `keval resume"
    )
    assert (2, True) == (outcome.code, told in outcome.stderr), outcome.stderr
    tried = f"the cleanup of the run ended with exit code 1\n`keval clean {run.relative_to(project.root)}` tries again"
    assert [tried] == [str(each.message) for each in warned]
    assert (2, True) == (failed.code, "error: not cleaned up: run" in failed.stderr), failed.stderr
    assert (0, True) == (cleaned.code, "cleaned up: run" in cleaned.stderr), cleaned.stderr
    assert ["end"] * 3 == log(project)


@pytest.mark.parametrize("how", ["resume", "clean"])
def test_what_a_killed_run_has_left_is_cleaned_up(project: Project, env: dict[str, str], how: str) -> None:
    written(project)
    (project.root / "kill").write_text("9", encoding="utf-8")
    killed = project.spawn("run", "eval.yaml", env=env)
    (project.root / "kill").unlink()
    before = len(log(project))

    outcome = project.keval(how, "latest", env=env)

    assert (-signal.SIGKILL, 0) == (killed.code, outcome.code), outcome.stderr
    after = log(project)[before:]
    left = ["end of two", "end of one", "end of run"]
    assert left == after[after.index("end of two") :][:3]
    if how == "clean":
        assert "cleaned up: run, condition one, condition two" in outcome.stderr
    else:
        assert left == after[-3:]
        assert 2 == after.count("end of run")


def test_a_run_that_is_interrupted_is_cleaned_up(project: Project, env: dict[str, str]) -> None:
    written(project)
    config = (project.root / "eval.yaml").read_text(encoding="utf-8")
    config = config.replace("execution: {", "execution: {grace_seconds: 0, ")
    (project.root / "eval.yaml").write_text(config, encoding="utf-8")
    (project.root / "kill").write_text(str(int(signal.SIGINT)), encoding="utf-8")

    outcome = project.spawn("run", "eval.yaml", env=env)

    assert 130 == outcome.code, outcome.stderr
    assert ["end of two", "end of one", "end of run"] == log(project)[-3:]
    assert log(project).count("trial q1 1") == log(project).count("end of trial q1")


@pytest.mark.parametrize(
    ("sections", "told"),
    [
        ("setup: {trial: {command: x, conditions: [ome]}}", "no condition named 'ome'; did you mean 'one'?"),
        ("cleanup: {run: {command: x, conditions: [one]}}", "a run is of all conditions; remove the key"),
        ("setup: {trial: {command: x, env: [NO_SUCH]}}", "the variable NO_SUCH is not set; set it, or remove it here"),
        ("setup: {trail: x}", "unknown key 'trail'; did you mean 'trial'?"),
        ("setup: {trial: {command: []}}", "expected a text, got a list"),
        ("setup: {trial: {command: ''}}", "Length of 'command' must be >= 1: 0"),
    ],
)
def test_what_is_wrong_is_an_error_at_its_place(project: Project, sections: str, told: str) -> None:
    outcome = written(project, f"    {sections}\n").keval("validate", "eval.yaml")

    assert (2, True) == (outcome.code, f"{told}" in outcome.stderr), outcome.stderr
    assert outcome.stderr.startswith("error: eval.yaml:7:")
