"""A tape: the traffic of one attempt at a trial, or at a judgement, played to whoever asks for it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from keval.errors import TrialError
from keval.models import ModelRequest, ModelResponse
from keval.recording.course import Course
from keval.recording.played_models import PlayedModels
from keval.recording.played_server import PlayedServer
from keval.recording.volatile import Compared
from keval.records import Failure, Refusal
from keval.tapes import ModelTraffic, ReplayMissError, ServerTape, ServerTraffic, Traffic

__all__ = ["AttemptTape", "RecordedAttempt"]

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
