"""The trials of a run as a table, of which only the rows that are looked at are elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, TypeAlias

import orjson
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response

from keval import Run, ScoreLine, Trial
from keval_report.words import display_names
from keval_viewer.page import Page, number_of, rendered, run_route, viewer_of
from keval_viewer.report_page.rendering import rounded
from keval_viewer.runs import read_ahead

_AT_FIRST = 100
"""Rows that the page comes with; its script shows all."""
_MOST_ASKED = 200
"""Characters of a question that a table shows and searches."""
_Value: TypeAlias = float | Literal["n"] | None


def _trials(request: Request, run: Run) -> Response:
    start = number_of(request, "from") or 0
    first = [*islice(run.trials(), start, start + _AT_FIRST)]
    total = run.count_trials()
    return rendered(
        request,
        "trials.html",
        run=run,
        trials=first,
        start=start,
        following=start + _AT_FIRST if start + len(first) < total else None,
        total=total,
    )


def _table(request: Request, run: Run) -> Response:
    table = viewer_of(request).runs.derived(run, "trials", trial_table)
    return Response(table, media_type="application/json", background=BackgroundTask(read_ahead, run))


def trial_table(run: Run) -> bytes:
    """Return the trials of a run in the order of its dataset.

    The JSON has a list per column. `sample`, `agent` and `condition` hold indexes into `samples` (id and question),
    `agents` and `conditions`. `scores` has a list for each of the `metrics`: a value, `"n"` for a neutral one, `null`
    if there is none; over several judgements, it is their mean. Raises RunError.
    """
    manifest = run.manifest
    agents, conditions = [*manifest.agents], [*manifest.conditions]
    samples: dict[str, int] = {}
    asked: list[tuple[str, str]] = []
    columns: dict[str, list[Any]] = {name: [] for name in (*_COLUMNS, "sample", "agent", "condition")}
    for trial in run.trials():
        if trial.sample.id not in samples:
            samples[trial.sample.id] = len(samples)
            asked.append((trial.sample.id, " ".join(trial.question.split())[:_MOST_ASKED]))
        for name, read in _COLUMNS.items():
            columns[name].append(read(trial))
        columns["sample"].append(samples[trial.sample.id])
        columns["agent"].append(agents.index(trial.agent))
        columns["condition"].append(conditions.index(trial.condition))
    scorers = [entry.scorer for entry in manifest.scorers]
    names = display_names(scorers)
    metrics = [
        {
            "name": names[entry.scorer],
            "low": entry.scale.low,
            "high": None if math.isinf(entry.scale.high) else entry.scale.high,
            "better": entry.scale.better,
            "unit": entry.scale.unit,
        }
        for entry in manifest.scorers
    ]
    scores = _scores(columns["id"], run.scores(), scorers)
    labels = {"agents": agents, "conditions": conditions, "samples": asked, "metrics": metrics}
    return orjson.dumps({**labels, "trials": columns, "scores": scores})


def _scores(
    trials: Sequence[str], lines: Iterable[ScoreLine], scorers: Sequence[tuple[str, str | None]]
) -> list[list[_Value]]:
    index = {trial: number for number, trial in enumerate(trials)}
    column = {scorer: number for number, scorer in enumerate(scorers)}
    values: list[list[_Value]] = [[None] * len(trials) for _ in scorers]
    several: dict[tuple[int, int], list[float]] = {}
    for line in lines:
        at = index.get(line.trial)
        if at is None or line.score.value is None:  # a score may outlive its trial
            continue
        place = values[column[line.scorer]]
        if line.score.neutral:
            place[at] = "n" if place[at] is None else place[at]
        else:
            found = several.setdefault((column[line.scorer], at), [])
            found.append(line.score.value)
            place[at] = rounded(math.fsum(found) / len(found))
    return values


def _calls(trial: Trial) -> int | None:
    """Return how many tools an answer called; `None` if its agent does not tell them all."""
    transcript = trial.transcript
    if transcript is None or transcript.unlisted_calls is None:
        return None
    return len(transcript.own_calls) + transcript.unlisted_calls


_COLUMNS: Mapping[str, Callable[[Trial], Any]] = {
    "id": lambda trial: trial.id,
    "repetition": lambda trial: trial.repetition,
    "failure": lambda trial: trial.failure and trial.failure.kind,
    "retried": lambda trial: len(trial.attempts),
    "seconds": lambda trial: trial.transcript and rounded(trial.transcript.duration),
    "tokens": lambda trial: trial.transcript and trial.transcript.usage.total,
    "calls": _calls,
}
"""The columns that a trial fills by itself."""


PAGE = Page(routes=(run_route("/trials", _trials), run_route("/trials.json", _table)), tab="Trials", place="/trials")
