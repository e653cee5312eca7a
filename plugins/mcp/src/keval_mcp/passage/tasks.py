"""The tasks of one attempt: calls that a server answers by a task, whose result the agent fetches later.

In MCP 2025-11-25 (basic/utilities/tasks) the agent asks for a task by its call, and for the result by `tasks/result`.
By the extension `io.modelcontextprotocol/tasks` of 2026-07-28 the server decides, and `tasks/get` has the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

import attrs
from mcp import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, REQUEST_TIMEOUT

from keval_mcp.passage.call_record import CallRecord
from keval_mcp.passage.link import AgentRequest, Inputs
from keval_mcp.server.audience import RELATED_TASK
from keval_mcp.server.session import Listing
from keval_mcp.tool_results import ToolResult

Send: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""Sends a request to the server: its method and parameters."""

_NOT_FETCHED = "the agent did not fetch the result of the task that this call began"


@attrs.define(eq=False)
class TaskCall:
    """A call that goes on as a task: `call` ends with what the agent gets, once `raw` has what the server returned.

    Until then, `record` says what is known of it.
    """

    agent_request: AgentRequest
    record: CallRecord
    call: asyncio.Task[Mapping[str, Any]]
    raw: asyncio.Future[dict[str, Any]] = attrs.field(init=False)
    answered: set[str] = attrs.field(factory=set, init=False)
    """What the task needed and the client has answered."""
    _is_over: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.raw = asyncio.get_running_loop().create_future()
        self.record.put(error=_NOT_FETCHED)

    def see(self, state: Mapping[str, Any]) -> None:
        """Take what the server says of the task."""
        if self.raw.done():
            return
        status, error = state.get("status"), state.get("error")
        said = f": {state['statusMessage']}" if state.get("statusMessage") else ""
        self._is_over = status in ("completed", "failed", "cancelled")
        if status == "cancelled":
            self.raw.set_exception(MCPError(INVALID_PARAMS, f"the task was cancelled{said}"))
        elif status == "failed" and isinstance(error, dict):
            code = error["code"] if isinstance(error.get("code"), int) else INTERNAL_ERROR
            self.raw.set_exception(MCPError(code, str(error.get("message", "")), error.get("data")))
        elif status == "failed":
            self.record.put(error=f"the task failed{said}")

    def fail(self, error: MCPError) -> None:
        """Take an error that came in place of the result: the last word, if the task is over."""
        if self.raw.done():
            return
        if self._is_over:
            self.raw.set_exception(error)
        else:
            kind = "tool_timeout" if error.code == REQUEST_TIMEOUT else None
            self.record.put(error=error.message, error_kind=kind)

    async def outcome(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Return what the agent gets for the result of the server: always the same. Raises MCPError."""
        if not self.raw.done():
            self.raw.set_result(raw)
        elif self.raw.exception() is not None and not raw.get("content"):
            return raw  # some servers say so that there is none
        return _related(await asyncio.shield(self.call), self.raw.result().get("_meta"))


@attrs.define(eq=False)
class Tasks:
    """Answers the requests of one attempt about tasks. `inputs` gives what tasks need."""

    inputs: Inputs
    _calls: dict[str, TaskCall] = attrs.field(factory=dict, init=False)
    _made: dict[str, dict[str, dict[str, Any]]] = attrs.field(factory=dict, init=False)
    """What each task that stands for one of the server answers to which request."""

    @property
    def under_way(self) -> list[asyncio.Task[Mapping[str, Any]]]:
        """The calls whose result the agent does not have yet."""
        return [task.call for task in self._calls.values() if not task.call.done()]

    def __contains__(self, task: object) -> bool:
        return task in self._calls

    def begin(self, task: str, agent_request: AgentRequest, record: CallRecord) -> TaskCall:
        """Let the call that runs here go on as a task of the server."""
        call = asyncio.current_task()
        assert call is not None  # noqa: S101 - this is called by a call
        # Of a task that failed, nobody may ask again.
        call.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        self._calls[task] = TaskCall(agent_request, record, call)
        return self._calls[task]

    def instead(self, params: Mapping[str, Any], listing: Listing, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what answers a call in place of the server: `result`, or a task with it if the agent asks for one."""
        if not listing.begins_sessions:  # there the server decides, and results say that they are none of a task
            return {"resultType": "complete", **result}
        asked = params.get("task")
        can: object = listing.capabilities
        for name in ("tasks", "requests", "tools", "call"):
            can = can.get(name) if isinstance(can, dict) else None
        if not isinstance(asked, dict) or can is None:
            return result
        now = datetime.now(UTC).isoformat()
        name = f"keval-{len(self._made) + 1}"
        task = {"taskId": name, "createdAt": now, "lastUpdatedAt": now, "ttl": asked.get("ttl")}
        read = ToolResult(result)
        over = {"status": "failed", "statusMessage": read.text} if read.is_error else {"status": "completed"}
        fetched = _related(result, {RELATED_TASK: {"taskId": name}})
        self._made[name] = {"tasks/get": {**task, **over}, "tasks/result": fetched}
        return {"task": {**task, "status": "working"}}

    def follow(self, method: str, params: Mapping[str, Any], agent_request: AgentRequest) -> None:
        """Let progress of a task extend the time of the request for its result."""
        if method == "tasks/result" and (task := self._calls.get(str(params.get("taskId")))) is not None:
            task.agent_request.progress_timeout = agent_request.progress_timeout

    async def answer(self, method: str, params: Mapping[str, Any], send: Send) -> dict[str, Any]:
        """Return the answer to a request about tasks. Raises MCPError."""
        name = str(params.get("taskId"))
        if (made := self._made.get(name)) is not None:
            if method in made:
                return made[method]
            raise MCPError(INVALID_PARAMS, f"{method} comes too late: the task is over")
        task = self._calls.get(name)
        if task is None:
            return await send(method, params)
        if method == "tasks/result" and task.call.done() and task.call.exception() is None:
            return await task.outcome({})
        try:
            result = await send(method, params)
        except MCPError as error:
            if method in ("tasks/get", "tasks/result"):
                task.fail(error)
            raise
        if method == "tasks/result":
            return await task.outcome(result)
        task.see(result)
        if method == "tasks/cancel" and not task.raw.done():
            task.record.put(error="the agent cancelled the task")
        if method == "tasks/get" and isinstance(result.get("result"), dict):
            return {**result, "result": await task.outcome(result["result"])}
        if method != "tasks/get" or not result.get("inputRequests"):
            return result
        answers = await self.inputs.given(params, result, besides=task.answered)
        if answers is None:  # the agent is told, and gives them itself
            return result
        if answers:
            task.answered.update(answers)
            await send("tasks/update", {**params, "inputResponses": answers})
        return {**{name: value for name, value in result.items() if name != "inputRequests"}, "status": "working"}


def _related(result: Mapping[str, Any], meta: object) -> dict[str, Any]:
    """Return a result that names the task that it is of, as `meta` does, if it does."""
    task = meta.get(RELATED_TASK) if isinstance(meta, dict) else None
    return {**result} if task is None else {**result, "_meta": {**(result.get("_meta") or {}), RELATED_TASK: task}}
