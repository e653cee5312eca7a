"""The runs of the folder that is served."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keval import Run
from keval.frontend import ListedRun
from keval_viewer.page import Page, rendered, viewer_of

__all__ = ["PAGE"]


def _runs(request: Request) -> Response:
    listed = [*viewer_of(request).runs.listed()][::-1]
    found = [(Run(Path(run.path)), run) for run in listed if isinstance(run, ListedRun)]
    return rendered(
        request,
        "runs.html",
        root=viewer_of(request).runs.root,
        runs=found,
        problems=[str(each) for each in listed if not isinstance(each, ListedRun)],
    )


PAGE = Page(routes=(Route("/", _runs),))
