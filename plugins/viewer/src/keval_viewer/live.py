"""Pages that are renewed: server-sent events, and a run that is followed while it runs, read once for all browsers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import orjson
from starlette.responses import StreamingResponse

from keval import Run, RunError, Summary
from keval_analysis.follow import Follower, RunProgress
from keval_analysis.live_state import LiveState, read_live, watch

_SILENCE = 15.0
"""Seconds after which a comment is sent: only so is a browser that went away noticed."""
_LOG = logging.getLogger(__name__)
_EVERY = 1.0
"""Seconds between two looks at a run."""
_SHARE = 8
"""Statistics are made again after so many times the time that they took, so that a large run does not fill a core."""
_GRACE = 5.0
"""Seconds for which a run is followed further when the last browser went away, which may be back at once."""


@attrs.frozen
class Sent:
    """An event for a page: what it is, its data, and the id that a browser says again when it comes back."""

    event: str
    data: Any
    id: str | None = None

    def encode(self) -> bytes:
        """Return the event as it is sent; no text in it can end a line."""
        lines = [f"event: {self.event}".encode(), b"data: " + orjson.dumps(self.data)]
        if self.id is not None:
            lines.insert(0, f"id: {self.id}".encode())
        return b"\n".join(lines) + b"\n\n"


def event_stream(events: AsyncGenerator[Sent, None], retry: float = 1.0) -> StreamingResponse:
    """Return the response that sends events as they come. A browser that loses it asks again after `retry` seconds.

    What `Last-Event-ID` said is for whoever makes the events. The generator is closed when the browser goes away.
    """
    return StreamingResponse(
        _lines(events, retry), media_type="text/event-stream", headers={"cache-control": "no-store"}
    )


async def _lines(events: AsyncGenerator[Sent, None], retry: float) -> AsyncIterator[bytes]:
    yield f"retry: {round(retry * 1000)}\n\n".encode()
    waiting: asyncio.Future[Sent] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(anext(events))
            # `wait_for` would cancel the generator where it stands, and with it the event that comes next.
            done, _ = await asyncio.wait({waiting}, timeout=_SILENCE)
            if not done:
                yield b": still here\n\n"
                continue
            try:
                sent = waiting.result()
            except StopAsyncIteration:
                return
            waiting = None
            yield sent.encode()
    finally:
        if waiting is not None:
            # A generator cannot be closed while it runs.
            waiting.cancel()
            await asyncio.wait({waiting})
        await events.aclose()


@attrs.frozen
class Seen:
    """A run as it was seen: how far it has come, the statistics of a little earlier, and what it does just now."""

    run: Run
    progress: RunProgress
    summary: Summary
    live: LiveState | None


Draw: TypeAlias = Callable[[Seen], Mapping[str, str]]
"""Draws the parts of a page, by name, as HTML."""


@attrs.define(eq=False)
class _Followed:
    """One run: the parts of its page as they were drawn last."""

    run: Run
    draw: Draw
    parts: Mapping[str, str] = attrs.field(factory=dict)
    is_over: bool = False
    watchers: int = 0
    news: asyncio.Event = attrs.field(factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    _follower: Follower | None = None
    _summary: Summary | None = None
    _due: float = 0.0

    async def follow(self) -> None:
        """Look at the run again and again, until it ends or nobody looks any more."""
        alone_since: float | None = None
        while not self.is_over:
            began = time.monotonic()
            self.is_over = not await asyncio.to_thread(self._look)
            self.news.set()
            self.news = asyncio.Event()
            alone_since = None if self.watchers else alone_since or began
            if alone_since is not None and began - alone_since > _GRACE:
                return
            await asyncio.sleep(max(0.0, _EVERY - (time.monotonic() - began)))

    def _look(self) -> bool:
        """Draw what is new, and return whether the run is running."""
        # Before the files are read, so that what a run writes as it ends is still looked at.
        is_running = watch(self.run)
        try:
            drawn = {**self.draw(self._seen(is_last=not is_running))}
        except RunError as error:
            # While a run is resumed or removed, its files are not of one piece.
            drawn = {"problem": str(error)}
        # At once, as this is a thread of its own, and the event loop may be reading the parts.
        self.parts = {**self.parts, **drawn}
        return is_running

    def _seen(self, *, is_last: bool) -> Seen:
        self._follower = self._follower or Follower(self.run)
        self._follower.advance()
        began = time.monotonic()
        if self._summary is None or began >= self._due or is_last:
            self._summary = self._follower.summary()
            now = time.monotonic()
            self._due = now + _SHARE * (now - began)
        return Seen(self.run, self._follower.progress(), self._summary, read_live(self.run))


@attrs.define(eq=False)
class Following:
    """The runs that are followed just now. It belongs to the event loop that it is first used in."""

    _runs: dict[Path, _Followed] = attrs.field(factory=dict, init=False)

    async def first(self, run: Run, draw: Draw, within: float) -> Mapping[str, str]:
        """Return the parts of a page as they are now; nothing if they take longer than so many seconds to draw."""
        async with self._watched(run, draw) as followed:
            if not followed.parts and not followed.is_over:
                with suppress(TimeoutError):
                    await asyncio.wait_for(followed.news.wait(), within)
            return followed.parts

    async def events(self, run: Run, draw: Draw) -> AsyncGenerator[Sent, None]:
        """Yield the parts of a page, and then those that change; at the end `ended`."""
        sent: dict[str, str] = {}
        async with self._watched(run, draw) as followed:
            while True:
                # Before the parts are looked at, or else what changes meanwhile wakes nobody.
                news = followed.news
                changed = {part: html for part, html in followed.parts.items() if sent.get(part) != html}
                for part, html in changed.items():
                    yield Sent("part", {"name": part, "html": html})
                sent |= changed
                if followed.is_over and not changed:
                    yield Sent("ended", {})
                    return
                if not changed:
                    await news.wait()

    @asynccontextmanager
    async def _watched(self, run: Run, draw: Draw) -> AsyncIterator[_Followed]:
        """Follow a run as long as the context is open, and a little longer."""
        followed = self._runs.get(run.path)
        # A task that is done is forgotten only when the loop next calls back.
        if followed is None or followed.task is None or followed.task.done():
            followed = self._runs[run.path] = _Followed(Run(run.path), draw)
            followed.task = asyncio.create_task(followed.follow(), name=f"follow {run.id}")
            followed.task.add_done_callback(lambda task: self._ended(run.path, task))
        followed.watchers += 1
        try:
            yield followed
        finally:
            followed.watchers -= 1

    def _ended(self, path: Path, task: asyncio.Task[None]) -> None:
        followed = self._runs.get(path)
        # The run may be followed anew by now.
        if followed is None or followed.task is not task:
            return
        del self._runs[path]
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("following %s: a defect of keval", path, exc_info=error)
            # Pages that watch it end, and do not wait for what never comes.
            followed.is_over = True
            followed.news.set()
