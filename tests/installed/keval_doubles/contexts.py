"""A context without servers, and one with a server that is only written down."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import attrs

from keval import ToolCall
from keval.plugin import McpServer, PreflightError, Provision, ServerLostError, ServerSpec, TrialInfo
from keval.records.servers import CallLog


@attrs.frozen
class Notes:
    """Gives instructions, and the tools it is told to; `calls` is what its tap claims to have seen."""

    text: str = ""
    tools: tuple[str, ...] = ()
    down: bool = False
    direct: bool = False
    headers: Mapping[str, str] = attrs.field(factory=dict)
    _runs: dict[str, int] = attrs.field(factory=dict, init=False)

    @asynccontextmanager
    async def start(self, label: str) -> AsyncIterator["_Source"]:
        if self.down:
            raise PreflightError(f"server {label!r} did not come up: no such file")
        if self.text == "bug":
            raise RuntimeError("a bug in a context")
        yield _Source(label, self)


@attrs.frozen
class _Source:
    label: str
    notes: Notes

    @property
    def servers(self) -> Sequence[McpServer]:
        return [self._server(None)] if self.notes.tools else []

    @asynccontextmanager
    async def open(self, trial: TrialInfo) -> AsyncIterator[Provision]:
        sample = trial.sample
        odd = sample.metadata.get("context_yields")
        if odd == "nothing":
            yield None  # type: ignore[misc]
            return
        if odd == "stranger":
            yield Provision(servers=(ServerSpec("stranger", "http", "http://127.0.0.1:1/mcp"),))
            return
        if sample.metadata.get("context_down"):
            raise ServerLostError("the server went away")
        seen = [
            ToolCall(**{"arguments": {}, "duration": 0.25, "server": self.label, "executions": 1, **call})
            for call in sample.metadata.get("seen", ())
        ]
        log = None if self.notes.direct else CallLog(seen, sample.metadata.get("lost"))
        yield Provision(self.notes.text, (self._server(log),) if self.notes.tools else ())

    def _server(self, log: CallLog | None) -> McpServer:
        return McpServer(self.label, "http", "http://127.0.0.1:1/mcp", tools=self.notes.tools, log=log)
