"""`keval show`: what went wrong in a run, and the answers of all arms to one sample."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Project

CONFIG = """
name: notes
dataset: {path: questions.jsonl}
agents:
  scripted: {}
  shouting: {type: scripted, suffix: "!!"}
contexts:
  notes: {text: "A long and thorough answer follows, as the notes say. "}
conditions:
  baseline: {}
  with_notes: {contexts: [notes]}
metrics: [double/length, double/characters, double/grade, double/neutral]
rubrics: [double/brevity]
judges: {reader: {}}
execution: {num_repetitions: 2, retry: {max_attempts: 1}}
"""
SAMPLES: list[dict[str, Any]] = [
    {"id": "a", "question": "short?", "level": 2, "fail": "no luck\n  at all", "answer": "yes"},
    {"id": "bb", "question": "Which? " * 5, "level": 1, "calls": [{"name": "look", "result": "a \x1b[2J find"}]},
    {"id": "ccc", "question": "Why? " * 9, "level": 3, "claims": ["it is [red]blue"]},
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = Project(tmp_path_factory.mktemp("made"))
    project.write(eval_yaml=CONFIG, questions_jsonl="".join(json.dumps(sample) + "\n" for sample in SAMPLES))
    assert 3 == project.run("eval.yaml").code
    return project.root


@pytest.fixture
def ran(made: Path, project: Project) -> Project:
    shutil.copytree(made, project.root, dirs_exist_ok=True)
    return project


def test_failed_trials_are_listed_with_their_messages(ran: Project) -> None:
    shown = ran.keval("show", "latest", "--failed").stdout
    found = ran.keval("show", "latest", "--failed", "--json").data
    few = ran.keval("show", "latest", "--failed", "--limit", "3")

    told = [line for line in shown.splitlines() if "agent: told: no luck" in line]
    assert (8, "8 failed trials.") == (len(told), shown.splitlines()[-1])
    assert {("a", "told", "no luck\n  at all")} == {
        (each["sample"], each["failure"]["kind"], each["failure"]["message"]) for each in found
    }
    assert "3 failed trials; there may be more, as --limit says so many." == few.stdout.splitlines()[-1]


def test_a_report_has_the_first_message_beside_the_kind_of_a_failure(ran: Project) -> None:
    ran.keval("score", "latest", "--metric", "double/broken")

    shown = ran.keval("report", "latest").stdout

    assert "  scripted baseline: 2 × agent: told; the first: no luck at all\n" in shown
    assert "  double/broken: 16 × RuntimeError; the first: the metric is broken\n" in shown


def test_scores_without_a_value_are_listed_with_their_reasons(ran: Project) -> None:
    ran.keval("score", "latest", "--metric", "double/broken")

    shown = ran.keval("show", "latest", "--unscored").stdout
    found = ran.keval("show", "latest", "--unscored", "--json").data

    assert "scripted/baseline/bb/1  double/broken\n  failed, RuntimeError: " in shown
    assert {("double/broken", None)} == {(line["metric"], line["value"]) for line in found}
    assert 2 * 2 * 2 * 2 == len(found)


@pytest.mark.parametrize(
    ("metric", "first", "last"),
    [
        ("double/length", "scripted/baseline/bb/1", "shouting/with_notes/ccc/2"),
        ("characters", "shouting/with_notes/ccc/1", "scripted/baseline/bb/2"),  # where less is better
        ("brevity@reader", "scripted/baseline/bb/1", "shouting/with_notes/ccc/2"),
    ],
)
def test_the_worst_trials_come_first(ran: Project, metric: str, first: str, last: str) -> None:
    found = ran.keval("show", "latest", "--worst", metric, "--json").data
    shown = ran.keval("show", "latest", "--worst", metric, "--limit", "1").stdout.splitlines()

    assert (16, first, last) == (found["scored"], found["trials"][0]["trial"], found["trials"][-1]["trial"])
    assert found["trials"][0]["trial"] == shown[0].split()[-1]
    assert shown[-1].startswith("1 of 16 trials with a value for double/")


def test_neutral_scores_are_not_among_the_worst(ran: Project) -> None:
    shown = ran.keval("show", "latest", "--worst", "double/neutral").stdout

    assert "0 of 0 trials with a value for double/neutral, worst first; left out: 16 neutral scores.\n" == shown


def test_a_sample_shows_all_arms_side_by_side(ran: Project) -> None:
    wide = ran.keval("show", "latest", "--sample", "bb", "--repetition", "2", env={"COLUMNS": "240"}).stdout
    narrow = ran.keval("show", "latest", "--sample", "bb").stdout

    heading = "scripted baseline scripted with_notes shouting baseline shouting with_notes"
    lines = [" ".join(line.split()) for line in wide.splitlines()]
    assert ["bb repetition 2 of 2; --repetition N shows another", "user:" + " Which?" * 5] == lines[:2]
    assert heading in lines
    assert [(4, 4)] == [(line.count("→ look()"), line.count("a \ufffd[2J find")) for line in lines if "look" in line]
    told = " ".join(lines)
    assert "double/length 0.35 double/length 0.88" in told
    assert "35 characters 88 characters" in told
    assert "Neutral in every arm: double/grade, double/neutral." == lines[-1]
    assert heading not in [" ".join(line.split()) for line in narrow.splitlines()]
    assert ["scripted baseline scripted with_notes", "shouting baseline shouting with_notes"] == [
        " ".join(line.split()) for line in narrow.splitlines() if line.startswith(("scripted", "shouting"))
    ]


def test_failures_and_unverified_claims_stand_in_their_column(ran: Project) -> None:
    failed = ran.keval("show", "latest", "--sample", "a", env={"COLUMNS": "240"}).stdout
    claimed = ran.keval("show", "latest", "--sample", "ccc", env={"COLUMNS": "240"}).stdout

    assert 4 == failed.count("failed (agent, told): no luck")
    assert "golden answer: yes\n" in failed
    assert 4 == claimed.count("unverified claim, according to reader: it is [red]blue")


def test_a_sample_as_data_has_the_trials_and_scores_of_the_files(ran: Project) -> None:
    found = ran.keval("show", "latest", "--sample", "ccc", "--repetition", "2", "--json").data

    expected = [line for line in ran.lines("scores.jsonl") if (line["sample"], line["repetition"]) == ("ccc", 2)]
    assert (2, 2, "ccc") == (found["repetition"], found["repetitions"], found["sample"]["id"])
    assert {line["id"]: line for line in ran.lines("trials.jsonl") if line["id"].endswith("ccc/2")} == {
        arm["trial"]["id"]: arm["trial"] for arm in found["arms"]
    }
    assert sorted(map(json.dumps, expected)) == sorted(
        json.dumps(line) for arm in found["arms"] for line in arm["scores"]
    )


def test_a_trial_has_only_the_scores_that_count(ran: Project) -> None:
    scores = ran.run_directory() / "scores.jsonl"
    lines = [json.loads(line) for line in scores.read_text(encoding="utf-8").splitlines()]
    # As an interrupted pass leaves them, of a scorer that has changed since.
    earlier = [{**line, "digest": "0" * 64} for line in lines if line["metric"] == "double/length"]
    scores.write_text("".join(json.dumps(line) + "\n" for line in (*earlier, *lines)), encoding="utf-8")

    found = ran.keval("show", "latest", "--trial", "scripted/baseline/bb/1", "--json").data

    assert 1 == sum(line["metric"] == "double/length" for line in found["scores"])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--worst", "lenght"], "error: there is no metric 'lenght'; did you mean 'length'?"),
        (["--worst", "ty"], "error: there is no metric 'ty'; did you mean 'double/brevity'?"),
        (["--worst", "length@reader"], "error: no judge 'reader' grades double/length; it is not a rubric"),
        (["--worst", "brevity@raeder"], "error: no judge 'raeder' grades double/brevity; it is judged by reader"),
        (["--sample", "cccc"], "error: the run has no sample 'cccc'; did you mean 'ccc'?"),
        (["--sample", "ccc", "--repetition", "3"], "error: sample 'ccc' has 2 repetitions; choose --repetition 1 to 2"),
        (["--failed", "--unscored"], "exclude each other; choose one"),
        (["--limit", "3"], "--limit goes with --failed"),
    ],
)
def test_what_a_run_does_not_have_is_told_with_a_remedy(ran: Project, options: list[str], told: str) -> None:
    outcome = ran.keval("show", "latest", *options)

    assert (2, True) == (outcome.code, told in outcome.stderr), outcome.stderr
