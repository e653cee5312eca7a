"""The seam around the trials of a run and their requests: what keeps this traffic, or plays it in place of models.

A run that is recorded or replayed has a `RunTraffic`. In the group `keval.recorders`, keval asks for the names
`traffic`, which keeps what passes, and `results`, which gives recorded answers to live agents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from keval.errors import TrialError
from keval.records.interventions import RecordedResults
from keval.records.manifest import AnswersEntry
from keval.records.models import Asker, Endpoint, ModelRequest, ModelResponse, Next
from keval.records.servers import McpServer
from keval.records.trial import Failure
from keval.redaction import Redactor
from keval.seams import registry
from keval.seams.contexts import ServerUse, TrialInfo


class AttemptTraffic(Protocol):
    """The traffic of one attempt at a trial or at a judgement, as it is kept or played."""

    def begin(self) -> None:
        """Begin the attempt. Raises TrialError: it fails before there can be any traffic."""
        ...

    def limit(self, seconds: float) -> float:
        """Return the time limit of the attempt, in seconds, given that of any other one."""
        ...

    def overruled(self, failure: Failure | None, late: TrialError) -> TrialError | None:
        """Return what the attempt fails by, whatever came of it; `failure` is what it failed by, `late` a time-out."""
        ...

    async def ask(self, request: ModelRequest, send: Next, relayed: Callable[[bytes], object]) -> ModelResponse:
        """Answer a model request, by `send` or otherwise; `relayed` is told the body of a request for a reply."""
        ...

    def served(self, use: ServerUse) -> ServerUse:
        """Return the use of a server by the attempt with what keeps or plays its traffic."""
        ...


class FrameWriter(Protocol):
    """Writes the frames of the traffic of a run."""

    def append(self, frames: bytes) -> None:
        """Append frames and return when all are on disk. Raises RunError."""
        ...

    def write(self, frames: bytes) -> None:
        """Write frames, which are on disk after the next `append`. Raises RunError."""
        ...


class RunTraffic(Protocol):
    """Stands around the trials and judgements of a run, and around their requests."""

    @property
    def plays(self) -> bool:
        """Whether it answers in place of servers."""
        ...

    def endpoint(self, model: str) -> Endpoint | None:
        """Return the endpoint of a model that needs no provider, given as `provider/name`."""
        ...

    def listing(self, use: ServerUse | McpServer, condition: str | None) -> ServerUse | McpServer:
        """Return the use of a server with what keeps or plays what it lists at first. Raises PreflightError."""
        ...

    def answers(self, server: str, condition: str | None) -> AnswersEntry | None:
        """Return what a manifest says of a server's answers, if these were recorded ones already."""
        ...

    def attempt(self, asker: Asker, expire: Callable[[], object]) -> AbstractContextManager[AttemptTraffic]:
        """Yield the traffic of an attempt; `expire` ends the attempt as if its time were over. Raises RunError."""
        ...

    def frame(self, asker: Asker) -> bytes | None:
        """Return what was kept of all attempts at a trial or judgement, without secrets, if anything is to be."""
        ...

    def unattributed(self, asker: Asker) -> None:
        """Be told of a request by which nobody says of which attempt it is."""
        ...

    async def ask(self, request: ModelRequest, send: Next, relayed: Callable[[bytes], object]) -> ModelResponse:
        """Answer a model request that belongs to no attempt."""
        ...

    def writing(self, run: Path, endpoints: Mapping[str, Endpoint]) -> AbstractContextManager[FrameWriter]:
        """Yield what writes to the run directory, after the `endpoints` and what servers listed. Raises RunError."""
        ...


class RecordedServers(Protocol):
    """Recorded answers of the servers of a context, for agents that are live."""

    @property
    def entry(self) -> AnswersEntry:
        """What a manifest says of it."""
        ...

    def listing(self, use: ServerUse | McpServer, condition: str | None) -> ServerUse | McpServer:
        """Return the use of a server with what plays its listing before the first trial. Raises PreflightError."""
        ...

    def served(self, use: ServerUse, trial: TrialInfo, expire: Callable[[], object]) -> ServerUse:
        """Return the use of a server by an attempt with what plays it; `expire` ends the attempt."""
        ...


def recorder(redact: Redactor) -> RunTraffic:
    """Return what records a run. Raises PluginError: it is not installed."""
    traffic: RunTraffic = registry.load(registry.find("keval.recorders", "traffic"))(redact)
    return traffic


def recorded_servers(results: RecordedResults, redact: Redactor) -> RecordedServers:
    """Return the recorded answers that an intervention names. Raises PluginError, PreflightError: there are none."""
    servers: RecordedServers = registry.load(registry.find("keval.recorders", "results")).open(results, redact)
    return servers
