"""Live events of trials, and a feed from which any number of slow readers can read them."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import attrs

if TYPE_CHECKING:
    import asyncio

EventKind: TypeAlias = Literal[
    "trial_started",
    "turn_started",
    "model_called",
    "model_refused",
    "text_streamed",
    "said",
    "tool_called",
    "tool_returned",
    "server_called",
    "server_returned",
    "trial_finished",
    "scored",
    "play_changed",
]

EmitEvent: TypeAlias = "Callable[[EventKind, Mapping[str, Any]], object]"
"""Takes the kind and data of a live event of one attempt, and makes no event while nobody listens."""

_KEPT = 10_000
"""How many events a feed keeps for readers that fall behind or come back."""


@attrs.frozen
class LiveEvent:
    """Something that happened in a trial just now. `at` is Unix time in seconds; `data` depends on the kind.

    `trial_started` has `sample`, `agent`, `condition`; `turn_started` `turn` and `text`; `model_called` `usage`;
    `model_refused` `status`, `message`, `waited`; `text_streamed` `turn` and `text`, a piece of what the agent is about
    to have `said` (`turn`, `text`); `tool_called` `name`, `arguments`, `id`; `tool_returned` `name`, `id`, `result`,
    `error`, `duration`. `server_called` (`server`, `tool`, `arguments`, `call`) and `server_returned` (`server`,
    `tool`, `call`, `error`, `duration`) are of the tap, when a call is sent to its server and has come back; `call`
    numbers those of the attempt to that server, from 1. `trial_finished` tells that an attempt ended: `failure` is the
    kind of its failure, if it failed, with `stage` and `message`. `scored` has the fields of a score: `metric`,
    `judge`, the judge's `repetition`, `value`, `neutral`, `reason`, `details`, and the kind of its `failure`. Every
    duration is in seconds. `play_changed` is of no trial: `what` changed in a play that is open.
    """

    kind: EventKind
    trial: str
    attempt: int
    at: float
    data: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class FeedItem:
    """An event as a reader gets it: its number in the feed, from 0, and how many before it the reader has missed."""

    number: int
    event: LiveEvent
    missed: int = 0


def _event() -> asyncio.Event:
    import asyncio  # plugins are named, and commands listed, without it

    return asyncio.Event()


@attrs.define(eq=False)
class Feed:
    """The latest events, for readers in the same event loop.

    `publish` never waits, so that a slow reader costs a run nothing: a reader that falls behind by more than the feed
    keeps misses events, and is told how many.
    """

    kept: int = _KEPT
    count: int = attrs.field(default=0, init=False)
    """How many events were published."""
    _events: deque[LiveEvent] = attrs.field(init=False)
    _news: asyncio.Event = attrs.field(factory=_event, init=False)
    _is_closed: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._events = deque(maxlen=self.kept)

    def publish(self, event: LiveEvent) -> None:
        """Hand an event to all readers."""
        self._events.append(event)
        self.count += 1
        self._wake()

    def close(self) -> None:
        """End all readers, once they have read what there is."""
        self._is_closed = True
        self._wake()

    async def read(self, start: int = 0) -> AsyncIterator[FeedItem]:
        """Yield the events from number `start` on, as they come, until the feed is closed."""
        following = start
        while True:
            oldest = self.count - len(self._events)
            missed = max(0, oldest - following)
            following = max(following, oldest)
            if following < self.count:
                event = self._events[following - oldest]
                yield FeedItem(following, event, missed)
                following += 1
            elif self._is_closed:
                return
            else:
                await self._news.wait()

    def _wake(self) -> None:
        self._news.set()
        self._news = _event()
