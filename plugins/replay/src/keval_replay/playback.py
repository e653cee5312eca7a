"""The course of a recorded attempt, which is kept while its traffic is played: in which order exchanges end, what the
servers say by themselves, and when the time of the attempt is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

import attrs

from keval.records.cassettes import Deliver, ModelTraffic, ReplayMissError, ServerTraffic, Traffic, TrafficError

T = TypeVar("T", ModelTraffic, ServerTraffic)

ORDER_WAIT_SECONDS = 1.0
"""Seconds for which an exchange waits for those that ended before it: after a change they may never come."""
_SETTLE = 0.3
"""Seconds that an agent has for its last answers, before the time of an attempt ends that ended so in the recording."""
_NEWS = ("asked", "told", "listed")
"""What comes from a server by itself."""
_BORDERS = ("opened", "closed")
"""The ends of the way to a server, which no other exchange waits for."""


@attrs.define(eq=False)
class Playback:
    """Leads the exchanges of one attempt.

    `is_late` says that the time of the attempt was over when it was recorded, and `expire` ends it as if it were.
    `scrubbed` returns plain data without its secrets. `missed` is the first thing that the recording does not have.
    `hearers` are told what a server says by itself, by its name, and those of `during` what belongs to an exchange, by
    the number of its beginning.
    """

    traffic: Sequence[Traffic]
    is_late: bool
    expire: Callable[[], object]
    scrubbed: Callable[[Any], Any]
    missed: ReplayMissError | None = attrs.field(default=None, init=False)
    hearers: dict[str, Deliver] = attrs.field(factory=dict, init=False)
    during: dict[int, Deliver] = attrs.field(factory=dict, init=False)
    _news: list[ServerTraffic] = attrs.field(init=False)
    _numbers: Sequence[int] = attrs.field(init=False)
    _open: set[int] = attrs.field(init=False)
    _abandoned: set[int] = attrs.field(init=False)
    _changed: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _delivering: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _tasks: set[asyncio.Task[None]] = attrs.field(factory=set, init=False)
    _expiry: asyncio.TimerHandle | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._news = [each for each in self.traffic if isinstance(each, ServerTraffic) and each.kind in _NEWS]
        asked = [each for each in self._news if each.kind == "asked"]
        aside = (*_NEWS, *_BORDERS)
        played = [each for each in self.traffic if not (isinstance(each, ServerTraffic) and each.kind in aside)]
        self._numbers = [number for each in played for number in (each.began, each.ended) if number is not None]
        self._open = {each.ended for each in (*played, *asked) if each.ended is not None}
        self._abandoned = {each.began for each in played if each.ended is None}

    def close(self) -> None:
        """End what is still under way."""
        for task in self._tasks:
            task.cancel()
        if self._expiry is not None:
            self._expiry.cancel()

    def miss(self, problem: str) -> NoReturn:
        """Note that the recording does not have what is asked, and end the attempt. Raises ReplayMissError."""
        if self.missed is None:
            self.missed = ReplayMissError(problem)
            self.expire()
        raise self.missed

    async def beyond_end(self, problem: str) -> NoReturn:
        """Answer what nothing was recorded for: never, if the time of the attempt was over by then.

        Raises:
            ReplayMissError: it was not.
        """
        if not self.is_late:
            self.miss(problem)
        self._expire_soon()
        await asyncio.get_running_loop().create_future()
        raise AssertionError  # the future has no result

    async def begin(self, exchange: Traffic) -> None:
        """Begin an exchange, after all that servers said by themselves before it."""
        await self.deliver_before(exchange.began)
        self._abandoned.discard(exchange.began)
        self._expire_at_end()

    async def turn(self, exchange: Traffic) -> None:
        """Wait until an exchange may end: those that ended before it have ended, or none has for `ORDER_WAIT_SECONDS`.

        One that was abandoned waits for ever. Before it may end, all is handed over that servers said meanwhile, and
        until the next exchange began or ended: whoever is answered goes on with what it knows.
        """
        end = exchange.ended
        if end is None:
            await asyncio.get_running_loop().create_future()
            return
        while news := next((each for each in self._news if each.began < end and self._hearer(each)), None):
            await self._ended_before(news.began)
            await self.deliver_before(news.began + 1)
        await self._ended_before(end)
        await self.deliver_before(min((number for number in self._numbers if number > end), default=None))

    async def _ended_before(self, number: int) -> None:
        while any(each < number for each in self._open):
            changed = self._changed
            try:
                async with asyncio.timeout(ORDER_WAIT_SECONDS):
                    await changed.wait()
            except TimeoutError:
                self._open = {each for each in self._open if each >= number}

    def end(self, exchange: Traffic) -> None:
        """Note that an exchange has ended."""
        if exchange.ended in self._open:
            self._open.remove(exchange.ended)
            self._changed.set()
            self._changed = asyncio.Event()
            self._expire_at_end()

    async def deliver_before(self, number: int | None) -> None:
        """Hand over what servers said by themselves before this number, or all of it, in its order."""
        if not self._news:
            return
        async with self._delivering:
            for news in [each for each in self._news if number is None or each.began < number]:
                if (deliver := self._hearer(news)) is None:
                    continue
                self._news.remove(news)
                if news.kind == "asked":
                    task = asyncio.create_task(self._ask(news, deliver))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                else:
                    await deliver(news)

    def _hearer(self, news: ServerTraffic) -> Deliver | None:
        """Return who is told; what belongs to a call that has not begun waits for it."""
        return self.hearers.get(news.server) if news.during is None else self.during.get(news.during)

    async def _ask(self, news: ServerTraffic, deliver: Deliver) -> None:
        """Ask what a server asked. It went on as it was answered then, so it must be answered so again."""
        answer = await deliver(news)
        if news.ended is None:
            return
        told = self.scrubbed(dict(answer)) if isinstance(answer, Mapping) else answer
        if not _is_answer(news, told):
            with suppress(ReplayMissError):
                asked = f"the server {news.server!r} asked for {news.method}"
                self.miss(f"{asked}, and the answer differs from the recorded one: {told}")
        self.end(news)

    def _expire_at_end(self) -> None:
        """End the time of an attempt that was late, when nothing is left but what was abandoned."""
        if self.is_late and not self._open and not self._abandoned:
            self._expire_soon()

    def _expire_soon(self) -> None:
        if self._expiry is None:
            self._expiry = asyncio.get_running_loop().call_later(_SETTLE, self.expire)


def next_equal(exchanges: Iterable[T], is_equal: Callable[[T], bool]) -> T | None:
    """Return the first exchange that is equal: the next one, or one of those that overlap with it."""
    end: int | None = None
    for number, each in enumerate(exchanges):
        if number == 0:
            end = each.ended
        elif end is not None and each.began > end:
            return None
        if is_equal(each):
            return each
    return None


def _is_answer(recorded: ServerTraffic, answer: Mapping[str, Any] | TrafficError | None) -> bool:
    if isinstance(answer, TrafficError):
        return recorded.error is not None and (recorded.error.kind, recorded.error.code) == (answer.kind, answer.code)
    return recorded.error is None and (recorded.result or {}) == (answer or {})
