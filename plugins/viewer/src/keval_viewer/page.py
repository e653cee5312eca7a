"""A page: its routes, its tab, and how a template becomes a response."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import BaseRoute, Route

from keval import Run
from keval_viewer.addresses import RUN
from keval_viewer.viewer import Viewer

__all__ = ["Page", "rendered", "run_of", "run_route", "viewer_of"]


@attrs.frozen
class Page:
    """What a module of `keval_viewer.pages` has as `PAGE`.

    With `tab`, the pages of a run link to `/runs/{evaluation}/{run}` followed by `place`, under this name.
    """

    routes: Sequence[BaseRoute]
    tab: str | None = None
    place: str = ""


def run_route(place: str, endpoint: Callable[[Request], Any], methods: Sequence[str] = ("GET",)) -> Route:
    """Return the route of something that belongs to one run, such as `/trials`. The endpoint asks `run_of`.

    An endpoint that is a plain function runs in a thread of its own, so it may read files; a coroutine function must
    not.
    """
    return Route(f"{RUN}{place}", endpoint, methods=[*methods])


def viewer_of(request: Request) -> Viewer:
    """Return what is served."""
    viewer: Viewer = request.app.state.viewer
    return viewer


def run_of(request: Request) -> Run:
    """Return the run that the URL names. Raises UnknownRunError."""
    return viewer_of(request).runs.find(request.path_params["evaluation"], request.path_params["run"])


def rendered(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a template of this package as a response. What extends `run_layout.html` is given `run`."""
    viewer = viewer_of(request)
    html = viewer.environment.get_template(template).render(
        tabs=viewer.tabs, current_tab=_tab(request, viewer), **values
    )
    return HTMLResponse(html, status_code=status)


def _tab(request: Request, viewer: Viewer) -> str | None:
    """Return the place of the tab that a page of a run is under."""
    named = request.path_params
    if not named.keys() >= {"evaluation", "run"}:
        return None
    place = request.scope["path"].removeprefix(RUN.format(**named))
    under = [tab for _, tab in viewer.tabs if place == tab or place.startswith(f"{tab}/")]
    return max(under, key=len, default=None)
