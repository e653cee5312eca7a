"""A recording in memory: what one attempt and one server said to each other, and its cassette."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from keval.plugin import PreflightError
from keval.records.cassettes import Deliver, ReplayMissError, ServerTraffic, ServerTrafficKind, TrafficError

__all__ = ["Kept", "MemoryCassette"]

_NEWS = ("asked", "told", "listed")


@attrs.define(eq=False)
class Kept:
    """Keeps traffic; see `keval.records.cassettes.ServerTrafficLog`. `called` is set when a call has begun."""

    traffic: dict[int, ServerTraffic] = attrs.field(factory=dict)
    called: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _numbers: Iterator[int] = attrs.field(factory=lambda: itertools.count(1))

    def begin(
        self,
        kind: ServerTrafficKind,
        method: str = "",
        params: Mapping[str, Any] | None = None,
        during: int | None = None,
    ) -> int:
        number = next(self._numbers)
        if kind == "call":
            self.called.set()
        self.traffic[number] = ServerTraffic("every", kind, method, params or {}, during=during, began=number)
        return number

    def end(self, number: int, result: Mapping[str, Any] | None = None, error: TrafficError | None = None) -> None:
        begun = self.traffic[number]
        assert begun.ended is None, "an exchange ends once"
        self.traffic[number] = attrs.evolve(begun, result=result, error=error, ended=next(self._numbers))

    def of(self, kind: ServerTrafficKind) -> list[ServerTraffic]:
        return [each for each in self.traffic.values() if each.kind == kind]

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(each.kind, each.method or str(each.params.get("name", ""))) for each in self.traffic.values()]


@attrs.define(eq=False)
class MemoryCassette:
    """Plays what was kept before the first trial, and of one attempt; see `keval.records.cassettes.ServerCassette`.

    Exchanges end in the order in which they ended.
    """

    before: Kept
    kept: Kept = attrs.field(factory=Kept)
    answers: list[Any] = attrs.field(factory=list)
    _left: dict[int, ServerTraffic] = attrs.field(init=False)
    _pending: set[int] = attrs.field(init=False)
    _hearer: Deliver | None = attrs.field(default=None, init=False)
    _changed: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        self._left = dict(self.kept.traffic)
        asked = [*self.kept.of("call"), *self.kept.of("request"), *self.kept.of("notified")]
        self._pending = {each.ended for each in asked if each.ended is not None}

    def listed(self) -> Mapping[str, Any]:
        for each in self.before.of("listed"):
            return each.result or {}
        raise PreflightError("nothing was kept")

    def opened(self) -> ServerTraffic | None:
        return next(iter(self.kept.of("opened")), None)

    def hear(self, deliver: Deliver) -> None:
        self._hearer = deliver

    async def play(
        self, kind: ServerTrafficKind, method: str, params: Mapping[str, Any], deliver: Deliver
    ) -> ServerTraffic:
        def is_asked(each: ServerTraffic) -> bool:
            return (each.kind, each.method, each.params) == (kind, method, params)

        found = next((each for each in self._left.values() if is_asked(each)), None)
        if found is None and kind == "notified":
            return ServerTraffic("every", kind, method, params)
        if found is None:
            raise ReplayMissError(f"the recording has no {kind} {method} of {params}")
        del self._left[found.began]
        if found.ended is None:
            await self._deliver(
                found, deliver, min(each.began for each in self._left.values() if each.kind not in _NEWS)
            )
            await asyncio.Event().wait()
            raise AssertionError
        while kind != "closed" and any(end < found.ended for end in self._pending):
            await self._changed.wait()
        await self._deliver(found, deliver, found.ended)
        self._pending.discard(found.ended)
        self._changed.set()
        self._changed = asyncio.Event()
        return found

    async def _deliver(self, played: ServerTraffic, deliver: Deliver, before: int) -> None:
        for each in [each for each in self._left.values() if each.kind in _NEWS and each.began < before]:
            hearer = self._hearer if each.during is None else deliver
            assert hearer is not None
            assert each.during in (None, played.began), "this cassette plays no progress of parallel calls"
            del self._left[each.began]
            self.answers.append(await hearer(each))
