"""What a server without sessions needs of its client before it answers: `InputRequiredResult` of MCP 2026-07-28.

Such a server asks nothing by itself. It returns what it needs, and the request is made again with the answers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs
from mcp import MCPError
from mcp.types import CLIENT_CAPABILITIES_META_KEY, INTERNAL_ERROR

from keval.plugin import CallLog, ServerExchange
from keval_mcp.server.audience import NEEDED, Audience, note

__all__ = ["Inputs", "is_input_required"]

_PAUSE = 0.1
"""Seconds until a server that needs nothing but time is asked again."""
_ROUNDS = 10
"""How often a server may ask for more before its answer; as in the MCP SDK's client."""


def is_input_required(result: Mapping[str, Any]) -> bool:
    """Return whether a result says what the server needs, in place of an answer."""
    return result.get("resultType") == "input_required"


@attrs.define(eq=False)
class Inputs:
    """Gives the answers of one attempt: the agent's, if it declares that it can, and otherwise the policy's."""

    audience: Audience
    log: CallLog
    _open: dict[str, Mapping[str, Any]] = attrs.field(factory=dict, init=False)

    async def answer(
        self, params: Mapping[str, Any], send: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        """Make a request with `send`, again and again with what the server needs, and return its result.

        That still says what is needed if the agent can answer it.

        Raises:
            MCPError: the server refuses, neither agent nor policy has an answer, or it asks without end.
        """
        self._note_answers(params.get("inputResponses"))
        given = (params.get("_meta") or {}).get(CLIENT_CAPABILITIES_META_KEY)
        for _ in range(_ROUNDS):
            result = await send(params)
            if not is_input_required(result):
                return result
            needed = _requests(result)
            if any(isinstance(given, dict) and NEEDED.get(asked["method"]) in given for asked in needed.values()):
                self._open.update(needed)
                return result
            answers = {
                name: await self.audience.answer_by_policy([self.log], asked["method"], asked.get("params") or {})
                for name, asked in needed.items()
            }
            if not needed:  # it only wants to be asked again
                await asyncio.sleep(_PAUSE)
            again = {"inputResponses": answers or None, "requestState": result.get("requestState")}
            params = {**params, **{name: value for name, value in again.items() if value is not None}}
        raise MCPError(INTERNAL_ERROR, f"the server asked {_ROUNDS} times for more before its answer")

    def _note_answers(self, answers: object) -> None:
        """Record what the agent answered to what it was told is needed."""
        for name, answer in answers.items() if isinstance(answers, dict) else ():
            asked = self._open.pop(name, None)
            if asked is not None and isinstance(answer, dict):
                told = ServerExchange(
                    self.audience.name,
                    asked["method"],
                    "server",
                    asked.get("params") or {},
                    result=answer,
                    answered_by="agent",
                    at=time.time(),
                )
                note([self.log], told)


def _requests(result: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    requests = result.get("inputRequests") or {}
    good = isinstance(requests, dict) and all(
        isinstance(asked, dict) and isinstance(asked.get("method"), str) for asked in requests.values()
    )
    if not good:
        raise MCPError(INTERNAL_ERROR, "the server asks for something that is no request")
    return requests
