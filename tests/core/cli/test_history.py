"""`keval history`: the finished runs of evaluations over time."""

from __future__ import annotations

import io
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from rich.console import Console

from keval.store.run import Run, list_runs
from keval_analysis.history.database import open_history
from keval_analysis.history.trends import TrendChoice, trend_of
from keval_report.history import print_history
from tests.conftest import Project
from tests.histories import edit, rated

TABLE = """\
rated: rating, mean and 95 % interval
                                   one                   one
run                    questions   baseline              with_docs
20260103-120000-aaaa   12 × 1      0.22 [0.21, 0.23] ↓   0.22 [0.21, 0.23] ↓
  1 of 24 trials failed, $1.50 and unknown, gates 1 failed   against 20260101-120000-aaaa: answers …
20260102-120000-aaaa   4 × 1       0.81 [0.79, 0.84]     0.81 [0.79, 0.84]
  dataset; samples: 12 → 4; answers of agent one
20260101-120000-aaaa   12 × 1      0.82 [0.81, 0.83]     0.82 [0.81, 0.83]
  the first run

↑ ↓ the interval lies above or below that of the run it is held against: a cautious sign of a change
other metrics: characters
question by question: keval compare 20260101-120000-aaaa 20260103-120000-aaaa
what changed, in full: keval history --changes 20260103-120000-aaaa
"""
NARROW = """\
rated: rating, mean and 95 % interval
                                   one
run                    questions   with_docs
20260102-120000-aaaa   12 × 1      0.22 [0.21, 0.23] ↓
  answers of agent one
20260101-120000-aaaa   12 × 1      0.82 [0.81, 0.83]
  the first run

↑ ↓ the interval lies above or below that of the run it is
  held against: a cautious sign of a change
other metrics: characters
question by question:
  keval compare 20260101-120000-aaaa 20260102-120000-aaaa
what changed, in full:
  keval history --changes 20260102-120000-aaaa
"""


def shown(project: Project, width: int, choice: TrendChoice) -> str:
    """What a terminal of this width shows of the runs."""
    with open_history(list_runs(project.root / "results")) as database:
        trend = trend_of(database, "rated", choice)
    assert trend is not None
    screen = io.StringIO()
    print_history([trend], Console(width=width, file=screen, highlight=False), Path("results"))
    return screen.getvalue()


def test_a_terminal_shows_a_line_for_each_run_and_below_it_what_changed(project: Project) -> None:
    rated(project, 1, 0.8)
    rated(project, 2, 0.8, questions=4)
    latest = rated(project, 3, 0.2)
    trials = [{"agent": "one", "condition": "baseline", **_TRIALS, "failed": 1, "cost": {"usd": 1.5, "unknown": 1}}]
    gate = {"gate": "a gate", "verdict": "failed", "value": 0.2, "ci_low": None, "ci_high": None, "decided_on": "mean"}
    edit(latest / "summary.json", trials=[*trials, {**trials[0], "condition": "with_docs", "failed": 0, "cost": {}}])
    edit(latest / "summary.json", gates=[{**gate, "reason": ""}])

    assert TABLE == shown(project, 100, TrendChoice())


_TRIALS = {
    "trials": 12,
    "retried": 0,
    "failures": {},
    "tool_calls": None,
    "model_calls": None,
    "usage": {},
    "given_up": {},
    "duration": None,
    "compliance": None,
}


def test_a_narrow_terminal_shows_all_of_it_in_less_width(project: Project) -> None:
    rated(project, 1, 0.8)
    rated(project, 2, 0.2)

    assert NARROW == shown(project, 60, TrendChoice(conditions=["with_docs"]))


def test_small_figures_have_more_decimals(project: Project) -> None:
    rated(project, 1, 0.0)

    assert re.search(r"12 × 1      0\.01\d \[0\.00\d, 0\.02\d\]   0\.01\d", shown(project, 100, TrendChoice()))


def test_machines_get_all_of_it_as_json(project: Project) -> None:
    rated(project, 1, 0.2)
    rated(project, 2, 0.8)

    (found,) = project.keval("history", "--condition", "baseline", "--json").data

    assert ("rated", "number/rating") == (found["evaluation"], found["metric"])
    latest, first = found["runs"]
    assert ("results/rated/20260101-120000-aaaa", True) == (latest["before"], latest["asks_the_same"])
    assert ["answers of agent"] == [change["kind"] for change in latest["changes"]]
    (point,) = first["points"]
    assert ("one", "baseline", 12, None) == tuple(point[key] for key in ("agent", "condition", "n", "step"))


def test_runs_that_are_left_out_are_named(project: Project) -> None:
    unfinished, damaged = (rated(project, day) for day in (1, 2))
    edit(unfinished / "summary.json", unfinished=True)
    (damaged / "summary.json").write_text("{", encoding="utf-8")

    told = project.keval("history")

    assert (0, "") == (told.code, told.stdout)
    left, skipped, nothing = told.stderr.splitlines()
    assert (
        f"left out (unfinished): rated/{unfinished.name}; `keval resume` goes on with one that was interrupted" == left
    )
    assert skipped.startswith(f"skipped: results/rated/{damaged.name}/summary.json ")
    assert "no finished run has what was asked for" == nothing


def test_what_a_run_changed_is_told_in_full(project: Project) -> None:
    rated(project, 1)
    latest = rated(project, 2)
    config = Run(latest).manifest.config
    prompted = {**config["conditions"], "baseline": {"system_prompt": "Answer in one sentence."}}
    edit(latest / "manifest.json", config={**config, "conditions": prompted})

    told = project.keval("history", "--changes", "latest").stdout
    between = project.keval("history", "--changes", latest.name, "--changes", "20260101", "--json").data

    assert "20260102-120000-aaaa against 20260101-120000-aaaa\n" in told
    assert "  prompt of baseline  none → Answer in one sentence.\n" in told
    assert told.endswith("question by question: keval compare 20260101-120000-aaaa 20260102-120000-aaaa\n")
    texts = "texts of 20260102-120000-aaaa, before → now:\n  prompt of baseline  none → Answer in one sentence.\n"
    assert texts in shown(project, 100, TrendChoice())
    change = {"what": "prompt of baseline", "before": "Answer in one sentence.", "now": "none"}
    assert ("20260101-120000-aaaa", [change]) == (between["run"], between["changes"])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--evaluation", "ratde"], "no finished run of 'ratde'; did you mean 'rated'?"),
        (["--metric", "ratting"], "there is no metric 'ratting'; did you mean 'number/rating'?"),
        (
            ["--changes", "latest"],
            "is unfinished, or the first of its evaluation; add --changes OTHER to hold it against",
        ),
        (["--changes", "2026", "--changes", "2026", "--changes", "2026"], "name no more"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_is_not_there_is_told_with_what_is(project: Project, arguments: list[str], problem: str) -> None:
    rated(project, 1)

    told = project.keval("history", *arguments)

    assert (2, True) == (told.code, problem in told.stderr), told.stderr


def test_without_runs_nothing_is_written(project: Project) -> None:
    told = project.keval("history")

    assert (0, "no runs under results; `keval run CONFIG` makes one\n") == (told.code, told.stderr)
    assert [] == project.keval("history", "--json").data
    assert [] == [*project.root.iterdir()]


def test_all_of_it_is_written_to_a_file_for_other_programs(project: Project) -> None:
    run = rated(project, 1)
    told = [project.keval("history", "--sqlite", "all.sqlite").stdout for _ in range(2)]
    (project.root / "mine.txt").write_text("no database, and longer than its header", encoding="utf-8")

    refused = project.keval("history", "--sqlite", "mine.txt")

    with closing(sqlite3.connect(project.root / "all.sqlite")) as database:
        found = database.execute("SELECT run, condition, n FROM scores WHERE metric = 'number/rating'").fetchall()
    assert [(f"rated/{run.name}", condition, 12) for condition in ("baseline", "with_docs")] == found
    assert [project.keval("history").stdout] * 2 == told
    assert (2, "error: mine.txt cannot be written: file is not a database\n") == (refused.code, refused.stderr)
