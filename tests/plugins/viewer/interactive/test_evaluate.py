"""Evaluations from Python: one call, in a script, in a notebook's loop, and in tests."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import keval
from keval.plugin import ConfigError, LiveEvent, hookimpl
from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents:
  logged: {type: recorded, path: answers.jsonl}
conditions: {baseline: {}, other: {}}
metrics:
  - basic/contains: {any_of: [Oslo]}
gates:
  - "basic/contains >= 0.4"
"""
QUESTIONS = "".join(json.dumps({"id": f"q{n}", "question": f"Where, {n}?"}) + "\n" for n in range(4))


def answers(texts: list[str]) -> str:
    lines = [
        {"id": f"q{n}", "condition": condition, "response": text if condition == "baseline" else "In Oslo."}
        for n, text in enumerate(texts)
        for condition in ("baseline", "other")
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.fixture
def written(project: Project) -> Project:
    project.write(
        eval_yaml=CONFIG, questions_jsonl=QUESTIONS, answers_jsonl=answers(["In Oslo.", "No.", "Oslo", "Paris"])
    )
    return project


def test_a_script_gets_the_run_that_the_command_would_make(written: Project) -> None:
    run = keval.evaluate("eval.yaml", limit=3, conditions=["baseline"], gates=["basic/contains >= 0.9"])
    told = written.keval("run", "eval.yaml", "--limit", "3", "--condition", "baseline", "-q")

    summary = run.written_summary()
    assert summary is not None
    assert [("basic/contains >= 0.4", "held"), ("basic/contains >= 0.9", "failed")] == [
        (gate.written, gate.verdict) for gate in summary.gates
    ]
    again = keval.open_run("latest").written_summary()
    assert (0, summary.arms) == (told.code, again and again.arms)
    assert run.path.parent == Path("results/eval")


def test_a_notebook_calls_it_where_a_loop_runs_and_passes_a_mapping(written: Project) -> None:
    class Watcher:
        def __init__(self) -> None:
            self.finished: list[str] = []

        @hookimpl
        def keval_trial_finished(self, trial: keval.Trial) -> None:
            self.finished.append(trial.id)

        @hookimpl
        def keval_live_event(self, event: LiveEvent) -> None:
            """Nothing of a recorded answer happens live."""

    watcher = Watcher()
    config = {
        "name": "inline",
        "dataset": {"path": "questions.jsonl"},
        "agents": {"logged": {"type": "recorded", "path": "answers.jsonl"}},
        "conditions": {"baseline": {}, "other": {}},
        "metrics": [{"basic/contains": {"any_of": ["Oslo"]}}],
    }

    async def cell() -> keval.Run:
        return keval.evaluate(config, conditions=["baseline"], samples=["q0", "q2"], hooks=[watcher])

    run = asyncio.run(cell())

    assert ["logged/baseline/q0/1", "logged/baseline/q2/1"] == sorted(watcher.finished)
    assert "inline" == run.manifest.evaluation
    with pytest.raises(ConfigError, match=r"--agent loged: no agent .*\nthe config: no context named 'none'"):
        keval.evaluate({**config, "conditions": {"baseline": {"contexts": ["none"]}}}, agents=["loged"])


TESTS = """
import pytest


def test_holds(keval):
    run = keval.check("eval.yaml", conditions=["other"])
    assert run.manifest.trials == 4


def test_fails(keval):
    keval.check("eval.yaml", gates=["low(basic/contains) >= 0.75", "other/basic/contains >= +0.99"])


def test_has_no_gates(keval):
    config = {
        "name": "inline",
        "dataset": {"path": "questions.jsonl"},
        "agents": {"logged": {"type": "recorded", "path": "answers.jsonl"}},
        "conditions": {"baseline": {}, "other": {}},
        "metrics": [{"basic/contains": {"any_of": ["Oslo"]}}],
    }
    keval.check(config)


def test_lacks_an_answer(keval):
    keval.check("lacking.yaml")


def test_has_an_error(keval):
    keval.check("eval.yaml", metrics=["basic/containz"])
"""


@pytest.mark.slow
def test_pytest_holds_a_config_to_each_of_its_gates(written: Project) -> None:
    written.write(
        test_gates_py=TESTS,
        lacking_yaml=CONFIG.replace("answers.jsonl", "less.jsonl"),
        less_jsonl=answers(["In Oslo.", "Oslo", "Oslo"]),
    )

    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "--rootdir", ".", "test_gates.py"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (1, "") == (told.returncode, told.stderr)
    assert "6 failed, 1 passed, 1 skipped, 5 subtests passed" in told.stdout
    undecided = "low(basic/contains) >= 0.75: undecided (1.00 [0.47, 1.00]; the threshold lies within the interval)"
    assert f"{undecided}\n" in told.stdout
    failed = dict(re.findall(r"^_+ (test_\w+(?: \[.*\])?) _+\n(.*)", told.stdout, re.MULTILINE))
    lacking = f"no_answer: {written.root.resolve()}/less.jsonl has no answer to 'q3' under 'baseline'"
    lost = failed["test_lacks_an_answer [all trials answered and scored]"].removesuffix(" --failed")
    assert lost.startswith("2 trials failed: keval show ")
    assert f"\nlogged baseline: 1 × agent: {lacking}\n" in told.stdout
    assert {
        "test_fails [other/basic/contains >= +0.99]": "other/basic/contains >= +0.99: failed (+0.50, low end -0.42)",
        "test_fails": "contains 1 failed subtest",
        "test_has_no_gates": "inline has no gates to hold; add `gates:`, or give gates=[…]",
        "test_lacks_an_answer [all trials answered and scored]": f"{lost} --failed",
        "test_lacks_an_answer": "contains 1 failed subtest",
        "test_has_an_error": "eval.yaml cannot be run: --metric basic/containz: no metric named 'basic/containz' is"
        " installed; did you mean 'basic/contains'?",
    } == failed
