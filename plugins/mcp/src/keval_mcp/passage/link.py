"""The links by which requests of an agent go to a live server or to a recording, and what goes with each request.

A server without sessions (MCP 2026-07-28) asks nothing by itself: it returns what it needs (`InputRequiredResult`), and
the request is made again with the answers.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, Literal, TypeAlias

import attrs
from mcp import MCPError
from mcp.types import CLIENT_CAPABILITIES_META_KEY, INTERNAL_ERROR, INVALID_PARAMS, LOG_LEVEL_META_KEY

from keval.errors import ServerLostError
from keval.records.cassettes import ReplayMissError, ServerCassette, ServerTraffic, TrafficError
from keval.records.transcript import ServerExchange
from keval_mcp.server.audience import PROGRESS, AgentSession, Audience, Member, note, recorded
from keval_mcp.server.connection import ServerConnection
from keval_mcp.server.session import Listing
from keval_mcp.server.upstream import CallLostError, CallTimeoutError, Upstream
from keval_mcp.server.waiting import ProgressTimeout
from keval_mcp.tool_results import MOST_NESTED, is_too_deep

Heard: TypeAlias = Callable[[Mapping[str, Any]], object]
"""Takes the parameters of a notification of progress."""


@attrs.define(eq=False)
class AgentRequest:
    """A request of the agent on its way to the server, which may need several rounds (`Inputs`) within its time.

    `sent` says whether the server got it. `aside` counts the seconds that are none of the request's: it took them to
    reach the server, and to read its tools again. `held` is what lasts as long as a task that the server makes of it.
    """

    kind: Literal["call", "request"]
    method: str
    progress_timeout: ProgressTimeout
    sent: bool = False
    aside: float = 0.0
    held: ExitStack = attrs.field(factory=ExitStack, init=False)


_PAUSE = 0.1
"""Seconds until a server that needs nothing but time is asked again."""
_ROUNDS = 10
"""How often a server may ask for more before its answer; as in the MCP SDK's client."""


def is_input_required(result: Mapping[str, Any]) -> bool:
    """Return whether a result says what the server needs, in place of an answer."""
    return result.get("resultType") == "input_required"


def task_in(params: Mapping[str, Any], result: Mapping[str, Any]) -> str | None:
    """Return the id of the task that a server has begun for a call with these parameters, if it has."""
    task = result if result.get("resultType") == "task" else result.get("task") if "task" in params else None
    name = task.get("taskId") if isinstance(task, dict) else None
    return name if isinstance(name, str) else None


@attrs.define(eq=False)
class Inputs:
    """Gives the answers of one attempt: the client's, if it declares that it can, else the agent's, or a refusal.

    An agent with a session is asked by it; to one without is returned what is needed, and it makes its request again.
    """

    audience: Audience
    member: Member
    _open: dict[str, Mapping[str, Any]] = attrs.field(factory=dict, init=False)

    async def answer(
        self, params: Mapping[str, Any], send: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        """Make a request with `send`, again and again with what the server needs, and return its result.

        That still says what is needed if an agent without a session can answer it.

        Raises:
            MCPError: the server refuses, neither agent nor client has an answer, or it asks without end.
        """
        self._note_answers(params.get("inputResponses"))
        for _ in range(_ROUNDS):
            result = await send(params)
            if not is_input_required(result):
                return result
            answers = await self.given(params, result)
            if answers is None:
                return result
            if not answers:  # it only wants to be asked again
                await asyncio.sleep(_PAUSE)
            again = {"inputResponses": answers or None, "requestState": result.get("requestState")}
            params = {**params, **{name: value for name, value in again.items() if value is not None}}
        raise MCPError(INTERNAL_ERROR, f"the server asked {_ROUNDS} times for more before its answer")

    async def given(
        self, params: Mapping[str, Any], result: Mapping[str, Any], besides: Collection[str] = ()
    ) -> dict[str, Any] | None:
        """Return the answers to what a result says is needed `besides`; `None` if it is returned to the agent."""
        able = (params.get("_meta") or {}).get(CLIENT_CAPABILITIES_META_KEY)
        needed = {name: asked for name, asked in _requests(result).items() if name not in besides}
        lacking = [asked["method"] for asked in needed.values() if self._asked_by_session(asked) is None]
        if any(isinstance(able, dict) and self.audience.of_agent(method) in able for method in lacking):
            self._open.update(needed)
            return None
        return {name: await self._answer(asked) for name, asked in needed.items()}

    def _asked_by_session(self, asked: Mapping[str, Any]) -> AgentSession | None:
        able = self.audience.of_agent(asked["method"])
        return next((each for each in self.member.agents if able in each.capabilities), None)

    async def _answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        method, params, session = asked["method"], asked.get("params") or {}, self._asked_by_session(asked)
        if session is None:
            return await self.audience.answer_by_client(self.member.answers, [self.member.log], method, params)
        exchange = ServerExchange(self.audience.name, method, "server", params, answered_by="agent")
        return await recorded([self.member.log], exchange, session.ask(method, params))

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
                note([self.member.log], told)


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


@attrs.define(eq=False)
class LiveLink:
    """Sends the requests of one attempt by `connection`, marked with `meta`.

    `place` says whether a loss of the server may be due to another attempt's call. A server of the attempt's `own` has
    no other one. What `replayed` has is answered from there, if the run replays a recording as far as it goes. `learn`
    gets the capabilities that a session was begun anew for.
    """

    connection: ServerConnection
    meta: Mapping[str, Any]
    place: ServerUser
    own: bool
    replayed: ReplayedLink | None = None
    learn: Callable[[Mapping[str, Any]], object] = lambda capabilities: None
    _member: Member | None = attrs.field(default=None, init=False)
    _first: Upstream | None = attrs.field(default=None, init=False)

    @property
    def name(self) -> str:
        """The server's name."""
        return self.connection.server.name

    @property
    def audience(self) -> Audience:
        """Who answers what the server asks."""
        return self.connection.audience

    @property
    def bystander(self) -> bool:
        """Whether another attempt's call may be why this attempt has just lost the server."""
        return self.place.bystander

    def join(self, member: Member) -> None:
        """Let an attempt hear what the server says, until the link is closed."""
        self._member = member
        self.audience.members.append(member)

    async def declare(self, capabilities: Mapping[str, Any]) -> Listing | None:
        """Tell the server what the agent can do by now, and return what it lists to such a client.

        Raises:
            ServerLostError: the server does not come up again, or lists other tools than to a client like that before.
        """
        played = None if self.replayed is None else await self.replayed.listing()
        listing = await self.connection.declare(capabilities)
        if listing.begins_sessions:
            self.learn(capabilities)
        self._first = await self.connection.upstream()
        return played or listing

    async def ask(self, agent_request: AgentRequest, params: Mapping[str, Any], heard: Heard | None) -> dict[str, Any]:
        """Send a request once with these parameters and return its result; `heard` gets its progress.

        If a call changed the server's tools, and the server said so, they are read again by then.

        Raises:
            ValueError: the answer is not the result of a tool call.
            MCPError: the server refuses it.
            CallTimeoutError: it does not answer in time, and lives.
            ServerLostError: it does not come up, or is lost.
        """
        if self.replayed is not None:
            try:
                return await self.replayed.ask(agent_request, params, heard)
            except ReplayMissError:
                agent_request.sent = False
        before = time.perf_counter()
        upstream = await self._reach()
        agent_request.sent = True
        agent_request.aside += time.perf_counter() - before
        request = upstream.call if agent_request.kind == "call" else partial(upstream.request, agent_request.method)
        with ExitStack() as stack:
            sent = stack.enter_context(marked(params, self.meta, self.audience, heard))
            stack.enter_context(self.place.calling())
            result = await request(sent, progress_timeout=agent_request.progress_timeout)
            if task_in(params, result) is not None:  # the server is still at work on it, and tells of its progress
                agent_request.held.enter_context(stack.pop_all())
        before = time.perf_counter()
        await self.connection.relisted()
        agent_request.aside += time.perf_counter() - before
        return result

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification. Raises ServerLostError."""
        await (await self._reach()).notify(method, params)

    async def listen_to(self, uris: Sequence[str], confirmed: asyncio.Event) -> None:
        """Let a server without sessions tell of these resources; `confirmed` says when, or that it does not."""
        self.audience.unconfirmed[confirmed] = uris
        try:
            with suppress(ServerLostError):  # who calls it then is told
                await (await self._reach()).listen_to({"resourceSubscriptions": [*uris]})
        finally:
            del self.audience.unconfirmed[confirmed]
            confirmed.set()

    async def close(self, *, well: bool) -> None:
        """Note that the attempt ends; `well` says that no request is under way and the server was not lost.

        Then its tools are read once more, as not every server says that they have changed.
        """
        if well and self._first is not None:
            await self.connection.relist()
        if self._member in self.audience.members:
            self.audience.members.remove(self._member)

    async def _reach(self) -> Upstream:
        """Return a live session with the server. Raises ServerLostError."""
        upstream = await self.connection.upstream()
        # A new session has nothing of the state that the trial left in the old one.
        if self._first not in (None, upstream) and self._member is not None:
            reason = f"server '{self.name}' was lost between two calls of this trial"
            details = {"bystander": self.bystander}
            lost = TrafficError("lost", reason, failure=ServerLostError.kind, details=details)
            self._member.relisted(upstream.listing, lost)
        self._first = upstream
        return upstream


@attrs.define(eq=False)
class ServerUsers:
    """The attempts that use one server at the same time.

    Nobody can tell which of several calls made a server fail. So an attempt has lost its server to its own call only if
    no other attempt's call was unanswered then, and no other attempt had lost the server since this one came.
    """

    _losses: int = attrs.field(default=0, init=False)
    _under_way: set[_Call] = attrs.field(factory=set, init=False)

    def join(self) -> ServerUser:
        """Return the place of an attempt that begins to use the server."""
        return ServerUser(self, self._losses)


@attrs.define(eq=False)
class ServerUser:
    """One attempt's place among those that use a server."""

    _users: ServerUsers
    _losses: int
    """How many losses of the server are no news to this attempt."""
    _bystander: bool = attrs.field(default=False, init=False)

    @property
    def bystander(self) -> bool:
        """Whether another attempt's call may be why this attempt has just lost the server."""
        return self._bystander or self._users._losses > self._losses or bool(self._others())

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Count a call of this attempt as under way until it is answered, or for good if it loses the server."""
        call = _Call(self, self._others())
        for other in call.beside:
            other.beside.add(call)
        self._users._under_way.add(call)
        answered = True
        try:
            yield
        # The server lives, but may still be at work on this call, and be lost by it.
        except (CallLostError, CallTimeoutError):
            answered = False
            raise
        except ServerLostError:
            answered = False
            self._bystander = bool(call.beside) or self.bystander
            self._users._losses += 1
            self._losses += 1
            raise
        except BaseException as error:
            answered = isinstance(error, Exception)  # an attempt that ended left its call with the server
            raise
        finally:
            self._users._under_way.discard(call)
            if answered:
                for other in call.beside:
                    other.beside.discard(call)

    def _others(self) -> set[_Call]:
        return {call for call in self._users._under_way if call.of is not self}


@attrs.define(eq=False)
class _Call:
    of: ServerUser
    beside: set[_Call]
    """The calls of others that were under way at the same time and have not been answered."""


@attrs.define(eq=False)
class ReplayedLink:
    """Answers the requests of one attempt from `cassette`, as `LiveLink` does; what it lacks raises ReplayMissError.

    What the server asked is asked again: the agent, or the client of `audience`, answers as it did.
    """

    cassette: ServerCassette
    audience: Audience
    own: bool
    bystander: bool = attrs.field(default=False, init=False)
    _member: Member | None = attrs.field(default=None, init=False)

    @property
    def name(self) -> str:
        return self.audience.name

    def join(self, member: Member) -> None:
        self._member = member
        self.audience.members.append(member)
        self.cassette.hear(partial(self._take, None))

    async def declare(self, capabilities: Mapping[str, Any]) -> Listing | None:
        self.audience.passed_on = capabilities
        return await self.listing()

    async def listing(self) -> Listing | None:
        """Return what the server listed when the agent had said what it can do; `None` if that was nothing new."""
        played = await self.cassette.play("notified", "initialize", {}, partial(self._take, None))
        return Listing.told(played.result) if played.result else None

    async def ask(self, agent_request: AgentRequest, params: Mapping[str, Any], heard: Heard | None) -> dict[str, Any]:
        agent_request.sent = True
        take = partial(self._take, heard)
        played = await self.cassette.play(agent_request.kind, agent_request.method, unmarked(params), take)
        if played.error is not None:
            agent_request.sent = played.error.details.get("sent") is not False
            self.bystander = lost_beside(played.error)
            raise error_in(played.error)
        return dict(played.result or {})

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        played = await self.cassette.play("notified", method, unmarked(params), partial(self._take, None))
        if played.error is not None:
            self.bystander = lost_beside(played.error)
            raise error_in(played.error)

    async def listen_to(self, uris: Sequence[str], confirmed: asyncio.Event) -> None:
        confirmed.set()  # what was told is played

    async def close(self, *, well: bool) -> None:
        try:
            await self.cassette.play("closed", "", {}, partial(self._take, None))
        except ReplayMissError:
            pass  # the attempt ended otherwise than the recorded one, which what it asked for has shown
        finally:
            self.audience.members.clear()

    async def _take(self, heard: Heard | None, traffic: ServerTraffic) -> Mapping[str, Any] | TrafficError | None:
        """Pass on what the server asked, told or listed."""
        member = self._member
        if traffic.kind == "asked":
            try:
                return await self.audience.answer(traffic.method, traffic.params)
            except MCPError as refused:
                return recorded_error(refused)
        if member is None:
            return None
        if traffic.kind == "listed":
            member.relisted(Listing.told(traffic.result or {}), traffic.error)
        elif traffic.method != PROGRESS:
            self.audience.tell([member], traffic.method, traffic.params)
        elif heard is not None:
            heard(traffic.params)
        return None
