"""The traffic of one attempt at a trial, or at a judgement, played to whoever asks for it again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from keval.errors import ModelError, TrialError
from keval.recording.difference import first_difference, first_difference_of_call
from keval.recording.playback import Course, next_equal
from keval.recording.volatile import Compared
from keval.records.cassettes import (
    Deliver,
    ModelTraffic,
    ReplayMissError,
    ServerTape,
    ServerTraffic,
    ServerTrafficKind,
    Traffic,
    TrafficError,
)
from keval.records.models import ModelRequest, ModelResponse
from keval.records.transcript import Refusal
from keval.records.trial import Failure


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


@attrs.frozen(eq=False)
class PlayedServer:
    """Plays one server; see `keval.records.cassettes.ServerTape`.

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


_STANDSTILL = 120.0
"""Seconds after which an agent that gets recorded answers at once, and does not end, is given up."""


@attrs.frozen
class RecordedAttempt:
    """An attempt as it was recorded: its traffic, and what became of it.

    `refusals` are the model requests that were repeated below whoever asked, `None` if only the traffic tells of them.
    `is_last` says that no attempt followed.
    """

    traffic: Sequence[Traffic] = ()
    failure: Failure | None = None
    refusals: Sequence[Refusal] | None = None
    is_last: bool = True

    @property
    def is_late(self) -> bool:
        """Whether its time was over."""
        return self.failure is not None and self.failure.kind == "timeout"


@attrs.frozen(eq=False)
class AttemptTape:
    """Plays one attempt; what asks and what is asked see no difference.

    `listed` returns what a server of the attempt listed before the first trial. The rest is as in `Course` and
    `PlayedModels`.
    """

    recorded: RecordedAttempt
    compared: Callable[[ModelRequest], Compared]
    scrubbed: Callable[[Any], Any]
    expire: Callable[[], object]
    listed: Callable[[str], Mapping[str, Any]] = lambda server: {}
    _course: Course = attrs.field(init=False)
    _models: PlayedModels = attrs.field(init=False)
    _refusals: list[Refusal] = attrs.field(init=False)

    @_course.default
    def _make_course(self) -> Course:
        ordered = sorted(self.recorded.traffic, key=lambda each: each.began)
        return Course(ordered, self.recorded.is_late, self.expire, self.scrubbed)

    @_models.default
    def _make_models(self) -> PlayedModels:
        requests = [each for each in self._course.traffic if isinstance(each, ModelTraffic)]
        return PlayedModels(self._course, requests, self.compared)

    @_refusals.default
    def _make_refusals(self) -> list[Refusal]:
        return list(self.recorded.refusals or ())

    @property
    def missed(self) -> ReplayMissError | None:
        """The first request that the recording does not have, which is what the attempt failed by."""
        return self._course.missed

    def begin(self) -> None:
        """Raise what the attempt failed by when it was recorded, if that was before there could be any traffic."""
        failure = self.recorded.failure
        if failure is not None and failure.stage == "context":
            again = not self.recorded.is_last
            raise TrialError(failure.message, stage=failure.stage, kind=failure.kind, retryable=again)

    def overruled(self, failure: Failure | None, late: TrialError) -> TrialError | None:
        """Return what the attempt fails by, whatever whoever asked made of it: a miss, or that its time was over.

        `failure` is what it failed by here. Time that was over before an answer is over, though the answer comes now.
        """
        return self.missed or (late if self.recorded.is_late and failure is None else None)

    def limit(self, seconds: float) -> float:
        """Return the time limit of the attempt, in seconds, given that of a live one.

        A replay is late where the recording is. That many trials are replayed at once, on a small machine, does not
        make it so; only an agent that has come to a standstill does.
        """
        return max(seconds, _STANDSTILL)

    async def ask(self, request: ModelRequest, relayed: Callable[[bytes], object] = lambda body: None) -> ModelResponse:
        """Answer a model request; nothing is sent. See `PlayedModels.send`."""
        return await self._models.send(request, relayed)

    def repeated(self, status: int | None, message: str) -> Refusal | None:
        """Return what is known of a refusal with this status, if the request was then sent again."""
        if self.recorded.refusals is None:
            return Refusal(status, message, 0.0) if self._models.left else None
        found = next((each for each in self._refusals if each.status == status), None)
        if found is not None:
            self._refusals.remove(found)
        return found

    def server(self, name: str) -> ServerTape:
        """Return what plays a server."""
        exchanges = [each for each in self._course.traffic if isinstance(each, ServerTraffic) and each.server == name]
        return PlayedServer(self._course, name, exchanges, partial(self.listed, name))

    def close(self) -> None:
        """End what is still being played."""
        self._course.close()
