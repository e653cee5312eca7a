"""Contexts: what an agent is handed for one trial, and the live record of the tool calls it makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

from keval.recorder import Recorder
from keval.records import ToolCall

__all__ = ["CallLog", "Context", "McpServer", "ToolOffer", "Transport"]

Transport: TypeAlias = Literal["stdio", "http", "sse"]


@attrs.define
class CallLog:
    """What keval itself saw of one trial's traffic with one MCP server.

    `calls` are in the order they ended; `lost` says why the server was lost, if it was.
    """

    calls: list[ToolCall] = attrs.field(factory=list)
    lost: str | None = None


@attrs.frozen
class McpServer:
    """How an agent reaches one MCP server.

    Behind the tap, `transport` is `http`, `url` leads to the tap and `log` records what passes. With `tap: false` the
    agent connects directly by `url` and `headers`, or starts `command` itself, and `log` is `None`. `tools` are the
    names the server listed before the first trial: what the agent must offer its model.
    """

    name: str
    transport: Transport
    url: str | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    cwd: str | None = None
    tools: tuple[str, ...] = ()
    timeout: float = 60.0
    log: CallLog | None = None


@attrs.frozen
class ToolOffer:
    """What a server offers, for the run's manifest: its tools' names and a SHA-256 of all their definitions."""

    server: str
    tools: tuple[str, ...]
    digest: str


@attrs.frozen
class Context:
    """What an agent gets for one attempt at a trial, besides the sample; repetitions and attempts count from 1.

    `instructions` is the whole system prompt. `model_headers` go with every model request. `seed` differs between
    repetitions and is the same for every arm. Adapters report to `recorder` as things happen, so that a trial that is
    cut short keeps what it had.
    """

    trial: str = ""
    instructions: str = ""
    servers: tuple[McpServer, ...] = ()
    model_headers: Mapping[str, str] = attrs.field(factory=dict)
    seed: int = 0
    condition: str = ""
    repetition: int = 1
    attempt: int = 1
    recorder: Recorder = attrs.field(factory=Recorder, eq=False, repr=False)

    @property
    def tools(self) -> tuple[str, ...]:
        """Every tool name the condition offers."""
        return tuple(tool for server in self.servers for tool in server.tools)
