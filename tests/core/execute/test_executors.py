"""Executors and workers: trials run elsewhere are the same trials, and only the driver writes to the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from keval import open_run
from tests.conftest import ON_PATH, Project

EXAMPLE = Path(__file__).parents[3] / "examples" / "weather"

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
conditions: {baseline: {}}
metrics: [double/length]
"""

# A worker is handed nothing but the manifest, and the samples with the facts that hooks added.
ELSEWHERE = """
import asyncio, json, sys
from keval import open_run
from keval_remote.crew.worker import open_worker

async def work(path):
    run = open_run(path)
    async with open_worker(run.manifest) as worker:
        lines = [(await worker.run(key, run.sample(key.sample))).line for key in run.known_trials]
    done = [run.read_trial(line) for line in lines]
    return {trial.id: [trial.output, [call.result for call in trial.transcript.tool_calls]] for trial in done}

print(json.dumps(asyncio.run(work(sys.argv[1]))))
"""


@pytest.mark.slow
def test_a_worker_in_another_process_runs_the_same_trials_from_the_manifest_alone(project: Project) -> None:
    arguments = ("--limit", "2", "--repetitions", "2", "--agent", "openai", "--metric", "weather/accuracy")
    ran = project.run(EXAMPLE / "weather.yaml", *arguments)
    assert 0 == ran.code, ran.stderr
    path = project.run_directory()

    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(path)],
        cwd="/",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(ON_PATH)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    here = {
        trial.id: [trial.output, [call.result for call in trial.transcript.tool_calls]]
        for trial in open_run(path).trials()
        if trial.transcript
    }
    assert 8 == len(here)
    assert here == json.loads(done.stdout)


@pytest.mark.parametrize("flag", [False, True], ids=["config", "flag"])
def test_an_executor_goes_by_its_name(project: Project, flag: bool) -> None:
    # By this seed a is asked before b, and b before c, if nobody turns that round.
    config = CONFIG + f"execution: {{seed: 1{'' if flag else ', executor: {type: double/backwards, note: bye}'}}}\n"
    questions = "".join(json.dumps({"id": name, "question": name}) + "\n" for name in "abc")
    project.write(eval_yaml=config, questions_jsonl=questions)

    outcome = project.keval("run", "eval.yaml", *(["--executor", "double/backwards"] if flag else []))

    assert 0 == outcome.code, outcome.stderr
    assert ["c", "b", "a"] == [trial["sample"] for trial in project.lines("trials.jsonl")]
    notes = {path.read_text(encoding="utf-8") for path in (project.run_directory() / "blobs").iterdir()}
    word = "ran" if flag else "bye"
    assert {f"{word} scripted/baseline/{name}/1" for name in "abc"} == notes
    assert "keval-doubles 1.0" == open_run().manifest.plugins["keval.executors:double/backwards"]


def test_a_variable_in_an_executors_options_is_kept_by_its_name(project: Project) -> None:
    config = CONFIG + 'execution: {executor: {type: "${EXECUTOR}", note: "${NOTE_TOKEN}"}}\n'
    project.write(eval_yaml=config, questions_jsonl='{"id": "a", "question": "a"}\n')
    variables = {"EXECUTOR": "double/backwards", "NOTE_TOKEN": "canary-77"}

    outcome = project.keval("run", "eval.yaml", env=variables)

    assert 0 == outcome.code, outcome.stderr
    (note,) = (project.run_directory() / "blobs").iterdir()
    assert note.read_text(encoding="utf-8").startswith("[secret] ")
    kept = project.read("manifest.json")["config"]["execution"]["executor"]
    assert {"type": "double/backwards", "note": "${NOTE_TOKEN}"} == kept


@pytest.mark.parametrize("section", ["execution: {executor: {type: double/backwards, ", "plugins: [{double/any: {"])
def test_a_secret_is_refused_in_the_options_of_any_plugin(project: Project, section: str) -> None:
    closing = "}" * section.count("{") + "]" * section.count("[")
    project.write(eval_yaml=f"{CONFIG}{section}token: abc{closing}\n", questions_jsonl='{"id": "a", "question": "a"}\n')

    outcome = project.keval("validate", "eval.yaml")

    assert (2, True) == (outcome.code, "write token: ${TOKEN} and export that" in outcome.stderr), outcome.stderr


@pytest.mark.parametrize(
    ("executor", "problem"),
    [
        ("lokal", "eval.yaml:5:13: no executor named 'lokal' is installed; did you mean 'local'?"),
        ("{type: double/backwards, nota: x}", "eval.yaml:5:48: unknown key 'nota'; did you mean 'note'?"),
        ("{note: x}", "eval.yaml:5:23: add `type:` with the name of an executor"),
    ],
)
def test_a_wrong_executor_is_told_at_its_place(project: Project, executor: str, problem: str) -> None:
    project.write(
        eval_yaml=f"{CONFIG}execution: {{executor: {executor}}}\n", questions_jsonl='{"id": "a", "question": "a"}\n'
    )

    outcome = project.keval("validate", "eval.yaml")

    assert (2, True) == (outcome.code, problem in outcome.stderr), outcome.stderr
