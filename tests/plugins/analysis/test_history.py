"""The history of a results directory: what is in it, when it is read anew, and what its runs are held against."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keval.store.run import Run, list_runs
from keval_analysis.history.database import open_history
from keval_analysis.history.trends import Trend, TrendChoice, run_before, trend_of
from tests.conftest import Project
from tests.histories import edit, rated

OLD = Path(__file__).parents[2] / "runs" / "0.1.0"


@contextmanager
def history(project: Project) -> Iterator[sqlite3.Connection]:
    with open_history(list_runs(project.root / "results")) as database:
        yield database


def rows(project: Project, query: str) -> list[tuple[object, ...]]:
    with history(project) as database:
        return [tuple(row) for row in database.execute(query)]


def trend(project: Project, choice: TrendChoice | None = None) -> Trend:
    with history(project) as database:
        found = trend_of(database, "rated", choice or TrendChoice())
    assert found is not None
    return found


def test_a_run_is_in_it_with_its_figures(project: Project) -> None:
    run = Run(rated(project, 1))

    found = rows(project, "SELECT run, condition, n, mean, ci_low, ci_high FROM scores WHERE metric = 'number/rating'")

    name = f"rated/{run.id}"
    wanted = [each for each in run.summary().arms if each.metric == "number/rating"]
    assert [(name, each.condition, each.n, each.mean, each.ci_low, each.ci_high) for each in wanted] == found
    parts = rows(project, "SELECT value FROM parts WHERE kind = 'version of' AND name = 'keval'")
    assert [(run.manifest.versions["keval"],)] == parts


def test_runs_of_earlier_versions_are_in_it(project: Project) -> None:
    shutil.copytree(OLD, project.root / "results" / "support")

    found = rows(project, "SELECT evaluation, failed, usd FROM runs ORDER BY run")

    assert [("support", 2, None), ("interrupted", 0, None)] == found


def test_what_is_no_finished_run_is_left_out_with_the_reason(project: Project) -> None:
    interrupted, played, damaged, begun = (rated(project, day) for day in range(1, 5))
    edit(interrupted / "summary.json", unfinished=True)
    edit(played / "manifest.json", play=True)
    (damaged / "summary.json").write_text('{"run": 1}', encoding="utf-8")
    (begun / "summary.json").unlink()

    left = {str(run): str(reason) for run, reason in rows(project, "SELECT run, reason FROM left_out")}
    edit(interrupted / "summary.json", unfinished=False)
    finished = rows(project, "SELECT run FROM runs")

    problem = left.pop(f"rated/{damaged.name}")
    assert problem.startswith(f"{damaged / 'summary.json'} is damaged: ")
    wanted = {interrupted: "unfinished", played: "played", begun: "unfinished"}
    assert {f"rated/{run.name}": reason for run, reason in wanted.items()} == left
    assert [(f"rated/{interrupted.name}",)] == finished


def test_a_summary_that_fits_into_no_table_is_left_out_alone(project: Project) -> None:
    twice, huge, whole = (rated(project, day) for day in range(1, 4))
    trials = json.loads((twice / "summary.json").read_text(encoding="utf-8"))["trials"]
    edit(twice / "summary.json", trials=[trials[0], trials[0]])
    edit(huge / "summary.json", trials=[trials[0], {**trials[1], "tool_calls": 2**63}])

    left = {str(run): str(reason) for run, reason in rows(project, "SELECT run, reason FROM left_out")}

    assert [(f"rated/{whole.name}",)] == rows(project, "SELECT run FROM runs")
    assert [f"rated/{twice.name}", f"rated/{huge.name}"] == [*left]
    assert all(" is damaged: " in reason for reason in left.values())


def test_a_run_is_held_against_the_latest_that_asked_the_same_questions(project: Project) -> None:
    first, other, latest = rated(project, 1), rated(project, 2, questions=4), rated(project, 3, 0.8)

    found = {run.id: (run.before, run.asks_the_same) for run in trend(project).runs}

    assert {
        first.name: (None, False),
        other.name: (f"rated/{first.name}", False),
        latest.name: (f"rated/{first.name}", True),
    } == found


def test_samples_that_were_selected_otherwise_are_other_questions(project: Project) -> None:
    whole, part = rated(project, 1), rated(project, 2, arguments=["--limit", "6"])

    run = trend(project).runs[0]

    assert (part.name, f"rated/{whole.name}", False) == (run.id, run.before, run.asks_the_same)


def test_a_replay_is_held_against_its_recording_and_no_live_run_against_a_replay(project: Project) -> None:
    recorded, replayed, live = (rated(project, day) for day in (1, 2, 3))
    edit(replayed / "manifest.json", replay={"run": recorded.name, "recorded": "2026-01-01T12:00:00+00:00"})

    found = {run.id: run.before for run in trend(project).runs}

    assert (f"rated/{recorded.name}",) * 2 == (found[replayed.name], found[live.name])


def test_a_step_is_an_interval_apart_from_that_before_on_the_same_questions(project: Project) -> None:
    rated(project, 1, 0.2)
    rated(project, 2, 0.8)
    rated(project, 3, 0.81)  # the intervals overlap
    rated(project, 4, 0.2)
    rated(project, 5, 0.8, questions=11)

    found = [[point.step for point in run.points.values()] for run in reversed(trend(project).runs)]

    assert [[None] * 2, ["higher"] * 2, [None] * 2, ["lower"] * 2, [None] * 2] == found


def test_what_a_run_changed_is_what_it_is_made_of(project: Project) -> None:
    rated(project, 1)
    later = rated(project, 2)
    manifest = Run(later).manifest
    edit(later / "manifest.json", seed=7, versions={**manifest.versions, "keval": "9.9"})

    (latest, first) = trend(project).runs

    told = [(each.kind, each.name, each.before, each.now) for each in latest.changes]
    assert [("seed", "", "0", "7"), ("version of", "keval", manifest.versions["keval"], "9.9")] == told
    assert () == first.changes


def test_the_metric_is_the_first_primary_one_or_the_one_that_is_named(project: Project) -> None:
    run = rated(project, 1)

    usual = trend(project).metric
    named = trend(project, TrendChoice(metric="characters")).metric
    edit(run / "summary.json", primary=["double/characters"])
    primary = trend(project).metric
    rated(project, 2)
    latest = trend(project).metric

    assert ("number/rating", "double/characters", "double/characters") == (usual, named, primary)
    assert "number/rating" == latest


def test_a_run_with_another_scale_has_no_point(project: Project) -> None:
    older = rated(project, 1)
    rated(project, 2)
    text = (older / "summary.json").read_text(encoding="utf-8")
    (older / "summary.json").write_text(text.replace('"high": 1.0', '"high": 5.0'), encoding="utf-8")

    latest, first = trend(project).runs

    assert '"high": 1.0' in text
    assert (2, 0) == (len(latest.points), len(first.points))


def test_arms_and_a_number_of_runs_are_chosen(project: Project) -> None:
    for day in (1, 2, 3):
        rated(project, day)

    baseline = trend(project, TrendChoice(conditions=["baseline"]))
    latest = trend(project, TrendChoice(limit=1))

    assert (["baseline"], 3) == ([each.condition for each in baseline.series], len(baseline.runs))
    assert (1, 2, "rated/20260102-120000-aaaa") == (len(latest.runs), latest.unshown, latest.runs[0].before)


def test_conditions_that_lack_one_tool_are_shown_when_they_are_named(project: Project) -> None:
    run = rated(project, 1)
    config = Run(run).manifest.config
    edit(run / "manifest.json", config={**config, "ablated": {"baseline": {"search": "with_docs"}}})

    usual = trend(project).series
    named = trend(project, TrendChoice(conditions=["with_docs"])).series

    assert (["baseline"], ["with_docs"]) == ([each.condition for each in usual], [each.condition for each in named])


def test_the_run_before_is_known_by_name(project: Project) -> None:
    first, second = rated(project, 1), rated(project, 2)

    with history(project) as database:
        found = [run_before(database, f"rated/{run}") for run in (first.name, second.name, "20990101-000000-aaaa")]

    assert [None, f"rated/{first.name}", None] == found
