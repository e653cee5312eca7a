"""What records a run: keeps the traffic of its trials and judgements, and what its servers list."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from keval.errors import ModelError, PluginWarning, PreflightError, TrialError
from keval.records.cassettes import (
    ModelTraffic,
    ServerTraffic,
    ServerTrafficKind,
    ServerTrafficLog,
    Traffic,
    TrafficError,
)
from keval.records.manifest import AnswersEntry
from keval.records.models import Asker, Endpoint, ModelRequest, ModelResponse, Next
from keval.records.servers import McpServer
from keval.records.trial import Failure
from keval.redaction import Redactor
from keval.seams.contexts import ServerUse
from keval.store.serialization import dump
from keval_replay.frames import FrameFile, FrameKey, encoded_frame, traffic_file
from keval_replay.recording import traffic_frame
from keval_replay.traffic_lines import RecordedEndpoint


@attrs.frozen
class RecordedTraffic:
    """Keeps the traffic of one attempt, and changes nothing; see `keval.seams.traffic.AttemptTraffic`."""

    log: TrafficLog
    number: int

    def begin(self) -> None:
        """Do nothing."""

    def limit(self, seconds: float) -> float:
        return seconds

    def overruled(self, failure: Failure | None, late: TrialError) -> TrialError | None:
        return None

    async def ask(self, request: ModelRequest, send: Next, relayed: Callable[[bytes], object]) -> ModelResponse:
        if request.asks_for_reply:
            relayed(request.body)
        return await self.log.ask(request, send)

    def served(self, use: ServerUse) -> ServerUse:
        return attrs.evolve(use, traffic_log=self.log.server(use.name, self.number))


@attrs.frozen(eq=False)
class Recorder:
    """Records a run; see `keval.seams.traffic.RunTraffic`. The entry point `traffic` in the group `keval.recorders`."""

    redact: Redactor
    plays: bool = attrs.field(default=False, init=False)
    _logs: dict[FrameKey, TrafficLog] = attrs.field(factory=dict, init=False)
    _listed: dict[FrameKey, TrafficLog] = attrs.field(factory=dict, init=False)
    _unattributed: set[Asker] = attrs.field(factory=set, init=False)

    def endpoint(self, model: str) -> Endpoint | None:
        return None

    def listing(self, use: ServerUse | McpServer, condition: str | None) -> ServerUse | McpServer:
        if isinstance(use, McpServer) or not use.server.tap:
            told = f"{_unseen(use)} is recorded, and the run cannot be replayed; remove `tap: false` from the context"
            warnings.warn(told, PluginWarning, stacklevel=2)
        if isinstance(use, McpServer):
            return use
        log = self._listed[FrameKey("server", condition=condition, server=use.name)] = TrafficLog()
        kept = log.server(use.name)
        if use.cassette is None:
            return attrs.evolve(use, traffic_log=kept)
        kept.end(kept.begin("listed"), use.cassette.listed())  # what is played lists the same again
        return use

    def answers(self, server: str, condition: str | None) -> AnswersEntry | None:
        return None

    @contextmanager
    def attempt(self, asker: Asker, expire: Callable[[], object]) -> Iterator[RecordedTraffic]:
        key, number = FrameKey.of(asker), asker.attempt or 1
        if number == 1:
            self._logs[key] = TrafficLog()
        yield RecordedTraffic(self._logs.setdefault(key, TrafficLog()), number)

    def frame(self, asker: Asker) -> bytes | None:
        key = FrameKey.of(asker)
        log = self._logs.pop(key, None)
        return traffic_frame(key, log.traffic() if log is not None else (), self.redact)

    def unattributed(self, asker: Asker) -> None:
        """Warn, once for each agent or judge, that a request is not recorded, as nobody knows whose it is."""
        if asker not in self._unattributed:
            self._unattributed.add(asker)
            headers = "Context.model_headers" if asker.role == "agent" else "JudgeContext.model_headers"
            told = f"the {asker.role} {asker.label!r} sends model requests without {headers}; they are not recorded"
            warnings.warn(told, PluginWarning, stacklevel=2)

    async def ask(self, request: ModelRequest, send: Next, relayed: Callable[[bytes], object]) -> ModelResponse:
        return await send(request)

    @contextmanager
    def writing(self, run: Path, endpoints: Mapping[str, Endpoint]) -> Iterator[FrameFile]:
        with FrameFile(traffic_file(run)) as file:
            frames = [traffic_frame(key, log.traffic(), self.redact) for key, log in self._listed.items()]
            for model, endpoint in endpoints.items():
                urls = {wire: self.redact.text(url) for wire, url in endpoint.urls.items()}
                known = RecordedEndpoint(model, urls, endpoint.simulated, endpoint.wants_trial, endpoint.model)
                frames.append(encoded_frame(FrameKey("endpoint", model=model), [dump(known)]))
            file.append(b"".join(frames))
            yield file


def check_is_seen(use: ServerUse | McpServer) -> ServerUse:
    """Return the use of a server that is to be played. Raises PreflightError: no recording has it."""
    if isinstance(use, ServerUse) and use.server.tap:
        return use
    raise PreflightError(f"{_unseen(use)} was recorded; run it live, or through the tap")


def _unseen(use: ServerUse | McpServer) -> str:
    return f"server {use.name!r}: agents connect to it directly, so nothing of it"


_HEADERS = ("content-type", "x-should-retry")
"""Headers of a response that change what an agent does with it, beside those that name a wait or the request."""

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
        headers = {
            name: value
            for name, value in response.headers.items()
            if name in _HEADERS or name.startswith("retry-after") or name.endswith("request-id")
        }
        opened.came = {"status": response.status, "headers": headers}
        # The exchange ends with the last chunk, and whoever asked reads on after this returns.
        response.chunks = opened.kept(response.chunks)
        return response

    def server(self, name: str, attempt: int = 1) -> ServerTrafficLog:
        """Return what keeps the traffic of one attempt with a server."""
        return _AttemptServerLog(self, name, attempt)

    def traffic(self) -> list[Traffic]:
        """Return what has passed so far, in the order in which it began. What has not ended was abandoned."""
        return [opened.traffic() for opened in self._opened.values()]

    def _begin(self, begun: Traffic) -> _Open:
        # Abandoned until `end` says otherwise, as what is cancelled does not come back to say so.
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
