"""The trials of a run as a table, of which only the rows that are looked at are elements."""

from __future__ import annotations

from itertools import islice

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response

from keval_viewer.page import Page, rendered, run_of, run_route, viewer_of
from keval_viewer.runs import lines_in, read_ahead
from keval_viewer.trial_table import trial_table

__all__ = ["PAGE"]

_AT_FIRST = 100
"""Rows that the page comes with; its script shows all."""


def _trials(request: Request) -> Response:
    run = run_of(request)
    given = request.query_params.get("from", "")
    start = int(given) if given.isdecimal() and len(given) < 10 else 0
    first = [*islice(run.trials(), start, start + _AT_FIRST)]
    total, _ = lines_in(run.trials_file)
    return rendered(
        request,
        "trials.html",
        run=run,
        trials=first,
        start=start,
        following=start + _AT_FIRST if start + len(first) < total else None,
        total=total,
    )


def _table(request: Request) -> Response:
    run = run_of(request)
    table = viewer_of(request).runs.derived(run, "trials", trial_table)
    return Response(table, media_type="application/json", background=BackgroundTask(read_ahead, run))


PAGE = Page(
    routes=(run_route("/trials", _trials), run_route("/trials.json", _table)),
    tab="Trials",
    place="/trials",
)
