"""The finished runs of an evaluation over time: a metric of each arm, and what each run changed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import attrs
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keval import Run, RunError
from keval_analysis.history.database import open_history
from keval_analysis.history.trends import TrendChoice, evaluations_of, trend_of
from keval_report.history import HistoryCell, HistoryRow, HistoryTable, history_table, left_out_texts
from keval_viewer.page import Page, every_url, rendered, run_url, viewer_of
from keval_viewer.report_page.rendering import Axis, axis_around_zero, axis_of
from keval_viewer.runs import Runs

_MOST = 40
"""Runs that are shown until all are asked for."""
_HEIGHT = 150.0
_PITCH = 26.0
"""The distance between two runs."""


@attrs.frozen
class _Dot:
    """A point as it is drawn: `top` and `bottom` are the ends of its interval, if it has one."""

    x: float
    y: float
    top: float | None
    bottom: float | None
    told: str
    url: str
    row: HistoryRow
    cell: HistoryCell


def _history(request: Request) -> Response:
    asked = request.query_params
    runs = viewer_of(request).runs
    choice = TrendChoice(
        metric=asked.get("metric") or None,
        effects=asked.get("of") == "effects",
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
        effects=choice.effects,
        table=table,
        # The metrics that can be followed, the one that is first: as a URL names them, and for people.
        metrics=[
            (f"{metric}@{judge}" if judge else metric, told)
            for (metric, judge), told in ({table.trend.scorer: table.metric, **table.others}.items() if table else ())
        ],
        lines=[_line(row, runs) for row in table.rows] if table else [],
        left_out=[*left_out_texts(left_out)],
        root=runs.root,
        every=every_url(request),
        **(_drawn(table, runs) if table else {}),
    )


def _drawn(table: HistoryTable, runs: Runs) -> dict[str, Any]:
    """Return the points of each series, the oldest on the left, and the axis that all series share."""
    # An axis that holds all points and their intervals; it is drawn upwards.
    points = [cell.point for row in table.rows for cell in row.cells if cell.point]
    values = [value for each in points for value in (each.value, each.ci_low, each.ci_high) if value is not None]
    finite = filter(math.isfinite, values)
    axis = axis_around_zero(finite) if table.trend.effects else axis_of(table.trend.scale, finite)
    axis = attrs.evolve(axis, width=_HEIGHT)
    placed = [(_PITCH * (number + 0.5), row) for number, row in enumerate(reversed(table.rows))]

    def dots(number: int) -> Iterator[_Dot]:
        for x, row in placed:
            cell = row.cells[number]
            if cell.point is not None and cell.text != "–":
                yield _dot(row, cell, x, axis, runs)

    return {
        "charts": [(titles, [*dots(number)]) for number, titles in enumerate(table.titles)],
        "ticks": [(tick, round(_HEIGHT - axis.x(tick), 1)) for tick in axis.ticks],
        "triangles": [(x, row) for x, row in placed if row.changes],
        "width": _PITCH * len(placed),
        "height": _HEIGHT,
    }


def _dot(row: HistoryRow, cell: HistoryCell, x: float, axis: Axis, runs: Runs) -> _Dot:
    point = cell.point
    assert point is not None and point.value is not None  # noqa: S101, PT018 - only such points are drawn
    top, bottom = (None if end is None else round(_HEIGHT - axis.x(end), 1) for end in (point.ci_high, point.ci_low))
    step = f", {point.step} than before" if point.step else ""
    told = f"{row.run.id}: {cell.text}{step}"
    y = round(_HEIGHT - axis.x(point.value), 1)
    return _Dot(x, y, top, bottom, told, run_url(Run(runs.root / row.run.run)), row, cell)


def _line(row: HistoryRow, runs: Runs) -> tuple[HistoryRow, str, str | None, str | None]:
    """Return a row of the table, with the pages of its run, of the run before it, and of both compared."""
    before = row.run.before
    compared = f"/compare?{urlencode([('run', before), ('run', row.run.run)])}" if before else None
    return row, run_url(Run(runs.root / row.run.run)), before and run_url(Run(runs.root / before)), compared


PAGE = Page(routes=(Route("/history", _history),))
