"""The context providers: one class per transport, whose fields are its options."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs
from attrs.validators import gt

from keval.plugin import (
    BringUp,
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
from keval_mcp.server.policy import Elicitation, check_roots, client_policy
from keval_mcp.sharing import planned_sharing
from keval_mcp.source import ServerSource

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
        """
        server = attrs.evolve(
            self._spec(label),
            command=self.command,
            args=self.args,
            env=self.env,
            cwd=None if self.cwd is None or isinstance(self.cwd, WorkingFolder) else str(self.cwd),
            bring_up=self._bring_up,
            timeout=self.timeout,
            max_timeout=self.max_timeout,
            dynamic_tools=self.dynamic_tools,
            startup_timeout=self.startup_timeout,
            keeps_trials_apart=keeps_trials_apart,
            policy=client_policy(self.elicitation, self.roots),
        )
        yield ServerSource(server, self.instructions, facts)

    @asynccontextmanager
    async def _bring_up(self, server: ServerSpec) -> AsyncIterator[ServerSpec]:
        """Find the command. Raises PreflightError when that, or a folder, is missing."""
        begun = server.folder.copy if server.folder else None
        if begun is not None and not begun.is_dir():
            raise PreflightError(f"server '{server.name}': '{begun}', which is to be copied, is not a folder")
        cwd = self.cwd if isinstance(self.cwd, Path) else begun
        command = find_command(server.name, self.command, self.env, cwd)
        check_roots(server.name, self.roots)
        yield attrs.evolve(server, command=command)

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
        self,
        label: str,
        facts: Facts = no_facts,
        *,
        keeps_trials_apart: bool = False,
        bring_up: BringUp | None = None,
    ) -> AsyncIterator[ContextSource]:
        """Offer the server to trials; keval connects to it. `keeps_trials_apart` is as for `Stdio`.

        `bring_up` starts the server, for a bundle that brings one, and gives its URL.
        """
        server = _reached(self, _remote(label, "http", self), bring_up)
        yield ServerSource(attrs.evolve(server, keeps_trials_apart=keeps_trials_apart), self.instructions, facts)

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
        server = _reached(self, _remote(label, "sse", self))
        yield ServerSource(attrs.evolve(server, keeps_trials_apart=keeps_trials_apart), self.instructions, facts)

    def planned_sharing(self) -> Sharing | None:
        """Return whether trials share the server, as far as the options say."""
        return planned_sharing(_remote("", "sse", self))


def _reached(given: Http | Sse, server: ServerSpec, bring_up: BringUp | None = None) -> ServerSpec:
    """Return a server over HTTP with its login, and with what is to be done before keval connects to it."""
    login = None
    if given.auth is not None:
        from keval_mcp.server.login import Login  # the MCP SDK takes 0.4 s to import

        login = Login(server.name, given.auth, given.url)

    @asynccontextmanager
    async def ready(server: ServerSpec) -> AsyncIterator[ServerSpec]:
        check_roots(server.name, given.roots)
        if login is not None:
            await login.prepare()
        async with bring_up(server) if bring_up is not None else nullcontext(server) as up:
            yield up

    return attrs.evolve(server, login=login, bring_up=ready)


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
        policy=client_policy(given.elicitation, given.roots),
    )
