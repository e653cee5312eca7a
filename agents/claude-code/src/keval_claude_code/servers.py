"""A condition's MCP servers: as Claude Code is told of them, as it names their tools, and as they fail."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from keval import McpServer, ServerLostError, ToolsMissingError
from keval_claude_code.home import Home

__all__ = ["Servers"]

_INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""What a stdio server is given of the user's environment besides its own `env`, by the MCP SDK's habit."""

_LOST = re.compile(
    r"Connection closed|Error POSTing to endpoint|E[A-Z]{4,}: |MCP server .* timed out after ", re.DOTALL
)
"""How the errors begin by which Claude Code says that a call was not answered; a server's own look the same to it."""

_STDERR_LINES = 20


@attrs.frozen
class Servers:
    """The servers of one trial, and the directory where those that Claude Code starts leave their stderr."""

    servers: Sequence[McpServer]
    home: Home

    @property
    def aliases(self) -> Sequence[str]:
        """The name of each server as Claude Code makes it part of its tools' names."""
        return [_plain(server.name) for server in self.servers]

    @property
    def tools(self) -> Mapping[str, tuple[McpServer, str]]:
        """Every tool's server and its name there, by the name under which the model is to be offered it."""
        return {
            f"mcp__{_plain(server.name)}__{_plain(tool)}": (server, tool)
            for server in self.servers
            for tool in server.tools
        }

    def own_name(self, tool: str) -> str:
        """The server's own name for a tool; a name that no server has stays as the model gave it."""
        return self.tools[tool][1] if tool in self.tools else tool

    def config(self) -> dict[str, Any]:
        """What Claude Code reads with `--mcp-config`; files for what it starts itself are written on the way."""
        entries = zip(self.aliases, self.servers, strict=True)
        return {"mcpServers": {alias: self._entry(alias, server) for alias, server in entries}}

    def check_up(self, statuses: Iterable[Mapping[str, Any]]) -> None:
        """Raise ServerLostError unless every server is connected; each status may tell an `error`."""
        told = {status["name"]: status for status in statuses}
        for alias, server in zip(self.aliases, self.servers, strict=True):
            status = told.get(alias, {"status": "unknown"})
            if status["status"] != "connected":
                why = status.get("error") or f"it is {status['status']} after {server.timeout:g} s at most"
                raise self._lost(server, f"did not come up: {why}")

    def check_offered(self, offered: Iterable[str]) -> None:
        """Raise ToolsMissingError unless exactly the condition's tools are offered."""
        found, expected = set(offered), set(self.tools)
        if found != expected:
            raise ToolsMissingError(map(self.own_name, expected - found), map(self.own_name, found - expected))

    def check_call(self, tool: str, refusal: str | None) -> None:
        """Raise ServerLostError if a call of `tool` lost its server; `refusal` is what Claude Code said instead."""
        if tool not in self.tools:
            return
        server, _ = self.tools[tool]
        if server.log is not None and server.log.lost is not None:
            raise ServerLostError(server.log.lost)
        if refusal is not None and _LOST.match(refusal):
            raise self._lost(server, f"was lost during a call: {refusal}")

    def _entry(self, alias: str, server: McpServer) -> dict[str, Any]:
        patience = math.ceil(server.timeout * 1000)
        if server.transport != "stdio":
            return {"type": server.transport, "url": server.url, "headers": dict(server.headers), "timeout": patience}
        spec = {
            "command": server.command,
            "args": server.args,
            "cwd": server.cwd or os.getcwd(),
            "env": {**{name: os.environ[name] for name in _INHERITED if name in os.environ}, **server.env},
            "stderr": str(self._stderr(alias)),
        }
        launcher = str(Path(__file__).with_name("launch.py"))
        args = ["-I", "-S", launcher, str(self.home.write_json(f"server-{alias}.json", spec))]
        return {"type": "stdio", "command": sys.executable, "args": args, "timeout": patience}

    def _lost(self, server: McpServer, what: str) -> ServerLostError:
        return ServerLostError(f"MCP server {server.name!r} {what}{self._last_words(server)}")

    def _last_words(self, server: McpServer) -> str:
        path = self._stderr(_plain(server.name))
        if not path.exists():
            return ""
        said = "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-_STDERR_LINES:]).strip()
        return f"; its stderr ends:\n{said}" if said else ""

    def _stderr(self, alias: str) -> Path:
        return self.home.root / f"server-{alias}.stderr.txt"


def _plain(name: str) -> str:
    """Return a name as Claude Code makes it part of a tool's name."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)
