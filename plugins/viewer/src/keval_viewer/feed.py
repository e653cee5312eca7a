"""A feed of live events, from which any number of slow readers can read them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

import attrs

from keval.plugin import hookimpl
from keval.seams.live_events import LiveEvent

_KEPT = 10_000
"""How many events a feed keeps for readers that fall behind or come back."""


@attrs.define(eq=False)
class Feed:
    """The latest events, for readers in the same event loop.

    `publish` never waits, so that a slow reader costs a run nothing: a reader that falls behind by more than the feed
    keeps misses events, and is told how many. `hearers` are called with each event at once.
    """

    kept: int = _KEPT
    hearers: list[Callable[[LiveEvent], object]] = attrs.field(factory=list)
    count: int = attrs.field(default=0, init=False)
    """How many events were published."""
    _events: deque[LiveEvent] = attrs.field(init=False)
    _news: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _is_closed: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._events = deque(maxlen=self.kept)

    @hookimpl
    def keval_live_event(self, event: LiveEvent) -> None:
        """Hand on a live event of a run whose hook plugin the feed is; it has no secrets any more."""
        self.publish(event)

    def publish(self, event: LiveEvent) -> None:
        """Hand an event to all readers."""
        self._events.append(event)
        self.count += 1
        # Before readers wake: a page that is fetched for an event must find what hearers made of it.
        for hear in self.hearers:
            hear(event)
        self._wake()

    def close(self) -> None:
        """End all readers, once they have read what there is."""
        self._is_closed = True
        self._wake()

    async def read(self, start: int = 0) -> AsyncIterator[tuple[int, LiveEvent, int]]:
        """Yield the events from number `start` on, as they come, until the feed is closed.

        Each comes after its number in the feed, from 0, and before how many events the reader has missed.
        """
        following = start
        while True:
            oldest = self.count - len(self._events)
            missed = max(0, oldest - following)
            following = max(following, oldest)
            if following < self.count:
                event = self._events[following - oldest]
                yield following, event, missed
                following += 1
            elif self._is_closed:
                return
            else:
                await self._news.wait()

    def _wake(self) -> None:
        self._news.set()
        # A new one, as an event that stays set lets no reader wait again.
        self._news = asyncio.Event()
