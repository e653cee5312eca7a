"""Contexts: the records that keval hands to agents, context providers and judges, and that contexts give back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from keval.recorder import JudgementRecorder, Recorder
from keval.records import Message, Sample, ToolCall

__all__ = [
    "CallLog",
    "Context",
    "Isolation",
    "JudgeContext",
    "McpServer",
    "Provision",
    "ServerSpec",
    "ToolOffer",
    "Transport",
    "TrialInfo",
]

Transport: TypeAlias = Literal["stdio", "http", "sse"]
Isolation: TypeAlias = Literal["condition", "trial"]


@attrs.frozen
class TrialInfo:
    """One attempt at a trial, as a context is told of it. `repetition` and `attempt` count from 1."""

    id: str
    sample: Sample
    agent: str
    condition: str
    repetition: int = 1
    attempt: int = 1


@attrs.frozen
class ServerSpec:
    """An MCP server that a context gives, before anybody is connected to it.

    A `stdio` server has `command`, `args`, `env` and `cwd`; the others have `url` and `headers`. keval connects to it
    and offers it to agents through the tap; with `tap=False` agents connect to it themselves. `isolation` says whether
    the trials of a condition share one connection or each trial has its own. `meta` goes with every call through the
    tap as entries of `_meta`. `timeout` bounds a call and `startup_timeout` the start, in seconds. A result of more
    than `max_result_bytes` fails the trial; keval sets it from `execution.max_result_bytes`, and `in_turn` for attempts
    that must not use the server while another one does that has `in_turn`.
    """

    name: str
    transport: Transport
    url: str | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    cwd: str | None = None
    timeout: float = 60.0
    startup_timeout: float = 30.0
    tap: bool = True
    isolation: Isolation = "condition"
    meta: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    max_result_bytes: int | None = None
    in_turn: bool = False


@attrs.define
class CallLog:
    """The calls of one attempt at a trial to one MCP server, as the tap recorded them.

    `calls` are in the order in which they ended. `lost` says why the server was lost, if it was, and `kind` what kind
    of failure that is. `bystander` says that a call of another trial may have been the cause.
    """

    calls: list[ToolCall] = attrs.field(factory=list)
    lost: str | None = None
    kind: str = "server_lost"
    bystander: bool = False


@attrs.frozen
class McpServer:
    """How an agent reaches one MCP server in one trial.

    Behind the tap, `transport` is `http`, `url` leads to the tap and `log` records what passes. Without the tap the
    agent connects directly by `url` and `headers`, or starts `command`, and `log` is `None`. `tools` are the names that
    the server listed before the first trial: what the agent must offer its model. `timeout` bounds a call, in seconds.
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
    """What a server offers: the names of its tools, and a SHA-256 of their definitions if keval read them."""

    server: str
    tools: tuple[str, ...]
    digest: str | None = None


@attrs.frozen
class Provision:
    """What a context gives to one attempt at a trial: a part of the system prompt, and MCP servers.

    keval connects to each `ServerSpec`. It hands an `McpServer` on as it is; its connection and log are the context's.
    """

    instructions: str = ""
    servers: tuple[ServerSpec | McpServer, ...] = ()


@attrs.frozen
class Context:
    """What an agent is handed for one attempt at a trial, besides the sample; `repetition` and `attempt` count from 1.

    `instructions` is the whole system prompt. `history` is what user and assistant said before the trial.
    `model_headers` go with every model request. `seed` differs between repetitions and is the same for every arm.
    Adapters report to `recorder` as things happen, so that a trial that is cut short keeps what it had.
    """

    trial: str = ""
    instructions: str = ""
    servers: tuple[McpServer, ...] = ()
    model_headers: Mapping[str, str] = attrs.field(factory=dict)
    seed: int = 0
    condition: str = ""
    repetition: int = 1
    attempt: int = 1
    history: tuple[Message, ...] = ()
    recorder: Recorder = attrs.field(factory=Recorder, eq=False, repr=False)

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of all tools that the condition offers."""
        return tuple(tool for server in self.servers for tool in server.tools)


@attrs.frozen
class JudgeContext:
    """What a judge is handed for one attempt at a judgement, besides trial and rubrics.

    `repetition` is the judge's own; it and `attempt` count from 1. `seed` differs between its repetitions and samples,
    and is the same for every arm.
    `model_headers` go with every model request. The judge reports what it took to `recorder`.
    """

    repetition: int = 1
    attempt: int = 1
    seed: int = 0
    model_headers: Mapping[str, str] = attrs.field(factory=dict)
    recorder: JudgementRecorder = attrs.field(factory=JudgementRecorder, eq=False, repr=False)
