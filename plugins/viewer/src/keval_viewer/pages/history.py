"""The finished runs of an evaluation over time: a metric of each arm, and what each run changed."""

from __future__ import annotations

import math
from typing import Any

import attrs
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keval import Run, RunError
from keval_analysis.history.database import open_history
from keval_analysis.history.trends import TrendChoice, evaluations_of, trend_of
from keval_report.history import HistoryTable, history_table, left_out_texts
from keval_viewer.page import Page, every_url, rendered, run_url, viewer_of
from keval_viewer.report_page.rendering import axis_of

_MOST = 40
"""Runs that are shown until all are asked for."""
_HEIGHT = 150.0
_PITCH = 26.0
"""The distance between two runs."""


def _history(request: Request) -> Response:
    asked = request.query_params
    runs = viewer_of(request).runs
    choice = TrendChoice(
        metric=asked.get("metric") or None,
        limit=None if asked.get("all") else _MOST,
    )
    with open_history(runs.root, runs.all()) as database:
        evaluations = evaluations_of(database)
        evaluation = asked.get("evaluation") or next(iter(evaluations), "")
        if evaluations and evaluation not in evaluations:
            told = f"There is no finished run of {evaluation!r}; there are: {', '.join(evaluations)}."
            raise HTTPException(404, told)
        try:
            # Another evaluation may have been chosen, which lacks the metric.
            choices = (choice, attrs.evolve(choice, metric=None))
            trend = next(filter(None, (trend_of(database, evaluation, each) for each in choices)), None)
        except RunError as error:
            raise HTTPException(404, f"{error}.") from error
        left_out = dict(database.execute("SELECT run, reason FROM left_out ORDER BY run"))
    table = history_table(trend) if trend is not None else None
    return rendered(
        request,
        "history.html",
        evaluations=evaluations,
        evaluation=evaluation,
        table=table,
        # The metrics that can be followed, the one that is first: as a URL names them, and for people.
        metrics=[
            (f"{metric}@{judge}" if judge else metric, told)
            for (metric, judge), told in ({table.trend.scorer: table.metric, **table.others}.items() if table else ())
        ],
        url=lambda run: run_url(Run(runs.root / run)),
        left_out=[*left_out_texts(left_out)],
        root=runs.root,
        every=every_url(request),
        **(_drawn(table) if table else {}),
    )


def _drawn(table: HistoryTable) -> dict[str, Any]:
    """Return where the runs stand, the oldest on the left, and what returns the height of a value, for all series."""
    points = [cell.point for row in table.rows for cell in row.cells if cell.point]
    values = [value for each in points for value in (each.value, each.ci_low, each.ci_high) if value is not None]
    finite = filter(math.isfinite, values)
    axis = axis_of(table.trend.scale, finite)
    upwards = attrs.evolve(axis, width=_HEIGHT)
    return {
        "placed": [(_PITCH * (number + 0.5), row) for number, row in enumerate(reversed(table.rows))],
        "ticks": axis.ticks,
        "y": lambda value: round(_HEIGHT - upwards.x(value), 1),
        "width": _PITCH * len(table.rows),
        "height": _HEIGHT,
    }


PAGE = Page(routes=(Route("/history", _history),))
