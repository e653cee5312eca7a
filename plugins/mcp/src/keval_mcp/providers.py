"""The context providers: one class per transport, whose fields are its options."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import attrs
from attrs.validators import gt

from keval.plugin import (
    ContextSource,
    DynamicTools,
    Isolation,
    PreflightError,
    ServerSpec,
    Sharing,
    Transport,
    WorkingFolder,
)
from keval_mcp.facts import Facts, no_facts
from keval_mcp.server.auth import Auth
from keval_mcp.server.command import find_command
from keval_mcp.server.policy import Elicitation, client_policy
from keval_mcp.sharing import planned_sharing
from keval_mcp.source import ServerSource

if TYPE_CHECKING:
    from keval_mcp.server.login import Login

__all__ = ["Http", "Sse", "Stdio"]


def _is_url(provider: object, field: attrs.Attribute[str], url: str) -> None:
    try:
        good = urlsplit(url).scheme in ("http", "https") and bool(urlsplit(url).hostname)
    except ValueError:
        good = False
    if not good:
        raise ValueError(f"the {field.name} of a server is http://… or https://…; got {url!r}")


def _stands_alone(provider: Http | Sse, field: attrs.Attribute[Auth | None], auth: Auth | None) -> None:
    if auth is not None and not provider.tap:
        raise ValueError("'auth' must go with the tap, as agents that connect themselves get no token; set tap: true")
    if auth is not None and "authorization" in {name.lower() for name in provider.headers}:
        raise ValueError("'auth' must stand alone; remove authorization from headers, or remove auth")


def _needs_tap(provider: Stdio | Http | Sse, field: attrs.Attribute[bool], shown: bool) -> None:
    if not (shown or provider.tap):
        raise ValueError(
            "the instructions of a server cannot be hidden from agents that connect to it themselves; leave out"
            " tap: false"
        )


def _answered_by_tap(provider: Stdio | Http | Sse, field: attrs.Attribute[Any], given: Any) -> None:
    if given != field.default and not provider.tap:
        raise ValueError(
            f"keval answers no server that agents connect to themselves: {field.name!r} must go with the tap; set tap:"
            " true"
        )


@attrs.frozen(kw_only=True)
class Stdio:
    """An MCP server that keval starts as a process and talks to over its standard input and output.

    It inherits HOME, LOGNAME, PATH, SHELL, TERM and USER; whatever else it needs stands in `env`.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    cwd: Path | WorkingFolder | None = None
    tap: bool = True
    isolation: Isolation = "auto"
    startup_timeout: float = attrs.field(default=30.0, validator=gt(0))
    timeout: float = attrs.field(default=60.0, validator=gt(0))
    max_timeout: float = attrs.field(default=600.0, validator=gt(0))
    dynamic_tools: DynamicTools = "fail"
    instructions: str = ""
    server_instructions: bool = attrs.field(default=True, validator=_needs_tap)
    elicitation: Elicitation = attrs.field(default="decline", validator=_answered_by_tap)
    roots: tuple[Path, ...] = attrs.field(default=(), validator=_answered_by_tap)

    @asynccontextmanager
    async def start(
        self, label: str, facts: Facts = no_facts, *, keeps_trials_apart: bool = False
    ) -> AsyncIterator[ContextSource]:
        """Offer the server to trials; keval starts it.

        `keeps_trials_apart` says that the server keeps what it remembers of trials apart, by what it is told of them.

        Raises:
            PreflightError: its command, or the folder that it begins with, is not found.
        """
        folder = self.cwd if isinstance(self.cwd, WorkingFolder) else None
        if folder is not None and folder.copy is not None and not folder.copy.is_dir():
            raise PreflightError(f"server '{label}': '{folder.copy}', which is to be copied, is not a folder")
        cwd = None if isinstance(self.cwd, WorkingFolder) else self.cwd
        server = attrs.evolve(
            self._spec(label),
            command=find_command(label, self.command, self.env, folder.copy if folder else cwd),
            args=self.args,
            env=self.env,
            cwd=None if cwd is None else str(cwd),
            timeout=self.timeout,
            max_timeout=self.max_timeout,
            dynamic_tools=self.dynamic_tools,
            startup_timeout=self.startup_timeout,
            keeps_trials_apart=keeps_trials_apart,
            policy=client_policy(label, self.elicitation, self.roots),
        )
        yield ServerSource(server, self.instructions, facts)

    def planned_sharing(self) -> Sharing | None:
        """Return whether trials share the server, as far as the options say."""
        return planned_sharing(self._spec(""))

    def _spec(self, label: str) -> ServerSpec:
        folder = self.cwd if isinstance(self.cwd, WorkingFolder) else None
        return ServerSpec(
            label,
            "stdio",
            tap=self.tap,
            isolation=self.isolation,
            folder=folder,
            server_instructions=self.server_instructions,
        )


@attrs.frozen(kw_only=True)
class Http:
    """An MCP server that is already running and speaks streamable HTTP at `url`."""

    url: str = attrs.field(validator=_is_url)
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    auth: Auth | None = attrs.field(default=None, validator=_stands_alone)
    tap: bool = True
    isolation: Isolation = "auto"
    startup_timeout: float = attrs.field(default=30.0, validator=gt(0))
    timeout: float = attrs.field(default=60.0, validator=gt(0))
    max_timeout: float = attrs.field(default=600.0, validator=gt(0))
    dynamic_tools: DynamicTools = "fail"
    instructions: str = ""
    server_instructions: bool = attrs.field(default=True, validator=_needs_tap)
    elicitation: Elicitation = attrs.field(default="decline", validator=_answered_by_tap)
    roots: tuple[Path, ...] = attrs.field(default=(), validator=_answered_by_tap)

    @asynccontextmanager
    async def start(
        self, label: str, facts: Facts = no_facts, *, keeps_trials_apart: bool = False
    ) -> AsyncIterator[ContextSource]:
        """Offer the server to trials; keval connects to it. `keeps_trials_apart` is as for `Stdio`."""
        login = await _login(label, self)
        policy = client_policy(label, self.elicitation, self.roots)
        spec = _remote(label, "http", self)
        server = attrs.evolve(spec, keeps_trials_apart=keeps_trials_apart, login=login, policy=policy)
        yield ServerSource(server, self.instructions, facts)

    def planned_sharing(self) -> Sharing | None:
        """Return whether trials share the server, as far as the options say."""
        return planned_sharing(_remote("", "http", self))


@attrs.frozen(kw_only=True)
class Sse:
    """An MCP server that is already running and speaks the older HTTP+SSE transport at `url`."""

    url: str = attrs.field(validator=_is_url)
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    auth: Auth | None = attrs.field(default=None, validator=_stands_alone)
    tap: bool = True
    isolation: Isolation = "auto"
    startup_timeout: float = attrs.field(default=30.0, validator=gt(0))
    timeout: float = attrs.field(default=60.0, validator=gt(0))
    max_timeout: float = attrs.field(default=600.0, validator=gt(0))
    dynamic_tools: DynamicTools = "fail"
    instructions: str = ""
    server_instructions: bool = attrs.field(default=True, validator=_needs_tap)
    elicitation: Elicitation = attrs.field(default="decline", validator=_answered_by_tap)
    roots: tuple[Path, ...] = attrs.field(default=(), validator=_answered_by_tap)

    @asynccontextmanager
    async def start(
        self, label: str, facts: Facts = no_facts, *, keeps_trials_apart: bool = False
    ) -> AsyncIterator[ContextSource]:
        """Offer the server to trials; keval connects to it. `keeps_trials_apart` is as for `Stdio`."""
        login = await _login(label, self)
        policy = client_policy(label, self.elicitation, self.roots)
        spec = _remote(label, "sse", self)
        server = attrs.evolve(spec, keeps_trials_apart=keeps_trials_apart, login=login, policy=policy)
        yield ServerSource(server, self.instructions, facts)

    def planned_sharing(self) -> Sharing | None:
        """Return whether trials share the server, as far as the options say."""
        return planned_sharing(_remote("", "sse", self))


async def _login(label: str, given: Http | Sse) -> Login | None:
    if given.auth is None:
        return None
    from keval_mcp.server.login import make_login  # the MCP SDK takes 0.4 s to import

    return await make_login(given.auth, label, given.url)


def _remote(label: str, transport: Transport, given: Http | Sse) -> ServerSpec:
    return ServerSpec(
        name=label,
        transport=transport,
        url=given.url,
        headers=given.headers,
        timeout=given.timeout,
        max_timeout=given.max_timeout,
        dynamic_tools=given.dynamic_tools,
        startup_timeout=given.startup_timeout,
        tap=given.tap,
        isolation=given.isolation,
        server_instructions=given.server_instructions,
    )
