"""A talk: one session of an agent with the tap, in which both sides may speak at any time, whatever carries it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import attrs
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR

from keval_mcp.passage.passage import Passage
from keval_mcp.tap.messages import answered, notification, refused
from keval_mcp.tap.plain import result_of

__all__ = ["Deliver", "Talk"]

_CANCELLED = MCPError(-32800, "Request cancelled")
_ENDED = MCPError(CONNECTION_CLOSED, "the agent has ended its session")

Deliver: TypeAlias = Callable[[Mapping[str, Any], int | str | None], object]
"""Takes a message to the agent, and the id of the agent's request that it concerns; `None` if it concerns none."""


@attrs.define(eq=False)
class Talk:
    """Takes messages of the agent and delivers those to it; an `AgentSession` for the audience of the server."""

    passage: Passage
    deliver: Deliver
    capabilities: Mapping[str, Any] = attrs.field(factory=dict, init=False)
    _requests: dict[int | str, asyncio.Task[None]] = attrs.field(factory=dict, init=False)
    _asked: dict[int, asyncio.Future[dict[str, Any]]] = attrs.field(factory=dict, init=False)
    _numbers: Iterator[int] = attrs.field(factory=lambda: itertools.count(1), init=False)
    _closed: bool = attrs.field(default=False, init=False)

    async def take(self, message: Mapping[str, Any]) -> None:
        """Take a message: a request, whose answer is delivered later, a notification, or the answer to a question."""
        number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if not isinstance(method, str):
            self._resolve(message)
        elif number is not None:
            self._requests[number] = asyncio.create_task(self._answer(number, method, params))
        elif method == "notifications/cancelled":
            request = self._requests.get(params.get("requestId", ""))
            if request is not None:
                request.cancel()
        elif method != "notifications/initialized":
            await self.passage.notify(method, params)

    async def close(self) -> None:
        """End the session: requests under way are given up."""
        self._closed = True
        if self in self.passage.agents:
            self.passage.agents.remove(self)
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(_ENDED)
        requests = [*self._requests.values()]
        for request in requests:
            request.cancel()
        await asyncio.gather(*requests, return_exceptions=True)

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the agent; see `AgentSession`. What asks is taken to be the agent's latest request."""
        if self._closed:
            raise _ENDED
        number, about = next(self._numbers), self._latest()
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        self.deliver({**notification(method, params), "id": number}, about)
        try:
            return await answer
        except asyncio.CancelledError:
            self.deliver(notification("notifications/cancelled", {"requestId": number}), about)
            raise
        finally:
            del self._asked[number]

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass a notification on; see `AgentSession`."""
        lasting = method == "notifications/resources/updated" or method.endswith("/list_changed")
        self.deliver(notification(method, params), None if lasting else self._latest())

    async def begin(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the result of `initialize`; a server of the attempt's own is told what its agent can do.

        Raises:
            MCPError: the server has no sessions.
        """
        given = params.get("capabilities")
        self.capabilities = given if isinstance(given, dict) else {}
        if self.passage.own:
            await self.passage.declare(self.capabilities)
        if self not in self.passage.agents:
            self.passage.agents.append(self)
        return await result_of(self.passage, "initialize", params)

    def _latest(self) -> int | str | None:
        return next(reversed(self._requests), None)

    async def _answer(self, number: int | str, method: str, params: Mapping[str, Any]) -> None:
        token = (params.get("_meta") or {}).get("progressToken")

        def progressed(progress: Mapping[str, Any]) -> None:
            self.deliver(notification("notifications/progress", {**progress, "progressToken": token}), number)

        try:
            if method == "initialize":
                result = await self.begin(params)
            else:
                result = await result_of(self.passage, method, params, None if token is None else progressed)
            answer = answered(number, result)
        except MCPError as error:
            answer = refused(number, error)
        except asyncio.CancelledError:
            answer = refused(number, _CANCELLED)
        except Exception as error:  # noqa: BLE001 - a seam: the agent must not wait for ever
            answer = refused(number, MCPError(INTERNAL_ERROR, f"{type(error).__name__}: {error}"))
        self.deliver(answer, number)
        if self._requests.get(number) is asyncio.current_task():
            del self._requests[number]

    def _resolve(self, message: Mapping[str, Any]) -> None:
        answer = self._asked.get(message.get("id", 0))
        if answer is None or answer.done():
            return
        error, result = message.get("error"), message.get("result")
        if isinstance(error, Mapping):
            code = error.get("code")
            known = code if isinstance(code, int) else INTERNAL_ERROR
            answer.set_exception(MCPError(known, str(error.get("message", "")), error.get("data")))
        else:
            answer.set_result(dict(result) if isinstance(result, Mapping) else {})
