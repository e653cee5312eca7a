"""Contexts: the records that keval hands to agents, context providers and judges, and that contexts give back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import attrs

from keval.records.cassettes import ServerCassette, ServerTrafficLog
from keval.records.end_state import Conventions, EndState
from keval.records.interventions import Intervention
from keval.records.models import Model, ModelAccess
from keval.records.servers import McpServer, ServerAddress, ServerLogin
from keval.records.transcript import Blob, Message
from keval.records.trial import Sample, Trial
from keval.seams.judgement_builder import JudgementBuilder
from keval.seams.live_events import EmitEvent
from keval.seams.request_log import TextLog
from keval.seams.transcript_builder import TranscriptBuilder
from keval.seams.use_meter import UseMeter

Isolation: TypeAlias = Literal["auto", "condition", "trial"]
DynamicTools: TypeAlias = Literal["fail", "follow", "freeze"]
BringUp: TypeAlias = "Callable[[ServerSpec], AbstractAsyncContextManager[ServerSpec]]"
"""Brings up what a server needs, and yields the server to connect to. Raises PreflightError."""


@attrs.frozen
class TrialInfo:
    """One attempt at a trial, as a context is told of it. `repetition` and `attempt` count from 1.

    `workspace` is the folder that the agent will work in, if it has one, and `conventions` what it finds there by
    itself.
    """

    id: str
    sample: Sample
    agent: str
    condition: str
    repetition: int = 1
    attempt: int = 1
    workspace: Path | None = None
    conventions: Conventions | None = None


@attrs.frozen
class WorkingFolder:
    """An empty folder that is made for a server that keval starts, and removed with it.

    Every trial that has a process of its own has a folder of its own. It begins with a copy of what is in `copy`.
    """

    fresh: bool = True
    copy: Path | None = None

    def __attrs_post_init__(self) -> None:
        if not self.fresh:
            raise ValueError("`fresh: false` creates no folder; remove it, or give a path instead of the mapping")


WORKSPACE = "{workspace}"
"""What stands for the folder of a trial in the options of a server."""


def works_in_workspace(context: object) -> bool:
    """Return whether the options of a context say that its server works in the workspace of each trial."""
    # Options are texts, lists or mappings, all of which are searched at once as one text.
    return WORKSPACE in str([getattr(context, name, None) for name in ("args", "env", "cwd")])


class ServerClient(Protocol):
    """What a server is told of its client, and how that answers it. Only the plugin that made it looks inside."""


@attrs.frozen
class ServerSpec(ServerAddress):
    """An MCP server that a context gives, before anybody is connected to it.

    A `stdio` server has `command`, `args`, `env` and `cwd`; the others have `url`, `headers` and perhaps a `login`, by
    which all sessions with it are authenticated. keval connects to it and offers it to agents through the tap; with
    `tap=False` agents connect to it themselves.

    `isolation` says whether the trials of a condition share one connection (`condition`) or each trial has its own
    (`trial`). With `auto` they share it if every tool that is offered is read-only by its `readOnlyHint` and answers
    equal calls alike, or if `keeps_trials_apart`, which a bundle sets for a server that does so by what it is told. At
    most `max_clients` trials of a run use it at once. `folder` gives each process one of its own in place of `cwd`.

    `meta` goes with every call through the tap as entries of `_meta`; `trial_facts` are the same for servers of one
    trial, as variables `KEVAL_…` or headers `x-keval-…`: for a process only with `isolation: trial` or without the tap,
    as others may be started before their trial is known. `timeout` bounds a call and `startup_timeout` the start, in
    seconds; progress extends a call up to `max_timeout`. `dynamic_tools` says what a change of the tools does to a
    trial, `server_instructions` whether agents are told the server's instructions. `client` is what the server is told
    of who uses it.

    `protocol` is the revision of MCP to speak with it, or `newest`; `None` is the handshake, if it has one.

    `bring_up` brings up what the server needs of this machine when it is first connected to, for as long as it is: it
    is given the server, and yields the one to connect to, which may have another `command` or `url`.

    keval sets `max_result_bytes`, that of `execution`: a larger result fails the trial.
    """

    timeout: float = 60.0
    startup_timeout: float = 30.0
    tap: bool = True
    isolation: Isolation = "auto"
    max_clients: int | None = None
    meta: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    max_result_bytes: int | None = None
    keeps_trials_apart: bool = False
    folder: WorkingFolder | None = None
    trial_facts: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    max_timeout: float | None = None
    dynamic_tools: DynamicTools = "fail"
    server_instructions: bool = True
    protocol: str | None = None
    client: ServerClient | None = None
    login: ServerLogin | None = attrs.field(default=None, eq=False, repr=False)
    bring_up: BringUp | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def uses_workspace(self) -> bool:
        """Whether it works in the workspace of a trial: `{workspace}` stands in its `args`, `env` or `cwd`."""
        return any(WORKSPACE in text for text in (*self.args, *self.env.values(), self.cwd or ""))

    def in_workspace(self, folder: Path) -> ServerSpec:
        """Return the server of a trial with this workspace, which no other trial shares."""
        path = str(folder)
        # A working directory is relative to the config's folder, and what stands before a whole path does not count.
        _, named, below = (self.cwd or "").partition(WORKSPACE)
        return attrs.evolve(
            self,
            isolation="trial" if self.uses_workspace else self.isolation,
            args=tuple(text.replace(WORKSPACE, path) for text in self.args),
            env={name: text.replace(WORKSPACE, path) for name, text in self.env.items()},
            cwd=path + below if named else self.cwd,
        )


@attrs.frozen
class ServerUse:
    """The use that a run, or one attempt at a trial, makes of a server.

    `interventions` are made to it, first to last, and `aliases` maps a tool's name to the one that the agent gets. By
    `seed` and `trial`, whatever an intervention draws by chance is the same again. `start_ahead` is how many processes
    may be started before the trials that they are for, 0 where a hook plugin prepares trials. An attempt that has it
    `in_turn` must not use it while another one does that has it so.

    `traffic_log` keeps what passes between the trial and the server, if the run is recorded. From a `cassette` it is
    played: nobody brings it up, or connects to it, unless it `asks_live` what the cassette does not have. `emit` takes
    the live events of the tap, and `meter` counts calls through the tap, if trials have limits. `capabilities` are
    those of its agent, if they are known before it connects. `models` are those that fields of the context name, by
    field, for what the server asks of a model; `model_headers` go with every request to them.
    """

    server: ServerSpec
    interventions: tuple[Intervention, ...] = ()
    aliases: Mapping[str, str] = attrs.field(factory=dict)
    seed: int = 0
    trial: TrialInfo | None = None
    start_ahead: int = 0
    in_turn: bool = False
    traffic_log: ServerTrafficLog | None = None
    cassette: ServerCassette | None = None
    asks_live: bool = False
    emit: EmitEvent | None = None
    meter: UseMeter | None = None
    capabilities: Mapping[str, Any] | None = None
    models: Mapping[str, Model] = attrs.field(factory=dict)
    model_headers: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def name(self) -> str:
        """The name of the server."""
        return self.server.name


@attrs.frozen
class SandboxedCommand:
    """The `words` of a command to shut in, which starts in `cwd` with `env`.

    It may write in `writable`: its home, and the workspace `work`. It reaches `urls`, which are on loopback, and reads
    the programs and files that it `needs`: of a program all that was installed with it. `root` has its home and what
    keval wrote for it, and nothing that keval reads again.
    """

    words: Sequence[str]
    cwd: Path
    env: Mapping[str, str] = attrs.field(repr=False)
    root: Path
    work: Path
    writable: Sequence[Path]
    urls: Sequence[str] = ()
    needs: Sequence[Path] = ()


class Sandbox(Protocol):
    """Shuts the program of an agent in."""

    def command(self, command: SandboxedCommand) -> AbstractAsyncContextManager[Sequence[str]]:
        """Yield the words that start the command shut in, for as long as it runs; they are started outside, in `/`.

        Raises:
            TrialError: the sandbox does not start, or cannot let it reach a URL.
        """
        ...


class Workspace(Protocol):
    """The folder of one attempt at a trial."""

    folder: Path
    """Where the agent works."""
    sandbox: Sandbox | None
    """What shuts the agent in; `None` without one."""

    async def begin(self) -> None:
        """Note how the folder is now, as the agent begins; an adapter that adds files of its own does so again.

        Raises:
            TrialError: of stage `context`.
        """
        ...

    async def end(self, keep: Callable[[Blob], object]) -> EndState:
        """Return what has changed since then, without checks; `keep` takes the content of artifacts."""
        ...


@attrs.frozen
class Provision:
    """What a context gives to one attempt at a trial: a part of the system prompt, MCP servers, and facts.

    keval connects to each `ServerSpec`. It hands an `McpServer` on as it is; its connection and log are the context's.
    `facts` are what the context lets the agent find out, such as preferences that it has stored: metrics get them over
    those of the sample, by their names, and no prompt shows them. `text_log` follows texts that the context has put
    into the prompt or the workspace, and `plugins` are folders of plugins for an agent that takes such.
    """

    instructions: str = ""
    servers: tuple[ServerSpec | McpServer, ...] = ()
    facts: Mapping[str, Any] = attrs.field(factory=dict)
    text_log: TextLog | None = None
    plugins: tuple[Path, ...] = ()


@attrs.frozen
class Context:
    """What an agent is handed for one attempt at a trial, besides the sample; `repetition` and `attempt` count from 1.

    `instructions` is the whole system prompt. `history` is what user and assistant said before the trial.
    `model_headers` go with every model request. `seed` differs between repetitions and is the same for every arm.
    `facts` are what contexts give for metrics, and no agent shows them to its model. `model` is set by adapters that
    hand the context on to a function of the user's. An agent that works in a folder works in that of `workspace`, if
    the trial has one, and takes `plugins`. No reply over HTTP is read beyond `max_reply_bytes`. Adapters report to
    `builder` as things happen, as a trial may be cut short.

    If it `streams`, somebody reads the answer as it is written: an adapter whose framework can have its model stream
    does so, and reports each piece of text with `builder.streamed`.
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
    streams: bool = False
    facts: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    model: ModelAccess | None = None
    workspace: Workspace | None = attrs.field(default=None, eq=False)
    plugins: tuple[Path, ...] = ()
    # The default of `execution.max_reply_bytes`, for contexts that are made by hand.
    max_reply_bytes: int = 20_000_000
    builder: TranscriptBuilder = attrs.field(factory=TranscriptBuilder, eq=False, repr=False)

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of all tools that the condition offers."""
        return tuple(tool for server in self.servers for tool in server.tools)


@attrs.frozen
class JudgeContext:
    """What a judge is handed for one attempt at a judgement, besides trial and rubrics.

    `repetition` is the judge's own; it and `attempt` count from 1. `seed` differs between its repetitions and samples,
    and is the same for every arm.
    `model_headers` go with every model request. The judge reports what it took to `builder`. `against` is the trial
    that a `ComparingJudge` compares with, on the same question; it has no id, agent, condition or model either.
    """

    repetition: int = 1
    attempt: int = 1
    seed: int = 0
    model_headers: Mapping[str, str] = attrs.field(factory=dict)
    against: Trial | None = attrs.field(default=None, repr=False)
    builder: JudgementBuilder = attrs.field(factory=JudgementBuilder, eq=False, repr=False)
