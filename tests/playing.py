"""Plays that are served in a thread of this process, and read by HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import attrs
import httpx2
from starlette.applications import Starlette

from keval_viewer.app import Serving, play_app
from tests import viewing

__all__ = ["Player", "play_served", "playing"]


@contextmanager
def play_served(config: Path, results: Path) -> Iterator[Serving]:
    """Serve a play of a config, whose runs are under `results`."""

    @asynccontextmanager
    async def app() -> AsyncIterator[Starlette]:
        async with play_app(config, results) as (built, _):
            yield built

    with viewing.served(app) as running:
        yield running


@attrs.frozen
class Player:
    """Somebody who plays without a browser: sends what the page's forms send."""

    client: httpx2.Client

    def act(self, action: str, **fields: str) -> tuple[int, str]:
        """Send a form as the page's script does; returns status and text."""
        sent = self.client.post(f"/play/{action}", data=fields, headers={"origin": self.origin, "accept": "text/plain"})
        return sent.status_code, sent.text

    @property
    def origin(self) -> str:
        return str(self.client.base_url).rstrip("/")

    def page(self, path: str = "/") -> str:
        return self.client.get(path).raise_for_status().text

    def events(self, after: int | None = None) -> Iterator[tuple[str, dict[str, Any], int]]:
        """The events of the play as they come, all or those after number `after`: name, data and number."""
        headers = {} if after is None else {"last-event-id": str(after)}
        with self.client.stream("GET", "/play/events", headers=headers) as response:
            event: dict[str, str] = {}
            for line in _lines(response):
                if line.startswith(":"):
                    raise TimeoutError("nothing has happened for a quarter of a minute")
                name, _, value = line.partition(": ")
                if line:
                    event[name] = value
                elif "data" in event:
                    yield event["event"], json.loads(event["data"]), int(event["id"])
                    event = {}

    def settled(self, text: str = "All answers are there and scored") -> str:
        """The page when its status says that all is done; it is looked at whenever something has changed."""
        for name, _, _ in self.events():
            if name == "changed" and text in (page := self.page()):
                return page
        raise AssertionError("the events have ended")


def _lines(response: httpx2.Response) -> Iterator[str]:
    """The lines of a stream of events: a line separator of Unicode ends none."""
    rest = b""
    for piece in response.iter_bytes():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.decode("utf-8")


@contextmanager
def playing(running: Serving) -> Iterator[Player]:
    """A player that was let in."""
    with viewing.client_of(running) as client:
        yield Player(client)
