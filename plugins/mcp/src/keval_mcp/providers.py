"""The context providers: one class per transport, whose fields are its options."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import attrs
from attrs.validators import gt

from keval.plugin import ContextSource, Isolation, ServerSpec, Transport
from keval_mcp.auth import Auth
from keval_mcp.command import find_command
from keval_mcp.facts import Facts, no_facts
from keval_mcp.source import ServerSource

__all__ = ["Http", "Sse", "Stdio"]


def _is_url(provider: object, field: attrs.Attribute[str], url: str) -> None:
    try:
        good = urlsplit(url).scheme in ("http", "https") and bool(urlsplit(url).hostname)
    except ValueError:
        good = False
    if not good:
        raise ValueError(f"the {field.name} of a server is http://… or https://…; got {url!r}")


def _needs_the_tap(provider: Http | Sse, field: attrs.Attribute[Auth | None], auth: Auth | None) -> None:
    if auth is not None and not provider.tap:
        raise ValueError("'auth' must go with the tap, as agents that connect themselves get no token; set tap: true")
    if auth is not None and "authorization" in {name.lower() for name in provider.headers}:
        raise ValueError("'auth' must stand alone; remove authorization from headers, or remove auth")


@attrs.frozen(kw_only=True)
class Stdio:
    """An MCP server that keval starts as a process and talks to over its standard input and output.

    It inherits HOME, LOGNAME, PATH, SHELL, TERM and USER; whatever else it needs stands in `env`.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    cwd: Path | None = None
    tap: bool = True
    isolation: Isolation = "condition"
    startup_timeout: float = attrs.field(default=30.0, validator=gt(0))
    timeout: float = attrs.field(default=60.0, validator=gt(0))
    instructions: str = ""

    @asynccontextmanager
    async def start(self, label: str, facts: Facts = no_facts) -> AsyncIterator[ContextSource]:
        """Offer the server to trials; keval starts it. Raises PreflightError when its command is not found."""
        server = ServerSpec(
            name=label,
            transport="stdio",
            command=find_command(label, self.command, self.env, self.cwd),
            args=self.args,
            env=self.env,
            cwd=None if self.cwd is None else str(self.cwd),
            timeout=self.timeout,
            startup_timeout=self.startup_timeout,
            tap=self.tap,
            isolation=self.isolation,
        )
        yield ServerSource(server, self.instructions, facts)


@attrs.frozen(kw_only=True)
class Http:
    """An MCP server that is already running and speaks streamable HTTP at `url`."""

    url: str = attrs.field(validator=_is_url)
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    auth: Auth | None = attrs.field(default=None, validator=_needs_the_tap)
    tap: bool = True
    isolation: Isolation = "condition"
    startup_timeout: float = attrs.field(default=30.0, validator=gt(0))
    timeout: float = attrs.field(default=60.0, validator=gt(0))
    instructions: str = ""

    @asynccontextmanager
    async def start(self, label: str, facts: Facts = no_facts) -> AsyncIterator[ContextSource]:
        """Offer the server to trials; keval connects to it."""
        yield ServerSource(await _remote(label, "http", self), self.instructions, facts)


@attrs.frozen(kw_only=True)
class Sse:
    """An MCP server that is already running and speaks the older HTTP+SSE transport at `url`."""

    url: str = attrs.field(validator=_is_url)
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    auth: Auth | None = attrs.field(default=None, validator=_needs_the_tap)
    tap: bool = True
    isolation: Isolation = "condition"
    startup_timeout: float = attrs.field(default=30.0, validator=gt(0))
    timeout: float = attrs.field(default=60.0, validator=gt(0))
    instructions: str = ""

    @asynccontextmanager
    async def start(self, label: str, facts: Facts = no_facts) -> AsyncIterator[ContextSource]:
        """Offer the server to trials; keval connects to it."""
        yield ServerSource(await _remote(label, "sse", self), self.instructions, facts)


async def _remote(label: str, transport: Transport, given: Http | Sse) -> ServerSpec:
    login = None
    if given.auth is not None:
        from keval_mcp.login import make_login  # the MCP SDK takes 0.4 s to import

        login = await make_login(given.auth, label, given.url)
    return ServerSpec(
        name=label,
        transport=transport,
        url=given.url,
        headers=given.headers,
        login=login,
        timeout=given.timeout,
        startup_timeout=given.startup_timeout,
        tap=given.tap,
        isolation=given.isolation,
    )
