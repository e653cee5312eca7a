"""An MCP server of an attempt, played: each call and request gets what the recorded one got."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from keval.recording.course import Course, next_equal
from keval.recording.difference import first_difference_of_call
from keval.tapes import Deliver, ServerTraffic, ServerTrafficKind

__all__ = ["PlayedServer"]


@attrs.frozen(eq=False)
class PlayedServer:
    """Plays one server; see `keval.tapes.ServerTape`.

    `left` are the recorded exchanges that were not asked for yet, in their order. `listing` returns what the server
    listed before the first trial.
    """

    course: Course
    name: str
    left: list[ServerTraffic]
    listing: Callable[[], Mapping[str, Any]]

    def listed(self) -> Mapping[str, Any]:
        return self.listing()

    def opened(self) -> ServerTraffic | None:
        return next((each for each in self.left if each.kind == "opened"), None)

    def hear(self, deliver: Deliver) -> None:
        self.course.hear(self.name, deliver)

    async def play(
        self, kind: ServerTrafficKind, method: str, params: Mapping[str, Any], deliver: Deliver
    ) -> ServerTraffic:
        asked = ServerTraffic(self.name, kind, method, self.course.scrubbed(dict(params)))
        following = [each for each in self.left if (each.kind, each.method) == (kind, method)]
        if kind == "closed":
            return await self._close(following, asked)
        if self.course.missed is not None:
            raise self.course.missed
        if kind == "notified":  # it may name a request by a number that differs every time, and nobody answers it
            if not following:
                return asked
            found: ServerTraffic | None = following[0]
        else:
            found = next_equal(following, lambda each: each.params == asked.params)
        if found is None:
            if following:
                self.course.miss(f"the server {self.name!r}: {_difference(following[0], asked)}")
            what = f"call of `{asked.params.get('name')}`" if kind == "call" else f"request {method}"
            await self.course.beyond_end(f"the recording has no further {what} at the server {self.name!r} here")
        self.left.remove(found)
        self.course.hear_during(found, deliver)
        await self.course.begin(found)
        try:
            await self.course.turn(found)
        finally:
            self.course.end(found)
        return found

    async def _close(self, following: list[ServerTraffic], asked: ServerTraffic) -> ServerTraffic:
        """End the way to the server; what the recording does not have of that is no miss."""
        if not following:
            return asked
        if following[0].ended is not None:
            await self.course.deliver_before(following[0].ended)
        return following[0]


def _difference(recorded: ServerTraffic, now: ServerTraffic) -> str:
    if now.kind != "call":
        return first_difference_of_call(now.method, recorded.params, now.params)
    was, tool = recorded.params.get("name"), str(now.params.get("name"))
    if was != tool:
        return f"`{tool}` is called, and the recording has a call of `{was}` here"
    return first_difference_of_call(tool, *(each.params.get("arguments") or {} for each in (recorded, now))) or (
        first_difference_of_call(tool, recorded.params, now.params)
    )
