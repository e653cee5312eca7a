"""The passage: one attempt's way to one server. It lists, forwards calls, and records them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import attrs
from mcp import MCPError
from mcp.types import INTERNAL_ERROR

from keval import ToolCall
from keval.plugin import CallLog, ServerLostError, ToolResult
from keval_mcp.arguments import BAD_ARGUMENTS, fit
from keval_mcp.changes import TrialChanges
from keval_mcp.company import Place
from keval_mcp.connection import ServerConnection
from keval_mcp.listing import Listing
from keval_mcp.results import tool_error
from keval_mcp.upstream import CallLostError, Upstream

__all__ = ["Passage"]


@attrs.define(eq=False)
class Passage:
    """Forwards the calls of one attempt, marked with `meta`, and records each of them in `log`.

    An agent in keval's own process uses it as its `keval.plugin.ServerChannel`; for others the tap serves it. `listing`
    is what was read before the first trial, with what interventions change, so that every trial is offered the same
    tools. `changes` leads the calls through the interventions. `place` says whether a loss of the server may be due to
    another attempt's call.
    """

    connection: ServerConnection
    listing: Listing
    changes: TrialChanges
    meta: Mapping[str, Any]
    place: Place
    log: CallLog = attrs.field(factory=CallLog)
    _first: Upstream | None = attrs.field(default=None, init=False)
    _calls: set[asyncio.Task[Mapping[str, Any]]] = attrs.field(factory=set, init=False)
    _closed: bool = attrs.field(default=False, init=False)

    async def list_tools(self) -> tuple[Mapping[str, Any], ...]:
        """Return the definitions of the tools; see `keval.plugin.ServerChannel`."""
        return self.listing.tools

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call a tool; see `keval.plugin.ServerChannel`."""
        try:
            result = await self.forward({"name": name, "arguments": dict(arguments)})
        except MCPError as refused:
            result = tool_error(refused.message)
        if self.log.lost is not None:
            raise ServerLostError(self.log.lost, kind=self.log.kind)
        return result

    async def forward(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call the server with the parameters of `tools/call`, and return its answer as it came.

        A server that is lost is a tool error that says so. The call is a task of its own: an agent that hangs up does
        not undo what the server is already doing, so the outcome is still waited for and recorded.

        Raises:
            MCPError: the server refused the call; raised again towards the agent as it came.
        """
        if self._closed:
            return tool_error("the trial has ended")
        call = asyncio.create_task(self._forward(params))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        await asyncio.wait({call})
        return tool_error("the trial has ended") if call.cancelled() else call.result()

    async def close(self) -> None:
        """End the calls still under way; each is recorded as abandoned."""
        self._closed = True
        calls = set(self._calls)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)  # `forward` has shown or will show their outcome

    async def _forward(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        name, arguments = params["name"], params.get("arguments")
        call = ToolCall(name, arguments or {}, server=self.connection.server.name, executions=0)
        began = time.perf_counter()

        async def send(tool: str, given: Mapping[str, Any] | None) -> Mapping[str, Any]:
            nonlocal call, began
            asked = time.perf_counter()
            upstream = await self.connection.upstream()
            if self._first not in (None, upstream):
                self._lose(f"server '{self.connection.server.name}' was lost between two calls of this trial")
            self._first = upstream
            call = attrs.evolve(call, executions=1)
            began += time.perf_counter() - asked  # connecting again is no time of the call
            with self.place.calling():
                return await upstream.call(tool, given, {**_custom(params.get("_meta")), **self.meta})

        try:
            outcome = await self.changes.call(name, arguments, send)
        except ServerLostError as lost:
            self._lose(str(lost), lost.kind, by_itself=isinstance(lost, CallLostError))
            problem = str(lost).partition("\n")[0]  # the agent needs no standard error
            self._record(call, began, error=problem)
            return tool_error(problem)
        except MCPError as refused:
            self._record(self._checked(call), began, error=refused.message)
            raise
        except ValueError as invalid:
            problem = f"server '{self.connection.server.name}' answered {name!r} with something that is no tool result"
            self._record(call, began, error=f"{problem}: {invalid}")
            raise MCPError(INTERNAL_ERROR, problem) from invalid
        except asyncio.CancelledError:
            self._record(call, began, error="the trial ended before the server answered")
            raise
        read = ToolResult(outcome.result)
        self.log.blobs.extend(read.blobs)
        call = attrs.evolve(
            call,
            tool=outcome.tool if outcome.tool != name else None,
            error_kind=outcome.error_kind,
            changed=outcome.changed,
            content=read.content,
        )
        if read.is_error:
            self._record(self._checked(call), began, error=read.text)
        else:
            self._record(call, began, result=read.text)
        return outcome.result

    def _checked(self, call: ToolCall) -> ToolCall:
        """Return a call that failed with the kind of its error, if that is that its arguments do not fit the tool."""
        definition = next((tool for tool in self.changes.offered if tool["name"] == call.name), None)
        if call.error_kind is not None or definition is None or fit(definition["inputSchema"], call.arguments):
            return call
        return attrs.evolve(call, error_kind=BAD_ARGUMENTS)

    def _record(self, call: ToolCall, began: float, result: str | None = None, error: str | None = None) -> None:
        took = time.perf_counter() - began
        self.log.calls.append(attrs.evolve(call, result=result, error=error, duration=took))

    def _lose(self, reason: str, kind: str = "server_lost", *, by_itself: bool = False) -> None:
        if self.log.lost is None:
            self.log.lost, self.log.kind = reason, kind
            self.log.bystander = not by_itself and self.place.bystander


def _custom(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what the agent itself put into `_meta`; the rest belongs to its connection with the tap."""
    own = ("progressToken", "io.modelcontextprotocol/")
    return {name: value for name, value in (meta or {}).items() if not name.startswith(own)}
