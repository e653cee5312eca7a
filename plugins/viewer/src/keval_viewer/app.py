"""The application: the pages, what they share, the guard before them; and the port and the end of its server."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs
from anyio.to_thread import current_default_thread_limiter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from keval import KevalError
from keval.config.evaluation import Evaluation
from keval.errors import ConfigError
from keval_loopback.loopback import listen
from keval_loopback.serving import serve
from keval_viewer.guard import Guard
from keval_viewer.page import Page, Viewer, rendered
from keval_viewer.pages import PLAY_PAGES
from keval_viewer.play import Play
from keval_viewer.play_page.session import PlaySession
from keval_viewer.runs import UnknownRunError

_THREADS = 8
"""How many requests are answered at the same time."""
_LOG = logging.getLogger(__name__)


@attrs.frozen
class Serving:
    """An application that is being served: its address, and the token that lets a browser in."""

    base: str
    token: str = attrs.field(repr=False)

    def url(self, path: str = "/") -> str:
        """Return the URL by which a browser is let in, of a path without a query."""
        return f"{self.base}{path}?token={self.token}"


def build_app(root: Path, pages: Sequence[Page]) -> Starlette:
    """Return the application that serves pages of the runs in a results folder, to anybody: `Guard` stands before it.

    What is of the whole server, such as a play, is kept in the application's `state`.
    """
    app = Starlette(
        routes=[
            *(route for page in pages for route in page.routes),
            # Before `/static`, as the first route that fits answers.
            Mount("/static/viewer", StaticFiles(packages=[("keval_viewer", "static")])),
            Mount("/static", StaticFiles(packages=[("keval_viewer.report_page", "static")])),
        ],
        exception_handlers={HTTPException: _refused, KevalError: _refused, Exception: _broken},
    )
    app.state.viewer = Viewer.of(root, [(page.tab, page.place) for page in pages if page.tab])
    return app


@asynccontextmanager
async def serving(app: Starlette, listener: socket.socket, session: str | None = None) -> AsyncIterator[Serving]:
    """Serve an application behind a guard until the end of the context.

    `session` is what the cookie holds; with the same one, a browser that was let in stays so.
    """
    # Each thread that has read a large run keeps memory that others cannot use.
    current_default_thread_limiter().total_tokens = _THREADS
    token = secrets.token_urlsafe(24)
    port = listener.getsockname()[1]
    guard = Guard(app, port, token, session or secrets.token_urlsafe(24))
    async with serve(guard, listener=listener) as base:
        yield Serving(base, token)


async def _refused(request: Request, error: Exception) -> Response:
    """Show what is said of a page that is refused, or of a run that is not there, or cannot be read."""
    if isinstance(error, HTTPException):
        told = "There is no such page." if error.detail == "Not Found" else error.detail
        return rendered(request, "error.html", error.status_code, told=told)
    return rendered(request, "error.html", 404 if isinstance(error, UnknownRunError) else 500, told=str(error))


async def _broken(request: Request, error: Exception) -> Response:
    """Show that this is a defect, and tell it on the terminal, where somebody can copy it."""
    _LOG.error("%s: a defect of keval", request.url.path, exc_info=error)
    told = f"This is a defect of keval, not of your run: {error!r}. The terminal of `keval view` has more of it."
    return rendered(request, "error.html", 500, told=told)


@asynccontextmanager
async def play_app(
    evaluation: Evaluation | Path, results: Path, only: Iterable[str] = ()
) -> AsyncIterator[tuple[Starlette, Play]]:
    """Bring up a play until the end of the context; it is written under `results`. Raises what `Play.open` does."""
    async with Play.open(evaluation, results, only=only) as play, PlaySession.of(play) as session:
        app = build_app(results, PLAY_PAGES)
        app.state.play = session
        yield app, play


def listener_on(port: int | None, usual: int) -> socket.socket:
    """Listen on a port, or without one on the `usual` one, or on a free one if that is taken. Raises ConfigError."""
    if port is None:
        with suppress(OSError):
            return listen(usual)
    try:
        return listen(port or 0)
    except OSError as error:
        raise ConfigError(f"port {port}: {error.strerror}; choose another with --port, or 0") from error


async def open_browser(url: str) -> None:
    """Open a URL in the user's browser, if it would have a window; else Python opens one in the terminal."""
    windows = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    if sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in windows):
        await asyncio.to_thread(webbrowser.open, url)
