"""What records a run: keeps the traffic of its trials and judgements, and what its servers list."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs

from keval.errors import PluginWarning, PreflightError, TrialError
from keval.records.manifest import AnswersEntry
from keval.records.models import Asker, Endpoint, ModelRequest, ModelResponse, Next
from keval.records.servers import McpServer
from keval.records.trial import Failure
from keval.redaction import Redactor
from keval.seams.contexts import ServerSpec
from keval.store.serialization import dump
from keval_replay.frames import FrameFile, FrameKey, encoded_frame, traffic_file
from keval_replay.recording import traffic_frame
from keval_replay.traffic_lines import RecordedEndpoint
from keval_replay.traffic_log import TrafficLog


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

    def served(self, server: ServerSpec) -> ServerSpec:
        return attrs.evolve(server, traffic_log=self.log.server(server.name, self.number))


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

    def listing(self, server: ServerSpec | McpServer, condition: str | None) -> ServerSpec | McpServer:
        if not isinstance(server, ServerSpec) or not server.tap:
            told = (
                f"{_unseen(server)} is recorded, and the run cannot be replayed; remove `tap: false` from the context"
            )
            warnings.warn(told, RuntimeWarning, stacklevel=2)
        if not isinstance(server, ServerSpec):
            return server
        log = self._listed[FrameKey("server", condition=condition, server=server.name)] = TrafficLog()
        kept = log.server(server.name)
        if server.cassette is None:
            return attrs.evolve(server, traffic_log=kept)
        kept.end(kept.begin("listed"), server.cassette.listed())  # what is played lists the same again
        return server

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


def check_is_seen(server: ServerSpec | McpServer) -> ServerSpec:
    """Return a server that is to be played. Raises PreflightError: no recording has it."""
    if isinstance(server, ServerSpec) and server.tap:
        return server
    raise PreflightError(f"{_unseen(server)} was recorded; run it live, or through the tap")


def _unseen(server: ServerSpec | McpServer) -> str:
    return f"server {server.name!r}: agents connect to it directly, so nothing of it"
