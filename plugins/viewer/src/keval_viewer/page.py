"""A page: its routes and its tab, the URLs of what it links to, and how a template becomes a response."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import attrs
from jinja2 import ChoiceLoader, Environment, PackageLoader
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from keval import Run
from keval.errors import typed
from keval_report.words import run_name
from keval_viewer.live import Following
from keval_viewer.report_page.rendering import environment
from keval_viewer.runs import Listing, Runs

RUN = "/runs/{evaluation}/{run}"
"""The path of a run as a route."""


def evaluation_url(run: Run) -> str:
    """Return the URL of the runs of the run's evaluation."""
    return f"/?{urlencode({'evaluation': run.path.parent.name})}"


def run_url(run: Run, place: str = "") -> str:
    """Return the URL of a run, or of a place in it, such as `/trials`."""
    return f"/runs/{_part(run.path.parent.name)}/{_part(run.path.name)}{place}"


def trial_url(run: Run, trial: str) -> str:
    """Return the URL of a trial by its id."""
    return run_url(run, f"/trials/{_part(trial)}")


def sample_url(run: Run, sample: str) -> str:
    """Return the URL of a sample by its id."""
    return run_url(run, f"/samples/{_part(sample)}")


def raw_url(run: Run, kind: str, trial: str) -> str:
    """Return the URL of what a run has of a trial: its record (`trials`), first model `requests`, or `artifacts`."""
    return run_url(run, f"/raw/{kind}/{_part(trial)}")


def _part(text: str) -> str:
    """Return a text as one part of a path; a browser would take `.` and `..` for other folders, however written."""
    return quote(text.encode("utf-8", "replace"), safe="")


@attrs.frozen
class Viewer:
    """The runs, their table, those that are followed, the templates, and the tabs of a run: names, and places in it.

    `revealed` says whose answers were shown to whom: what they say of them from then on is not blind.
    """

    runs: Runs
    listing: Listing
    following: Following
    environment: Environment
    tabs: Sequence[tuple[str, str]]
    revealed: set[tuple[Path, str, str]] = attrs.field(factory=set)

    @classmethod
    def of(cls, root: Path, tabs: Sequence[tuple[str, str]]) -> Viewer:
        """Return a viewer of a results folder."""
        templates = environment(
            ChoiceLoader([PackageLoader("keval_viewer"), PackageLoader("keval_viewer.report_page")])
        )
        known = (evaluation_url, raw_url, run_name, run_url, sample_url, trial_url, typed)
        templates.globals |= {each.__name__: each for each in known}
        runs = Runs(root)
        return cls(runs, Listing(runs), Following(), templates, tabs)


@attrs.frozen
class Page:
    """What a module of `keval_viewer.pages` has as `PAGE`.

    With `tab`, the pages of a run link to `/runs/{evaluation}/{run}` followed by `place`, under this name.
    """

    routes: Sequence[BaseRoute]
    tab: str | None = None
    place: str = ""


def run_route(place: str, endpoint: Callable[[Request, Run], Response]) -> Route:
    """Return the route of something that belongs to one run, such as `/trials`, which the endpoint gets.

    The endpoint is a plain function, and runs in a thread of its own, so it may read files.
    """
    return Route(f"{RUN}{place}", lambda request: endpoint(request, run_of(request)))


def form_route(place: str, endpoint: Callable[[Request, Mapping[str, Any]], Response]) -> Route:
    """Return the route of a form. The endpoint gets its fields, and runs in a thread of its own, as it writes files."""

    async def answer(request: Request) -> Response:
        form = await request.form()
        return await run_in_threadpool(endpoint, request, {**form})

    return Route(place, answer, methods=["POST"])


def number_of(request: Request, name: str) -> int | None:
    """Return a number of the URL's query; `None` where there is none, or none that a page of ours would write."""
    given = request.query_params.get(name, "")
    return int(given) if given.isdecimal() and len(given) < 10 else None


def position_of(request: Request, usual: int | None = None) -> int:
    """Return the place in a queue that the URL has as `at`, by default the usual one. Raises HTTPException: none."""
    at = number_of(request, "at") if "at" in request.query_params else usual
    if at is None:
        raise HTTPException(404)
    return at


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
    # The longest, as each page is also under the tab whose place is empty.
    return max(under, key=len, default=None)
