"""The traffic log: collects what passes between a trial or a judgement, its models and its servers, as it happens."""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeVar

import attrs

from keval.errors import ModelError, TrialError
from keval.records.cassettes import (
    ModelTraffic,
    ServerTraffic,
    ServerTrafficKind,
    ServerTrafficLog,
    Traffic,
    TrafficError,
)
from keval.records.models import ModelRequest, ModelResponse, Next

T = TypeVar("T", ModelTraffic, ServerTraffic)

_HEADERS = ("content-type", "x-should-retry")
"""Headers of a response that change what an agent does with it; beside them, those of the next two."""
_RETRY_AFTER, _REQUEST_ID = "retry-after", "request-id"

_ABANDONED = TrafficError("abandoned")


@attrs.define(eq=False)
class TrafficLog:
    """Collects the traffic of all attempts at one trial, or at one judgement.

    Beginnings and ends are numbered together, over all models and servers. `now` returns Unix time, and `clock` seconds
    of which only differences mean something.
    """

    now: Callable[[], float] = time.time
    clock: Callable[[], float] = time.perf_counter
    _numbers: itertools.count[int] = attrs.field(factory=lambda: itertools.count(1), init=False)
    _opened: dict[int, _Open] = attrs.field(factory=dict, init=False)

    async def ask(self, request: ModelRequest, send: Next) -> ModelResponse:
        """Send a model request and keep it with its response; the innermost middleware of a run that is recorded."""
        opened = self._begin(ModelTraffic(request.asker, request))
        try:
            response = await send(request)
        except Exception as error:
            opened.end(_error(error))
            raise
        headers = {name: value for name, value in response.headers.items() if _is_kept(name)}
        opened.came = {"status": response.status, "headers": headers}
        response.chunks = opened.kept(response.chunks)
        return response

    def server(self, name: str, attempt: int = 1) -> ServerTrafficLog:
        """Return what keeps the traffic of one attempt with a server."""
        return _AttemptServerLog(self, name, attempt)

    def traffic(self) -> list[Traffic]:
        """Return what has passed so far, in the order in which it began. What has not ended was abandoned."""
        return [opened.traffic() for opened in self._opened.values()]

    def _begin(self, begun: Traffic) -> _Open:
        begun = attrs.evolve(begun, error=_ABANDONED, began=next(self._numbers), at=self.now())
        opened = self._opened[begun.began] = _Open(self, begun, self.clock())
        return opened


@attrs.define(eq=False)
class _Open:
    """An exchange that has begun, with what has come of it by now. It is abandoned until it ends.

    `came` are the status and the headers of a response, which a model has sent before its body.
    """

    log: TrafficLog
    exchange: Traffic
    since: float
    came: Mapping[str, Any] = attrs.field(factory=dict)
    chunks: list[bytes] = attrs.field(factory=list)

    def end(self, error: TrafficError | None = None, **came: Any) -> None:
        seconds = self.log.clock() - self.since
        self.exchange = attrs.evolve(self.exchange, error=error, ended=next(self.log._numbers), seconds=seconds, **came)

    async def kept(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Pass on the chunks of a response."""
        try:
            async for chunk in chunks:
                self.chunks.append(chunk)
                yield chunk
        except Exception as error:
            self.end(_error(error))
            raise
        self.end()

    def traffic(self) -> Traffic:
        if isinstance(self.exchange, ServerTraffic):
            return self.exchange
        return attrs.evolve(self.exchange, chunks=tuple(self.chunks), **self.came)


@attrs.frozen
class _AttemptServerLog:
    """Keeps the traffic of one attempt with one server; see `keval.records.cassettes.ServerTrafficLog`."""

    log: TrafficLog
    name: str
    attempt: int

    def begin(
        self,
        kind: ServerTrafficKind,
        method: str = "",
        params: Mapping[str, Any] | None = None,
        during: int | None = None,
    ) -> int:
        begun = ServerTraffic(self.name, kind, method, params or {}, during=during, attempt=self.attempt)
        return self.log._begin(begun).exchange.began

    def end(self, number: int, result: Mapping[str, Any] | None = None, error: TrafficError | None = None) -> None:
        self.log._opened[number].end(error, result=result)


def _is_kept(header: str) -> bool:
    return header in _HEADERS or header.startswith(_RETRY_AFTER) or header.endswith(_REQUEST_ID)


def _error(error: Exception) -> TrafficError:
    """Return an error as data, with what is needed to raise the same again."""
    message = str(error)
    if isinstance(error, ModelError):
        return TrafficError("unreachable", message, error.kind, details=_told(error, status=error.status))
    if isinstance(error, TrialError):
        details = _told(error, stage=error.stage, retryable=error.retryable)
        return TrafficError("failed", message, error.kind, details=details)
    return TrafficError("broken", message, details={"type": type(error).__name__})


def _told(error: TrialError, **details: Any) -> dict[str, Any]:
    told = {**details, "retry_after": error.retry_after}
    return {name: value for name, value in told.items() if value is not None}
