"""What goes with a request of an agent on its way by a link, to a live server or to a recording, and what it raises.

A server without sessions (MCP 2026-07-28) asks nothing by itself: it returns what it needs (`InputRequiredResult`), and
the request is made again with the answers.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Literal, TypeAlias

import attrs
from mcp import MCPError
from mcp.types import CLIENT_CAPABILITIES_META_KEY, INTERNAL_ERROR, INVALID_PARAMS, LOG_LEVEL_META_KEY

from keval.errors import ServerLostError
from keval.records.cassettes import TrafficError
from keval.records.servers import CallLog
from keval.records.transcript import ServerExchange
from keval_mcp.nesting import MOST_NESTED, is_too_deep
from keval_mcp.server.audience import NEEDED, Audience, note
from keval_mcp.server.upstream import CallLostError, CallTimeoutError
from keval_mcp.server.waiting import ProgressTimeout

Heard: TypeAlias = Callable[[Mapping[str, Any]], object]
"""Takes the parameters of a notification of progress."""


@attrs.define(eq=False)
class AgentRequest:
    """A request of the agent on its way to the server, which may need several rounds (`Inputs`) within its time.

    `sent` says whether the server got it. `aside` counts the seconds that are none of the request's: it took them to
    reach the server, and to read its tools again.
    """

    kind: Literal["call", "request"]
    method: str
    progress_timeout: ProgressTimeout
    sent: bool = False
    aside: float = 0.0


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


@contextmanager
def marked(
    params: Mapping[str, Any],
    meta: Mapping[str, Any],
    audience: Audience,
    listener: Callable[[Mapping[str, Any]], object] | None,
) -> Iterator[Mapping[str, Any]]:
    """Yield an agent's parameters as the server gets them: marked with `meta` and a progress token of keval's own.

    There is a token if there is a `listener`, which gets each notification of progress while the block lasts.
    """
    # What the agent itself put into `_meta` is passed on, and to a server without sessions what it can do; the rest
    # belongs to its connection with the tap.
    own = ("progressToken", "io.modelcontextprotocol/")
    passed = (CLIENT_CAPABILITIES_META_KEY, LOG_LEVEL_META_KEY)
    said = (params.get("_meta") or {}).items()
    marks = {**{name: value for name, value in said if name in passed or not name.startswith(own)}, **meta}
    rest = unmarked(params)
    with ExitStack() as stack:
        if listener is not None:
            marks["progressToken"] = stack.enter_context(audience.listening(listener))
        yield {**rest, "_meta": marks} if marks else rest


def unmarked(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters without their `_meta`."""
    return {name: value for name, value in params.items() if name != "_meta"}


def check_writable(params: Mapping[str, Any]) -> None:
    """Raise MCPError if parameters cannot be written as JSON in UTF-8, or not by everybody."""
    if is_too_deep(params):
        raise MCPError(INVALID_PARAMS, f"lists and objects are nested more than {MOST_NESTED} deep")
    try:
        json.dumps(params, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        problem = "a text holds half a character (a surrogate), which JSON in UTF-8 cannot"
        raise MCPError(INVALID_PARAMS, problem) from error


FAILURES = (MCPError, CallTimeoutError, ServerLostError, ValueError)
"""What a request to a server raises."""


def recorded_error(error: Exception, *, sent: bool = True, bystander: bool = False) -> TrafficError:
    """Return what a recording keeps of one of `FAILURES`.

    `sent` says whether the server got the request, and `bystander` whether another attempt's call may be why it was
    lost.
    """
    if isinstance(error, MCPError):
        return TrafficError("refused", error.message, code=error.code, data=error.data)
    if isinstance(error, CallTimeoutError):
        return TrafficError("timeout", str(error))
    if isinstance(error, ServerLostError):
        by_itself = isinstance(error, CallLostError)
        details = {"sent": sent, "bystander": bystander and not by_itself}
        return TrafficError("call_lost" if by_itself else "lost", str(error), failure=error.kind, details=details)
    return TrafficError("no_result", str(error))


def error_in(error: TrafficError) -> Exception:
    """Return what a recorded request raised."""
    match error.kind:
        case "refused":
            return MCPError(INTERNAL_ERROR if error.code is None else error.code, error.message, error.data)
        case "timeout":
            return CallTimeoutError(error.message)
        case "call_lost":
            return CallLostError(error.message, kind=error.failure)
        case "lost":
            return ServerLostError(error.message, kind=error.failure)
    return ValueError(error.message)


def lost_beside(error: TrafficError) -> bool:
    """Return whether another attempt's call may be why a recorded attempt lost its server."""
    return error.details.get("bystander") is True
