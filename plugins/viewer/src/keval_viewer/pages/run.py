"""The page of a run: the parts of its report, each fetched by itself."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from keval.frontend import FRAGMENTS
from keval_viewer.page import Page, rendered, run_of, run_route, viewer_of

__all__ = ["PAGE"]

_FIRST = ("header", "findings", "gates", "effects")
"""Parts that need nothing but the summary, which the page comes with. The others are fetched by its script."""


def _run(request: Request) -> Response:
    run = run_of(request)
    report = viewer_of(request).runs.report(run)
    parts = {name: FRAGMENTS[name](report) for name in _FIRST}
    return rendered(
        request, "run.html", run=run, parts=parts, others=[name for name in FRAGMENTS if name not in _FIRST]
    )


def _part(request: Request) -> Response:
    name = request.path_params["part"]
    if name not in FRAGMENTS:
        raise HTTPException(404)
    return HTMLResponse(FRAGMENTS[name](viewer_of(request).runs.report(run_of(request))))


PAGE = Page(routes=(run_route("", _run), run_route("/parts/{part}", _part)), tab="Summary")
