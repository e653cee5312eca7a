"""Trials are scored as they finish: what is scored when, that no trial waits for it, and that nothing changes by it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from keval_gateway import ChatReply, ChatRequest, ModelFault
from tests.conftest import INSTALLED, Project
from tests.end_to_end.servers.model import gateway

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
metrics: [double/length]
plugins: [double/diary]
execution: {max_concurrent: 4, timeout_seconds: 20, retry: {max_attempts: 1}}
"""
JUDGED = "judges: {reader: {journal: judged.txt}}\nrubrics: [completeness]\n"


def dataset(count: int, **last: object) -> str:
    """So many questions, the last one with a script."""
    questions: list[dict[str, Any]] = [
        {"id": f"q{n}", "question": f"How, {n}?", "answer": "So.", "level": 1 + n % 5} for n in range(count)
    ]
    questions[-1] |= last
    return "".join(json.dumps(question) + "\n" for question in questions)


def diary(project: Project) -> list[str]:
    """What happened to which question, in order."""
    lines = (project.root / "diary.txt").read_text(encoding="utf-8").splitlines()
    told = [line.split(maxsplit=2) for line in lines]
    return [f"{what} {trial.split('/')[2]}" for what, trial, *_ in told if what in ("finished", "scored")]


def judgements(project: Project) -> int:
    return len((project.root / "judged.txt").read_text(encoding="utf-8").splitlines())


def found(summary: dict[str, Any]) -> str:
    """What a summary says, but for its run's id and how long things took."""
    told = {key: value for key, value in summary.items() if key not in ("elapsed", "expenses")}
    took = ("duration", "duration_median", "duration_p95")
    told["trials"] = [{key: value for key, value in arm.items() if key not in took} for arm in summary["trials"]]
    return json.dumps(told).replace(summary["run"], "RUN")


def test_scores_are_written_while_other_trials_run(project: Project) -> None:
    # The last trial waits for the scores of the others, by the metric and by the judge.
    project.write(eval_yaml=CONFIG + JUDGED, questions_jsonl=dataset(4, until_scored=6))

    outcome = project.keval("run", "eval.yaml")

    told = diary(project)
    assert 0 == outcome.code
    assert {f"scored q{n}" for n in range(3)} <= {*told[: told.index("finished q3")]}
    assert {f"{what} q{n}": 1 for n in range(4) for what in ("finished", "scored")} == Counter(told)
    assert (8, 4) == (len(project.lines("scores.jsonl")), judgements(project))


@pytest.mark.parametrize("most", [0, 128], ids=["no more than one", "all of them"])
def test_no_trial_waits_for_a_score(project: Project, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """The judge grades nothing before all trials have finished. What does not fit into memory is read from the file."""
    monkeypatch.setattr("keval.score.backlog._MOST_WAITING", most)
    judged = JUDGED.replace("journal", "after_trials: 9, journal")
    project.write(eval_yaml=CONFIG.replace("current: 4", "current: 1") + judged, questions_jsonl=dataset(9))

    outcome = project.keval("run", "eval.yaml")

    assert 0 == outcome.code
    told = diary(project)
    # The judge sees the last trial on disk; whether hooks hear of it before is open.
    assert ["finished"] * 8 == [line.split()[0] for line in told[:8]]
    assert {f"{what} q{n}": 1 for n in range(9) for what in ("finished", "scored")} == Counter(told)
    assert (18, 9) == (len(project.lines("scores.jsonl")), judgements(project))


def test_what_is_scored_meanwhile_is_what_is_scored_afterwards(project: Project) -> None:
    project.write(eval_yaml=CONFIG + JUDGED, questions_jsonl=dataset(9, fail="it is down"))
    project.keval("run", "eval.yaml")
    scores, summary = project.lines("scores.jsonl"), project.read("summary.json")

    outcome = project.keval("score", "latest")

    by_trial = {trial["id"]: number for number, trial in enumerate(project.lines("trials.jsonl"))}
    assert 3 == outcome.code
    assert sorted(scores, key=lambda line: by_trial[line["trial"]]) == project.lines("scores.jsonl")
    assert found(summary) == found(project.read("summary.json"))


SHARED = """
agents: {paid: {type: double/paid, model: openai/ours}}
judges:
  same: {type: double/paid-reader, model: openai/ours}
  other: {type: double/paid-reader, model: openai/theirs}
rubrics: [completeness]
"""


def test_a_judge_that_asks_an_agents_model_grades_after_the_last_trial(project: Project) -> None:
    config = CONFIG.replace("agents: {scripted: {}}\n", SHARED)
    project.write(eval_yaml=config, questions_jsonl=dataset(3, until_scored=4))

    outcome = project.keval("run", "eval.yaml", env={"OPENAI_API_KEY": "sk-test"})

    told = (project.root / "diary.txt").read_text(encoding="utf-8").splitlines()
    at = told.index("finished paid/baseline/q2/1")
    assert 0 == outcome.code
    first = "[('double/length', None, 0.07), ('completeness', 'other', "
    assert [first, first] == [
        line.split(maxsplit=2)[2][: len(first)] for line in told[:at] if line.startswith("scored")
    ]
    assert 3 == sum("[('completeness', 'same', " in line for line in told[at:])
    slots = Counter((line["trial"], line["metric"], line["judge"]) for line in project.lines("scores.jsonl"))
    assert (9, {1}) == (len(slots), {*slots.values()})


def test_judges_wait_for_the_last_trial_where_a_budget_is_for_both(project: Project) -> None:
    judged = JUDGED.replace("journal", "after_trials: 4, journal")
    config = CONFIG.replace("retry:", "limits: {tokens: 9999}, retry:")  # without, the first trial runs alone
    project.write(eval_yaml=config + judged + "budget: {tokens: 99999}\n", questions_jsonl=dataset(4, until_scored=3))

    outcome = project.keval("run", "eval.yaml")

    told = (project.root / "diary.txt").read_text(encoding="utf-8").splitlines()
    assert 0 == outcome.code
    assert ["reader"] * 4 == [line.split("'")[3] for line in told if "('completeness'" in line]
    assert 4 == sum("('double/length'" in line for line in told)


def test_a_judge_whose_endpoint_was_down_while_trials_ran_is_asked_again(project: Project) -> None:
    def respond(request: ChatRequest) -> ChatReply:
        # It comes back when the others' scores are there, and with them the end of the last trial.
        if not all(path.read_bytes().count(b"\n") >= 3 for path in project.root.glob("results/*/*/.scores.*")):
            raise ModelFault(503, "down")
        return ChatReply(json.dumps({"completeness": {"reasoning": "It is.", "score": 4}, "unverified_claims": []}))

    judged = JUDGED.replace("reader: {journal: judged.txt}", "openai: {model: openai/judge}")
    retry = "retry: {max_attempts: 1, initial_backoff_seconds: 0.01, max_outage_seconds: 0.2}"
    config = CONFIG.replace("retry: {max_attempts: 1}", retry)
    project.write(eval_yaml=config + judged, questions_jsonl=dataset(4, until_scored=3))

    with gateway(respond) as environ:
        outcome = project.keval("run", "eval.yaml", env=environ)

    graded = [(line["value"], line["failure"]) for line in project.lines("scores.jsonl") if line["judge"]]
    assert (0, [(4.0, None)] * 4) == (outcome.code, graded)


def test_a_run_that_is_killed_goes_on_with_the_scores_that_it_has(project: Project) -> None:
    config = CONFIG.replace("scripted: {}", "mortal: {type: double/mortal, journal: asked.txt}")
    config = config.replace("current: 4", "current: 1") + JUDGED
    project.write(eval_yaml=config, questions_jsonl=dataset(30))
    killed = project.fork("run", "eval.yaml", env={"MORTAL_DIES_AFTER": "20"})
    (unfinished,) = project.run_directory().glob(".scores.*.jsonl")
    before = unfinished.read_bytes().splitlines()
    finished = {trial["id"] for trial in project.lines("trials.jsonl")}
    judged = judgements(project)

    outcome = project.keval("resume", "latest")

    scores = (project.run_directory() / "scores.jsonl").read_bytes().splitlines()
    assert (-signal.SIGKILL, 0) == (killed.code, outcome.code)
    assert 10 < len(before) <= 2 * len(finished)
    assert {json.loads(line)["trial"] for line in before} <= finished
    assert before == scores[: len(before)]
    assert (60, 30 - len(before) // 2) == (len({*scores}), judgements(project) - judged)
    (project.root / "asked.txt").unlink()
    project.keval("run", "eval.yaml", "-o", "whole")
    (whole,) = project.root.glob("whole/*/*/summary.json")
    resumed = {**project.read("summary.json"), "elapsed": None}
    assert found(json.loads(whole.read_text(encoding="utf-8"))) == found(resumed)


def test_a_score_of_a_trial_that_is_not_there_is_made_again(project: Project) -> None:
    """As after a disk that lost what it said it had synced."""
    config = CONFIG.replace("scripted: {}", "mortal: {type: double/mortal, journal: asked.txt}")
    project.write(eval_yaml=config.replace("current: 4", "current: 1") + JUDGED, questions_jsonl=dataset(30))
    project.fork("run", "eval.yaml", env={"MORTAL_DIES_AFTER": "20"})
    (unfinished,) = project.run_directory().glob(".scores.*.jsonl")
    trials = project.run_directory() / "trials.jsonl"
    trials.write_bytes(b"".join(trials.read_bytes().splitlines(keepends=True)[1:]))
    had, judged = unfinished.read_bytes().count(b"\n") // 2, judgements(project)

    outcome = project.keval("resume", "latest")

    assert (0, 60) == (outcome.code, len(project.lines("scores.jsonl")))
    assert 30 - had + 1 == judgements(project) - judged


def test_ctrl_c_while_trials_run_keeps_scores_and_says_that_resume_goes_on(project: Project) -> None:
    config = CONFIG.replace("timeout_seconds: 20", "grace_seconds: 0") + JUDGED
    project.write(eval_yaml=config, questions_jsonl=dataset(4, hang=True))
    command = [sys.executable, "-m", "keval", "run", "eval.yaml"]
    environ = {**os.environ, "PYTHONPATH": str(INSTALLED)}
    with subprocess.Popen(command, cwd=project.root, env=environ, stderr=subprocess.PIPE, text=True) as process:
        unfinished = _wait_for_scores(project.root, 6)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)

    report = project.keval("report", "latest", "--json")
    where = project.run_directory().relative_to(project.root)
    assert 130 == process.returncode
    assert said.endswith(f"interrupted; finished trials are in {where}; `keval resume {where}` continues it\n")
    assert (6, 3) == (unfinished.read_bytes().count(b"\n"), judgements(project))
    assert [(3, 0), (3, 0)] == [(arm["scored"], arm["missing"]) for arm in report.data["arms"]]


def test_a_report_of_scores_that_are_missing_with_trials_names_the_command_that_makes_both(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=dataset(3))
    project.keval("run", "eval.yaml")
    for name, kept in (("trials.jsonl", 2), ("scores.jsonl", 1)):
        path = project.run_directory() / name
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:kept]))

    report = project.keval("report", "latest")

    where = project.run_directory().relative_to(project.root)
    said = f"1 score missing, because scoring was interrupted next run the remaining trials: keval resume {where}"
    assert said in " ".join(report.stdout.split())
    assert (0, 3) == (project.keval("resume", "latest").code, len(project.lines("scores.jsonl")))


def _wait_for_scores(root: Path, wanted: int) -> Path:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for path in root.glob("results/*/*/.scores.*.jsonl"):
            if path.read_bytes().count(b"\n") >= wanted:
                return path
        time.sleep(0.02)
    raise AssertionError(f"no {wanted} scores within 30 s")
