"""Telling of a call while it happens: live events when it is sent to its server, and when it has come back."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Mapping
from typing import Any

import attrs

from keval.plugin import ReplayMissError, Tell, ToolResult
from keval_mcp.passage.link import Asking
from keval_mcp.passage.outcomes import FAILURES

__all__ = ["Telling"]


@attrs.define(eq=False)
class Telling:
    """Tells of the calls of one attempt to one server: `server_called` and `server_returned`, if there is a `tell`."""

    server: str
    tell: Tell | None = None
    _calls: int = attrs.field(default=0, init=False)

    async def told(self, asking: Asking, params: Mapping[str, Any], asked: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        """Await a call as it is sent, with these parameters of `tools/call`, and return its result."""
        if self.tell is None:
            return await asked
        self._calls += 1
        call = {"server": self.server, "tool": params["name"], "call": self._calls}
        self.tell("server_called", {**call, "arguments": params.get("arguments") or {}})
        began = time.perf_counter()
        error: str | None = "it was given up"
        try:
            result = await asked
            error = ToolResult(result).text if result.get("isError") is True else None
            return result
        except (*FAILURES, ReplayMissError) as failure:
            error = str(failure).partition("\n")[0]  # a trial's failure has the server's standard error
            raise
        finally:
            took = time.perf_counter() - began - asking.aside
            self.tell("server_returned", {**call, "error": error, "duration": took})
