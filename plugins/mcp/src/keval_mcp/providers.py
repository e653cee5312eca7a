"""The context providers: one class per transport, whose fields are its options, and what they give to each trial."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias
from urllib.parse import quote

import attrs
from attrs.validators import ge, gt, optional

from keval.errors import PreflightError
from keval.records.models import Model
from keval.records.servers import KEEPS_TRIALS_APART, Sharing, Transport
from keval.records.trial import Sample
from keval.seams.contexts import (
    BringUp,
    DynamicTools,
    Isolation,
    Provision,
    ServerSpec,
    TrialInfo,
    WorkingFolder,
    works_in_workspace,
)
from keval.seams.interfaces import ContextSource
from keval_clients.network import SYSTEM, Tls, check_headers, check_variables
from keval_mcp.server.client import Client, client_of
from keval_mcp.server.options import Auth, Revision, find_command, is_url
from keval_mcp.text_log import FollowedTexts


def _is_url(provider: object, field: attrs.Attribute[str], url: str) -> None:
    if not is_url(url):
        raise ValueError(f"the {field.name} of a server is http://… or https://…; got {url!r}")


def _with_tap(provider: _Server, field: attrs.Attribute[Any], given: Any) -> None:
    if given != field.default and not provider.tap:
        raise ValueError(
            f"{field.name!r} must go with the tap, as keval does nothing for agents that connect to a server"
            " themselves; leave out tap: false"
        )


def _with_cert(provider: _Remote, field: attrs.Attribute[Any], given: Any) -> None:
    if given is not None and provider.cert is None:
        raise ValueError(f"{field.name!r} must go with 'cert'")


def _stands_alone(provider: _Remote, field: attrs.Attribute[Auth | None], auth: Auth | None) -> None:
    if auth is not None and "authorization" in {name.lower() for name in provider.headers}:
        raise ValueError("'auth' must stand alone; remove authorization from headers, or remove auth")


def _answers_apart(provider: _Server, field: attrs.Attribute[Client], client: Client) -> None:
    if client.answers_by_trial and provider.isolation == "condition":
        raise ValueError("'isolation' must be trial, as the client's model, or its script, answers a trial each")


def _can_be_spoken(provider: _Server, field: attrs.Attribute[Revision | None], protocol: Revision | None) -> None:
    if protocol not in (None, "2025-11-25") and provider._transport == "sse":
        raise ValueError(
            "HTTP+SSE ended with the revisions that begin by a handshake: write 2025-11-25, or use type: http if the"
            " server speaks streamable HTTP, too"
        )


def _fits_workspace(provider: Stdio, field: attrs.Attribute[Isolation], isolation: Isolation) -> None:
    if isolation == "condition" and works_in_workspace(provider):
        raise ValueError("'isolation' must be trial, as the server works in {workspace}, the folder of each trial")


Facts: TypeAlias = Callable[[Sample], Mapping[str, Any]]
"""What a bundle tells its server about a sample, beside the trial's id: JSON values by identifier.

A name such as `preferences` is `keval/preferences` in the `_meta` of every call behind the tap, and in a session that
belongs to one trial the header `x-keval-preferences` or the variable `KEVAL_PREFERENCES`.
"""


def no_facts(sample: Sample) -> Mapping[str, Any]:
    """Tell the server nothing but the trial's id."""
    return {}


Offer: TypeAlias = Literal["everything", "tools"]


@attrs.frozen
class ProxiedServer(ServerSpec):
    """A server with what this package's proxy is told of it alone.

    It may `offer` agents its tools alone, neither resources nor prompts nor skills. `texts` follows the resources and
    prompts that an attempt's agent asks for. `skills` are those that it hands out: `kept()` returns what a recording
    keeps of them, in JSON's types, and `restore` takes it again.
    """

    offer: Offer = "everything"
    texts: FollowedTexts | None = attrs.field(default=None, eq=False, repr=False)
    skills: Any = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen(kw_only=True)
class _Server:
    _transport: ClassVar[Transport]
    applies_middleware: ClassVar[bool] = True
    moved_keys: ClassVar[Mapping[str, str]] = {name: f"client: {{{name}: …}}" for name in ("elicitation", "roots")}
    tap: bool = True
    isolation: Isolation = "auto"
    max_clients: int | None = attrs.field(default=None, validator=optional(ge(1)))
    startup_timeout: float = attrs.field(default=30.0, validator=gt(0))
    timeout: float = attrs.field(default=60.0, validator=gt(0))
    max_timeout: float = attrs.field(default=600.0, validator=gt(0))
    dynamic_tools: DynamicTools = "fail"
    instructions: str = ""
    server_instructions: bool = attrs.field(default=True, validator=_with_tap)
    protocol: Revision | None = attrs.field(default=None, validator=[_with_tap, _can_be_spoken])
    offer: Offer = attrs.field(default="everything", validator=_with_tap)
    watch: tuple[str, ...] = ()  # the files of its code, for `--against`
    client: Client = attrs.field(default=Client(), validator=[_with_tap, _answers_apart])
    sampling_model: Model | None = attrs.field(init=False, repr=False)  # among the fields, where the core finds models

    @sampling_model.default
    def _asked_for_servers(self) -> Model | None:
        return self.client.sampling.model

    def planned_sharing(self) -> Sharing | None:
        """Return whether trials share the server, as far as the options say."""
        return planned_sharing(self._spec(""))

    def _spec(self, label: str) -> ProxiedServer:
        return ProxiedServer(
            name=label,
            transport=self._transport,
            timeout=self.timeout,
            max_timeout=self.max_timeout,
            dynamic_tools=self.dynamic_tools,
            startup_timeout=self.startup_timeout,
            tap=self.tap,
            isolation=self.isolation,
            max_clients=self.max_clients,
            server_instructions=self.server_instructions,
            protocol=self.protocol,
            client=self.client,
            offer=self.offer,
        )


@attrs.frozen(kw_only=True)
class Stdio(_Server):
    """An MCP server that keval starts as a process and talks to over its standard input and output.

    It inherits HOME, LOGNAME, PATH, SHELL, TERM and USER; whatever else it needs stands in `env`. `{workspace}` in
    `args`, `env` or `cwd` stands for the workspace of the trial, and each trial has a process of its own then.
    """

    _transport: ClassVar[Transport] = "stdio"
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    cwd: Path | WorkingFolder | None = None
    isolation: Isolation = attrs.field(default="auto", validator=_fits_workspace)

    @asynccontextmanager
    async def start(
        self, label: str, facts: Facts = no_facts, *, keeps_trials_apart: bool = False
    ) -> AsyncIterator[ContextSource]:
        """Offer the server to trials; keval starts it.

        `keeps_trials_apart` says that the server keeps what it remembers of trials apart, by what it is told of them.
        """
        server = attrs.evolve(
            self._spec(label), command=self.command, bring_up=self._bring_up, keeps_trials_apart=keeps_trials_apart
        )
        yield ServerSource(server, self.instructions, facts)

    @asynccontextmanager
    async def _bring_up(self, server: ServerSpec) -> AsyncIterator[ServerSpec]:
        """Find the command.

        Raises:
            PreflightError: the command or a folder is missing.
        """
        begun = server.folder.copy if server.folder else None
        if begun is not None and not begun.is_dir():
            raise PreflightError(f"server '{server.name}': '{begun}', which is to be copied, is not a folder")
        # The fresh folder is made later, so a relative command is looked for in what is copied into it.
        cwd = Path(server.cwd) if server.cwd is not None else begun
        command = find_command(server.name, self.command, self.env, cwd)
        self.client.prepare(server.name)
        yield attrs.evolve(server, command=command)

    def _spec(self, label: str) -> ProxiedServer:
        folder = self.cwd if isinstance(self.cwd, WorkingFolder) else None
        cwd = None if self.cwd is None or folder else str(self.cwd)
        return attrs.evolve(super()._spec(label), args=self.args, env=self.env, cwd=cwd, folder=folder)


@attrs.frozen(kw_only=True)
class _Remote(_Server):
    """The options of a server over HTTP; those of TLS are as in `keval_clients.Tls`, also for its OAuth."""

    url: str = attrs.field(validator=_is_url)
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False, validator=check_headers)
    auth: Auth | None = attrs.field(default=None, validator=[_with_tap, _stands_alone])
    verify: bool | Path = attrs.field(default=True, validator=_with_tap)
    cert: Path | None = attrs.field(default=None, validator=_with_tap)
    cert_key: Path | None = attrs.field(default=None, validator=_with_cert)
    cert_password: str | None = attrs.field(default=None, repr=False, validator=_with_cert)

    @asynccontextmanager
    async def start(
        self, label: str, facts: Facts = no_facts, *, keeps_trials_apart: bool = False, bring_up: BringUp | None = None
    ) -> AsyncIterator[ContextSource]:
        """Offer the server to trials; keval connects to it. `keeps_trials_apart` is as for `Stdio`.

        `bring_up` starts the server, for a bundle that brings one, and gives its URL.

        Raises PreflightError: the environment's variables for the network cannot be used.
        """
        check_variables()
        login, tls = None, Tls(self.verify, self.cert, self.cert_key, self.cert_password)
        if self.auth is not None or tls != SYSTEM:
            from keval_mcp.server.login import Login  # the MCP SDK takes 0.4 s to import

            login = Login.shared(label, self.auth, self.url, tls)

        @asynccontextmanager
        async def ready(server: ServerSpec) -> AsyncIterator[ServerSpec]:
            self.client.prepare(server.name)
            if login is not None:
                await login.prepare()
            async with bring_up(server) if bring_up is not None else nullcontext(server) as up:
                yield up

        server = attrs.evolve(self._spec(label), login=login, bring_up=ready, keeps_trials_apart=keeps_trials_apart)
        yield ServerSource(server, self.instructions, facts)

    def _spec(self, label: str) -> ProxiedServer:
        return attrs.evolve(super()._spec(label), url=self.url, headers=self.headers)


@attrs.frozen(kw_only=True)
class Http(_Remote):
    """An MCP server that is already running and speaks streamable HTTP at `url`."""

    _transport: ClassVar[Transport] = "http"


@attrs.frozen(kw_only=True)
class Sse(_Remote):
    """An MCP server that is already running and speaks the older HTTP+SSE transport at `url`."""

    _transport: ClassVar[Transport] = "sse"


@attrs.frozen(eq=False)
class ServerSource:
    """Gives every trial one server and its instructions; `facts` are what the server is told about the sample.

    The server is told with every call. One that serves a single trial may be told in its headers or its environment,
    too; see `ServerSpec.told`.
    """

    server: ProxiedServer
    instructions: str = ""
    facts: Facts = no_facts

    @property
    def servers(self) -> Sequence[ServerSpec]:
        """The one server."""
        return (self.server,)

    @asynccontextmanager
    async def open(self, trial: TrialInfo) -> AsyncIterator[Provision]:
        """Give the server to one attempt at a trial."""
        # Each attempt has an id of its own, so that a retry need not find what a failed attempt left behind.
        told = {"trial": trial.id, "attempt": secrets.token_hex(8), **self.facts(trial.sample)}
        # Headers and variables can hold a text as it is, and any other value as JSON.
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in told.items()}
        meta = {f"keval/{name}": value for name, value in told.items()}
        server = attrs.evolve(self.server, meta=meta, trial_facts=texts)
        log = FollowedTexts()
        yield Provision(self.instructions, (attrs.evolve(server, texts=log),), text_log=log)


def tell(server: ServerSpec) -> ServerSpec:
    """Return `server` as one trial connects to it, with what it is `told` in its environment or its headers.

    Headers hold no more than ASCII, so there the text is percent-encoded.
    """
    if server.transport == "stdio":
        env = {f"KEVAL_{name.upper()}": text for name, text in server.trial_facts.items()}
        return attrs.evolve(server, env={**server.env, **env})
    headers = {f"x-keval-{name}": quote(text, safe="") for name, text in server.trial_facts.items()}
    return attrs.evolve(server, headers={**server.headers, **headers})


_NAMED = 3
"""How many tools are named that may change something."""


def planned_sharing(server: ServerSpec) -> Sharing | None:
    """Return whether trials share a server, and why; `None` if that depends on its tools."""
    if not server.tap:
        return Sharing(False, "agents connect to it themselves (tap: false)", verified=_is_seen(server))
    if server.isolation == "trial":
        return Sharing(False, "isolation: trial", verified=_is_seen(server))
    if server.uses_workspace:
        return Sharing(False, "it works in the workspace of each trial")
    if client_of(server).answers_by_trial:
        return Sharing(False, "its client answers each trial by itself", verified=_is_seen(server))
    if server.isolation == "condition" and not server.keeps_trials_apart:
        return Sharing(True, "isolation: condition", verified=False)
    if server.folder is not None and server.isolation != "condition":
        return Sharing(False, "each trial has a folder of its own")
    if server.keeps_trials_apart:
        return Sharing(True, KEEPS_TRIALS_APART)
    return None


def sharing_of(server: ServerSpec, tools: Iterable[Mapping[str, Any]]) -> Sharing:
    """Return whether trials share a server that offers these `tools`, which are as `tools/list` returns them.

    A tool is read-only if its annotations say so (`readOnlyHint` of the MCP specification, server/tools). Without the
    hint it may change something that another trial sees.
    """
    planned = planned_sharing(server)
    hints = ((str(tool["name"]), tool.get("annotations")) for tool in tools)
    changing = [name for name, hint in hints if not (isinstance(hint, Mapping) and hint.get("readOnlyHint") is True)]
    if planned is not None:
        # Config and server say the same; calls that are answered unalike are a caution after the run.
        return attrs.evolve(planned, verified=planned.verified or (planned.shared and not changing))
    if not changing:
        return Sharing(True, "every tool is read-only")
    more = f" and {len(changing) - _NAMED} more" if len(changing) > _NAMED else ""
    return Sharing(False, f"not read-only: {', '.join(changing[:_NAMED])}{more}", verified=_is_seen(server))


def _is_seen(server: ServerSpec) -> bool:
    """Return whether keval itself keeps trials apart: it starts processes; whether sessions are apart it cannot see."""
    return server.transport == "stdio"
