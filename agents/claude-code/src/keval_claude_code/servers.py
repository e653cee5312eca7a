"""A condition's MCP servers: as Claude Code is told of them, as it names their tools, and as they fail."""

from __future__ import annotations

import asyncio
import math
import os
import re
import sys
from collections.abc import Container, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import attrs

from keval.plugin import McpServer, ServerLostError, ToolsMissingError, TrialError
from keval_programs import StandardError, TrialFolder

_INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""What a stdio server is given of the user's environment besides its own `env`, by the MCP SDK's habit."""

_RESERVED = frozenset(
    {
        *("ccr-email", "claude-code-remote", "claude-device", "claude-in-chrome", "claude_ai", "claude_browser"),
        *("claude_in_chrome", "claude_preview", "computer-use", "hearthbot", "ide", "remote-browser"),
        *("remote-devices", "webagent", "workspace"),
    }
)
"""What Claude Code 2.1.329 keeps for servers of its own, in lower case: it does not load another so named, or drops its
tools, in one case only where it has that feature on. A name that is missing here fails the trial, see `check_up`."""

_LOST = re.compile(
    r"Connection closed|Error POSTing to endpoint|E[A-Z]{4,}: |MCP server .* timed out after ", re.DOTALL
)
"""How the errors begin by which Claude Code says that a call was not answered; a server's own look the same to it."""

_PIECE = 65_536

LAUNCHER = Path(__file__).with_name("launch.py")
"""What Claude Code starts in place of a server."""


@attrs.frozen
class Servers:
    """The servers of one trial, and the folder with the files that those need which Claude Code starts.

    `own_tools` are the tools of its own that Claude Code may offer beside theirs.
    """

    servers: Sequence[McpServer]
    folder: TrialFolder
    own_tools: Set[str] = frozenset()
    _pipes: list[int] = attrs.field(factory=list, init=False)
    _stderr: dict[str, StandardError] = attrs.field(factory=dict, init=False)

    aliases: Mapping[str, McpServer] = attrs.field(init=False)
    """The servers by the name under which Claude Code is told of each, which is part of its tools' names."""

    @aliases.default
    def _by_alias(self) -> Mapping[str, McpServer]:
        aliases: dict[str, McpServer] = {}
        taken = set(_RESERVED)
        for server in self.servers:
            alias = _alias(server.name, taken)
            # Some file systems do not tell the cases apart, and a server's files are named by its alias.
            taken.add(alias.lower())
            aliases[alias] = server
        return aliases

    @property
    def tools(self) -> Mapping[str, tuple[str, str]]:
        """Every tool's server, by alias, and its name there, by the name under which the model is to be offered it."""
        return {
            f"mcp__{alias}__{re.sub(r'[^a-zA-Z0-9_-]', '_', tool)}": (alias, tool)
            for alias, server in self.aliases.items()
            for tool in server.tools
        }

    def own_name(self, tool: str) -> str:
        """The server's own name for a tool; a name that no server has stays as the model gave it."""
        return self.tools[tool][1] if tool in self.tools else tool

    def config(self) -> dict[str, Any]:
        """What Claude Code reads with `--mcp-config`; files for what it starts itself are written on the way."""
        return {"mcpServers": {alias: self._entry(alias, server) for alias, server in self.aliases.items()}}

    def check_up(self, statuses: Iterable[Mapping[str, Any]]) -> None:
        """Raise unless every server is connected; each status may tell an `error`.

        Raises:
            ServerLostError: a server is not connected.
            TrialError: Claude Code did not load a server at all.
        """
        told = {status["name"]: status for status in statuses}
        for alias, server in self.aliases.items():
            if alias not in told:
                raise TrialError(
                    f"Claude Code does not load MCP server {server.name!r}: settings managed for this machine may"
                    f" forbid it, or the name {alias!r} is reserved; allow it there, or rename the context",
                    stage="mcp",
                    kind="server_refused",
                )
            status = told[alias]
            if status["status"] != "connected":
                why = status.get("error") or f"it is {status['status']} after {server.timeout:g} s at most"
                raise self._lost(alias, f"did not come up: {why}")

    def check_offered(self, offered: Iterable[str]) -> None:
        """Raise ToolsMissingError unless exactly the condition's tools are offered beside Claude Code's own."""
        found, expected = set(offered) - self.own_tools, set(self.tools)
        if found != expected:
            raise ToolsMissingError(map(self.own_name, expected - found), map(self.own_name, found - expected))

    def check_call(self, tool: str, refusal: str | None) -> None:
        """Raise ServerLostError if a call of `tool` lost its server; `refusal` is what Claude Code said instead."""
        if tool not in self.tools:
            return
        alias, _ = self.tools[tool]
        log = self.aliases[alias].log
        if log is not None and log.lost is not None:
            raise ServerLostError(log.lost, kind=log.kind)
        if refusal is not None and _LOST.match(refusal):
            raise self._lost(alias, f"was lost during a call: {refusal}")

    def _entry(self, alias: str, server: McpServer) -> dict[str, Any]:
        patience = math.ceil(server.timeout * 1000)
        if server.transport != "stdio":
            return {"type": server.transport, "url": server.url, "headers": dict(server.headers), "timeout": patience}
        spec = {
            "command": server.command,
            "args": server.args,
            "cwd": server.cwd or os.getcwd(),
            "env": {**{name: os.environ[name] for name in _INHERITED if name in os.environ}, **server.env},
            "stderr": str(pipe) if (pipe := self._pipe(alias)) is not None else None,
        }
        # Isolated: neither variables nor the folder of the trial have a say in what the launcher imports.
        args = ["-I", "-S", str(LAUNCHER), str(self.folder.write_json(f"server-{alias}.json", spec))]
        return {"type": "stdio", "command": sys.executable, "args": args, "timeout": patience}

    def _lost(self, alias: str, what: str) -> ServerLostError:
        return ServerLostError(f"MCP server {self.aliases[alias].name!r} {what}{self._last_words(alias)}")

    def _last_words(self, alias: str) -> str:
        said = self._stderr[alias].told() if alias in self._stderr else ""
        return f"; its stderr ends:\n{said}" if said else ""

    def _pipe(self, alias: str) -> Path | None:
        """Make the pipe for the standard error of a server, which is opened here before anybody could replace it."""
        if not hasattr(os, "mkfifo"):  # Windows
            return None
        path = self.folder.own / f"server-{alias}.stderr"
        os.mkfifo(path, 0o600)
        pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)  # it never ends for the reader
        self._pipes.append(pipe)
        said = self._stderr[alias] = StandardError()
        asyncio.get_running_loop().add_reader(pipe, lambda: said.add(os.read(pipe, _PIECE)))
        return path

    def close(self) -> None:
        """Read no more of what the servers that Claude Code starts write on their standard error."""
        for pipe in self._pipes:
            asyncio.get_running_loop().remove_reader(pipe)
            os.close(pipe)


def _alias(name: str, taken: Container[str]) -> str:
    """Return a name for a server that is not `taken`.

    Of `__` in a server's name, and of `_` at its end, Claude Code makes another server's name when it looks for the
    permission to call a tool, and denies the call.
    """
    fitting = re.sub(r"[^a-zA-Z0-9-]+", "_", name).strip("_") or "server"
    alias, number = fitting, 1
    while alias.lower() in taken:
        number += 1
        alias = f"{fitting}_{number}"
    return alias
