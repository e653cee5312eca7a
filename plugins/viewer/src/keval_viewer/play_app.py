"""The application of a play: its page, the pages of its runs, and the play itself, which is brought up and ended."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette

from keval.plugin import Evaluation
from keval_viewer.app import build_app
from keval_viewer.pages import PLAY_PAGES
from keval_viewer.play import Play
from keval_viewer.playing.session import PlaySession

__all__ = ["play_app"]


@asynccontextmanager
async def play_app(
    evaluation: Evaluation | Path, results: Path, only: Iterable[str] = ()
) -> AsyncIterator[tuple[Starlette, Play]]:
    """Bring up a play until the end of the context; it is written under `results`. Raises what `Play.open` does."""
    async with Play.open(evaluation, results, only=only) as play, PlaySession.of(play) as session:
        app = build_app(results, PLAY_PAGES)
        app.state.play = session
        yield app, play
