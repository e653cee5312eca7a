"""The models of an attempt, played: each request gets what the recorded one got."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import attrs

from keval.errors import ModelError, TrialError
from keval.models import ModelRequest, ModelResponse
from keval.recording.course import Course, next_equal
from keval.recording.difference import first_difference
from keval.recording.volatile import Compared
from keval.tapes import ModelTraffic, TrafficError

__all__ = ["PlayedModels"]


@attrs.frozen(eq=False)
class PlayedModels:
    """Answers model requests; `left` are the recorded ones that were not asked for yet, in their order.

    `compared` returns what of a request is compared.
    """

    course: Course
    left: list[ModelTraffic]
    compared: Callable[[ModelRequest], Compared]

    async def send(self, request: ModelRequest, relayed: Callable[[bytes], object]) -> ModelResponse:
        """Answer a request as it was answered.

        `relayed` is told the body of a request for a reply as it was recorded, with what is volatile in it; of one that
        the recording does not have, its own.

        Raises:
            ReplayMissError: the recording has no such request here.
            ModelError, TrialError: what was raised in place of an answer.
        """
        if self.course.missed is not None:
            raise self.course.missed
        asked = self.compared(request)
        found = next_equal(self.left, lambda each: self.compared(each.request) == asked)
        if request.asks_for_reply:
            relayed(request.body if found is None else found.request.body)
        if found is None:
            if self.left:
                different = first_difference(self.compared(self.left[0].request), asked)
                self.course.miss(f"the request to {asked.model} is not the recorded one; {different}")
            await self.course.beyond_end(f"the recording has no further request to {asked.model} here")
        self.left.remove(found)
        await self.course.begin(found)
        if found.status is None:
            await self.course.turn(found)
            self.course.end(found)
            raise _raised(found.error)
        return ModelResponse(found.status, found.headers, self._body(found))

    async def _body(self, found: ModelTraffic) -> AsyncIterator[bytes]:
        """Yield a response's body, and end the exchange with its last chunk."""
        try:
            *first, last = found.chunks or (b"",)
            for chunk in first:
                yield chunk
            if found.error is not None:
                yield last
                await self.course.turn(found)
                raise _raised(found.error)
            await self.course.turn(found)
            self.course.end(found)
            yield last
        finally:
            self.course.end(found)


def _raised(error: TrafficError | None) -> Exception:
    """Return what was raised in place of an answer, or of the rest of one."""
    if error is None:
        return ModelError("the recording has no answer to this request")
    if error.kind == "unreachable":
        unreachable = ModelError(error.message, status=error.details.get("status"))
        cause = error.details.get("cause")
        unreachable.__cause__ = None if cause is None else ConnectionError(cause)
        return unreachable
    if error.kind == "failed":
        stage, again = error.details.get("stage", "model"), bool(error.details.get("retryable"))
        return TrialError(error.message, stage=stage, kind=error.failure, retryable=again)
    # Adapters and proxies tell the name of an error that keval does not explain.
    named: type[Exception] = type(str(error.details.get("type", "ConnectionError")), (Exception,), {})
    return named(error.message)
