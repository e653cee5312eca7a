"""The context providers: one class per transport, whose fields are its options."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import attrs
from attrs.validators import gt

from keval import ContextSource, McpServer
from keval_mcp.command import find_command
from keval_mcp.facts import Facts, no_facts
from keval_mcp.terms import Isolation, Terms

__all__ = ["Http", "Sse", "Stdio"]


def _is_url(provider: object, field: attrs.Attribute[str], url: str) -> None:
    try:
        good = urlsplit(url).scheme in ("http", "https") and bool(urlsplit(url).hostname)
    except ValueError:
        good = False
    if not good:
        raise ValueError(f"the {field.name} of a server is http://… or https://…; got {url!r}")


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
        """Start the server and offer it to trials.

        Raises:
            PreflightError: the command is not found, or the server does not come up and list its tools.
        """
        server = McpServer(
            name=label,
            transport="stdio",
            command=find_command(label, self.command, self.env, self.cwd),
            args=self.args,
            env=self.env,
            cwd=None if self.cwd is None else str(self.cwd),
            timeout=self.timeout,
        )
        async with _served(self, server, facts) as source:
            yield source


@attrs.frozen(kw_only=True)
class Http:
    """An MCP server that is already running and speaks streamable HTTP at `url`."""

    url: str = attrs.field(validator=_is_url)
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    tap: bool = True
    isolation: Isolation = "condition"
    startup_timeout: float = attrs.field(default=30.0, validator=gt(0))
    timeout: float = attrs.field(default=60.0, validator=gt(0))
    instructions: str = ""

    @asynccontextmanager
    async def start(self, label: str, facts: Facts = no_facts) -> AsyncIterator[ContextSource]:
        """Connect to the server and offer it to trials.

        Raises:
            PreflightError: the server cannot be reached, or does not list its tools.
        """
        server = McpServer(name=label, transport="http", url=self.url, headers=self.headers, timeout=self.timeout)
        async with _served(self, server, facts) as source:
            yield source


@attrs.frozen(kw_only=True)
class Sse:
    """An MCP server that is already running and speaks the older HTTP+SSE transport at `url`."""

    url: str = attrs.field(validator=_is_url)
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    tap: bool = True
    isolation: Isolation = "condition"
    startup_timeout: float = attrs.field(default=30.0, validator=gt(0))
    timeout: float = attrs.field(default=60.0, validator=gt(0))
    instructions: str = ""

    @asynccontextmanager
    async def start(self, label: str, facts: Facts = no_facts) -> AsyncIterator[ContextSource]:
        """Connect to the server and offer it to trials.

        Raises:
            PreflightError: the server cannot be reached, or does not list its tools.
        """
        server = McpServer(name=label, transport="sse", url=self.url, headers=self.headers, timeout=self.timeout)
        async with _served(self, server, facts) as source:
            yield source


def _served(
    provider: Stdio | Http | Sse, server: McpServer, facts: Facts
) -> AbstractAsyncContextManager[ContextSource]:
    from keval_mcp.source import serve  # the MCP SDK takes 0.4 s to import

    terms = Terms(provider.tap, provider.isolation, provider.startup_timeout, provider.timeout, provider.instructions)
    return serve(server, terms, facts)
