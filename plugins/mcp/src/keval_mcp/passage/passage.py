"""The passage: one attempt's way to one server. It lists, forwards calls, and records them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from types import MappingProxyType
from typing import Any, TypeAlias

import attrs
from mcp import MCPError
from mcp.types import (
    CLIENT_CAPABILITIES_META_KEY,
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
)

from keval import ToolCall
from keval.errors import ServerLostError
from keval.records.cassettes import ReplayMissError, ServerTrafficLog, TrafficError
from keval.records.servers import CallLog
from keval.records.transcript import ServerExchange
from keval.seams.live_events import EmitEvent
from keval.seams.use_meter import UseMeter
from keval_mcp.passage.call_record import CallRecord
from keval_mcp.passage.link import (
    FAILURES,
    AgentRequest,
    Heard,
    Inputs,
    LiveLink,
    ReplayedLink,
    check_writable,
    is_input_required,
    lost_beside,
    recorded_error,
    task_in,
    unmarked,
)
from keval_mcp.passage.offered import Offered
from keval_mcp.passage.tasks import Tasks
from keval_mcp.schemas import fit
from keval_mcp.server.answers import ClientAnswers
from keval_mcp.server.audience import PROGRESS, TOOLS_LIST_CHANGED, AgentSession, note, recorded
from keval_mcp.server.session import Listing, check_result, is_beside_tools, tool_error
from keval_mcp.server.upstream import CallLostError, CallTimeoutError
from keval_mcp.server.waiting import ProgressTimeout
from keval_mcp.text_log import FollowedTexts, text_in
from keval_mcp.tool_results import ToolResult

_CONFIRM_SECONDS = 2.0
"""How long an agent that listens for changes waits for the server."""

Link: TypeAlias = LiveLink | ReplayedLink
"""Leads the requests of one attempt to its server, or to what a recording has of it."""


@attrs.define(eq=False)
class Passage:
    """Forwards the calls of one attempt by `link`, and records each of them in `log`.

    An agent in keval's own process reaches it through a `Channel`; to others the tap serves it. `offered` is what the
    agent is offered, and the way of its calls through the interventions. `progress_timeout` makes that of a request.
    `emit`, `traffic_log` and `meter` are those of its use, and `agents` the sessions in which the agent hears what else
    passes. A `guest` asks beside the attempt's agent, which alone hears the server and closes the link. `texts` follows
    the resources and prompts that the agent gets.
    """

    link: Link
    offered: Offered
    progress_timeout: Callable[[], ProgressTimeout]
    answers: ClientAnswers
    emit: EmitEvent | None = None
    traffic_log: ServerTrafficLog | None = None
    meter: UseMeter | None = None
    guest: bool = False
    texts: FollowedTexts | None = None
    log: CallLog = attrs.field(init=False)
    agents: list[AgentSession] = attrs.field(factory=list, init=False)
    subscribed: set[str] = attrs.field(factory=set, init=False)
    ended: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    spoken: str | None = attrs.field(default=None, init=False)
    """The revision of MCP in which the agent speaks with the tap, as far as it has said."""
    _calls: set[asyncio.Task[Mapping[str, Any]]] = attrs.field(factory=set, init=False)
    _numbers: Iterator[int] = attrs.field(factory=partial(count, 1), init=False)
    _closed: bool = attrs.field(default=False, init=False)
    _declared: bool = attrs.field(default=False, init=False)
    _declaring: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _inputs: Inputs = attrs.field(init=False)
    tasks: Tasks = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.log = self.offered.log
        self._inputs = Inputs(self.link.audience, self)
        self.tasks = Tasks(self._inputs)
        if not self.guest:
            self.link.join(self)

    @property
    def name(self) -> str:
        """The server's name."""
        return self.link.name

    @property
    def own(self) -> bool:
        """Whether no other attempt uses the server."""
        return self.link.own

    @property
    def listing(self) -> Listing:
        """What the agent is offered by now, and how the server introduced itself."""
        return self.offered.listing

    @property
    def busy(self) -> bool:
        """Whether a request or task of the agent is under way."""
        return bool(self._calls or self.tasks.under_way)

    @property
    def expects(self) -> bool:
        """Whether the server was begun for capabilities that the agent has not declared yet."""
        return not self._declared and bool(self.link.audience.passed_on)

    async def declare(self, capabilities: Mapping[str, Any]) -> None:
        """Tell a server of the attempt's own what the agent can do; offer what the server lists to such a client."""
        self._declared = True
        async with self._declaring:  # whoever declares the same at the same time gets the same list
            if capabilities != self.link.audience.passed_on:
                await self._declare(capabilities)

    async def _declare(self, capabilities: Mapping[str, Any]) -> None:
        try:
            listing = await self.link.declare(capabilities)
        except ServerLostError as lost:
            self._lose(str(lost), lost.kind, bystander=False)
            raise MCPError(INTERNAL_ERROR, str(lost).partition("\n")[0]) from lost
        except ReplayMissError as miss:
            raise self._miss(miss) from miss
        other = None if listing is None or listing.tools == self.offered.listed.tools else listing
        if self.traffic_log is not None:
            kept = None if other is None else other.as_kept()
            self.traffic_log.end(self.traffic_log.begin("notified", "initialize"), kept)
        if other is not None:
            self.offered.begin(other)

    async def _declare_for(self, params: Mapping[str, Any]) -> None:
        """Declare what a request says that the agent can do, if there are no sessions; nothing, if none was begun."""
        begins = self.listing.begins_sessions
        if self.guest or not self.own or (begins and not self.expects):
            return
        given = None if begins else (params.get("_meta") or {}).get(CLIENT_CAPABILITIES_META_KEY)
        await self.declare(given if isinstance(given, dict) else {})

    async def list_tools(self, params: Mapping[str, Any] = MappingProxyType({})) -> tuple[Mapping[str, Any], ...]:
        """Return the definitions of the tools that are offered to a request with these parameters."""
        await self._declare_for(params)
        return self.listing.tools

    def relisted(self, listing: Listing, lost: TrafficError | None = None) -> None:
        """Take what the server lists now; the agent is told if it is offered something else by that."""
        if self.traffic_log is not None and (lost is not None or listing.tools != self.offered.listed.tools):
            self.traffic_log.end(self.traffic_log.begin("listed"), listing.as_kept(), lost)
        if lost is not None:
            self._lose(lost.message, lost.failure or self.log.kind, bystander=lost_beside(lost))
        if self.offered.take(listing):
            for agent in self.agents:
                agent.tell(TOOLS_LIST_CHANGED, {})

    async def forward(self, params: Mapping[str, Any], progressed: Heard | None = None) -> Mapping[str, Any]:
        """Call the server with the parameters of `tools/call`, and return its answer as it came.

        If the server makes a task of it, that is its answer, and the call goes on until the agent has the result. A
        server that is lost is a tool error that says so. An agent that hangs up does not undo what the server is
        already doing, so the outcome is still waited for and recorded. `progressed` gets the call's progress.

        Raises:
            MCPError: the server refused the call; raised again towards the agent as it came.
        """
        if self.meter is not None and (refusal := self.meter.tapped()) is not None:
            return self._instead(params, tool_error(refusal))
        await self._declare_for(params)
        created: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        call = self._begin(self._forward(params, progressed, created))
        return tool_error("the trial has ended") if call is None else await self._ended(call, created)

    async def request(
        self, method: str, params: Mapping[str, Any], progressed: Heard | None = None
    ) -> Mapping[str, Any]:
        """Pass on a request that is no tool call, and return its result as it came.

        Raises:
            MCPError: the server refused it, or was lost.
        """
        if self.offered.tools_alone and is_beside_tools(method):
            raise MCPError(METHOD_NOT_FOUND, f"Method not found: {method}")
        await self._declare_for(params)
        asked = ServerExchange(self.name, method, "agent", params, answered_by="server")
        send = partial(self._request, progressed=progressed)
        answer = self.tasks.answer(method, params, send) if method.startswith("tasks/") else send(method, params)
        request = self._begin(recorded([self.log], asked, answer))
        if request is None:
            raise MCPError(CONNECTION_CLOSED, "the trial has ended")
        return await self._ended(request)

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass on a notification of the agent."""
        note([self.log], ServerExchange(self.name, method, "agent", params, at=time.time()))
        number = self.traffic_log.begin("notified", method, unmarked(params)) if self.traffic_log is not None else 0
        error: TrafficError | None = None
        try:
            await self.link.notify(method, params)
        except ServerLostError as lost:
            error = recorded_error(lost, bystander=self.link.bystander)
            self._lose(str(lost), lost.kind, bystander=self.link.bystander)
        except ReplayMissError as miss:
            self._miss(miss)
            return
        if self.traffic_log is not None:
            self.traffic_log.end(number, error=error)

    async def listen_to(self, uris: Sequence[str], begun: Callable[[], object]) -> None:
        """Hear of changes of these resources, and of the lists, until the attempt ends.

        `begun` is called when the server has confirmed it, or does not in time.
        """
        self.subscribed.update(uris)
        confirmed = asyncio.Event()
        listening = [asyncio.create_task(self.link.listen_to(uris, confirmed))] if uris else []
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CONFIRM_SECONDS if uris else 0):
                    await confirmed.wait()
            begun()
            await self.ended.wait()
        finally:
            for each in listening:
                each.cancel()
            await asyncio.gather(*listening, return_exceptions=True)

    async def close(self) -> None:
        """End the calls still under way; each is recorded as abandoned."""
        # First, so that no call begins while those under way are ended.
        self._closed = True
        self.ended.set()
        calls, tasks = set(self._calls), self.tasks.under_way
        for call in (*calls, *tasks):
            call.cancel()
        await asyncio.gather(*calls, *tasks, return_exceptions=True)  # `forward` has shown or will show their outcome
        if self.guest:
            return
        number = self.traffic_log.begin("closed") if self.traffic_log is not None else 0
        await self.link.close(well=not calls and self.log.lost is None)
        if self.traffic_log is not None:
            self.traffic_log.end(number)

    def _begin(self, request: Coroutine[Any, Any, Mapping[str, Any]]) -> asyncio.Task[Mapping[str, Any]] | None:
        """Begin a request as a task of its own; `None` if the trial has ended."""
        if self._closed:
            # Python warns of a coroutine that nobody awaits.
            request.close()
            return None
        task = asyncio.create_task(request)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        return task

    async def _ended(
        self, task: asyncio.Task[Mapping[str, Any]], created: asyncio.Future[Mapping[str, Any]] | None = None
    ) -> Mapping[str, Any]:
        """Wait for a request, or what it has `created`. An agent that gives it up gives it up at the server, too."""
        try:
            # Unlike `await task`, this tells an agent that gives up from a call that `close` has cancelled.
            await asyncio.wait({task} if created is None else {task, created}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if created is not None and created.done():
            return created.result()
        return tool_error("the trial has ended") if task.cancelled() else task.result()

    def _instead(self, params: Mapping[str, Any], result: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.tasks.instead(params, self.listing, result)

    async def _request(self, method: str, params: Mapping[str, Any], progressed: Heard | None) -> dict[str, Any]:
        agent_request = AgentRequest("request", method, self.progress_timeout())
        self.tasks.follow(method, params, agent_request)
        try:
            result = await self._asked(agent_request, params, progressed)
        except CallTimeoutError as late:
            raise MCPError(REQUEST_TIMEOUT, str(late)) from late
        except ServerLostError as lost:
            self._lose(str(lost), lost.kind, bystander=_is_beside(self.link, lost))
            raise MCPError(INTERNAL_ERROR, str(lost).partition("\n")[0]) from lost
        except ReplayMissError as miss:
            raise self._miss(miss) from miss
        uri = str(params.get("uri"))
        # Of a shared server's resources, an attempt hears only about those that it has subscribed to (`Audience`).
        if method == "resources/subscribe":
            self.subscribed.add(uri)
        elif method == "resources/unsubscribe":
            self.subscribed.discard(uri)
        elif self.texts is not None and (text := text_in(method, params, result)) is not None:
            self.texts.add(*text)
        return result

    async def _asked(
        self, agent_request: AgentRequest, params: Mapping[str, Any], progressed: Heard | None
    ) -> dict[str, Any]:
        """Make a request of the agent, in as many rounds as it takes, and return its result."""
        check_writable(params)

        def heard(progress: Mapping[str, Any]) -> None:
            agent_request.progress_timeout.extend()
            note([self.log], ServerExchange(self.name, PROGRESS, "server", progress, at=time.time()))
            if progressed is not None:
                progressed(progress)

        # A token that the agent did not send could make the server behave otherwise than without the tap.
        listener = heard if progressed is not None else None
        return await self._inputs.answer(params, partial(self._ask, agent_request, heard=listener))

    async def _ask(self, agent_request: AgentRequest, params: Mapping[str, Any], heard: Heard | None) -> dict[str, Any]:
        """Send a request once; a run that is recorded keeps what came of it, and no end of what is cancelled."""
        if (traffic_log := self.traffic_log) is None:
            return await self.link.ask(agent_request, params, heard)
        number = traffic_log.begin(agent_request.kind, agent_request.method, unmarked(params))

        def keep_heard(progress: Mapping[str, Any]) -> None:
            if heard is not None:
                traffic_log.end(traffic_log.begin("told", PROGRESS, progress, during=number))
                heard(progress)

        try:
            result = await self.link.ask(agent_request, params, keep_heard if heard is not None else None)
        except FAILURES as error:
            kept = recorded_error(error, sent=agent_request.sent, bystander=self.link.bystander)
            traffic_log.end(number, error=kept)
            raise
        traffic_log.end(number, result)
        return result

    async def _forward(
        self, params: Mapping[str, Any], progressed: Heard | None, created: asyncio.Future[Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        name, arguments = params["name"], params.get("arguments")
        call = ToolCall(name, arguments or {}, server=self.name, executions=0, listing=self.offered.held)
        record = CallRecord(self.log, call)

        async def ask(agent_request: AgentRequest, changed: Mapping[str, Any]) -> dict[str, Any]:
            try:
                result = await self._asked(agent_request, changed, progressed)
            finally:
                record.know(executions=int(agent_request.sent))
                record.began += agent_request.aside
            if (task := task_in(changed, result)) is None:
                return result
            begun = self.tasks.begin(task, agent_request, record)
            self._calls.discard(begun.call)  # the request is answered
            created.set_result(result)
            fetched = await begun.raw
            check_result(fetched)
            return fetched

        async def send(tool: str, given: Mapping[str, Any] | None) -> Mapping[str, Any]:
            changed = {**params, "name": tool} if given is None else {**params, "name": tool, "arguments": dict(given)}
            agent_request = AgentRequest("call", "tools/call", self.progress_timeout())
            with agent_request.held:
                return await self._told(agent_request, changed, ask(agent_request, changed))

        try:
            outcome = await self.offered.calls.call(name, arguments, send)
        except CallTimeoutError as late:
            record.put(error=str(late), error_kind="tool_timeout")
            return self._instead(params, tool_error(str(late)))
        except ServerLostError as lost:
            self._lose(str(lost), lost.kind, bystander=_is_beside(self.link, lost))
            problem = str(lost).partition("\n")[0]  # the agent needs no standard error
            record.put(error=problem)
            return self._instead(params, tool_error(problem))
        except MCPError as refused:
            self._put_failed(record, refused.message)
            raise
        except ValueError as invalid:
            problem = f"server '{self.name}' answered {name!r} with something that is no tool result"
            record.put(error=f"{problem}: {invalid}")
            raise MCPError(INTERNAL_ERROR, problem) from invalid
        except ReplayMissError as miss:
            record.put(error=str(miss))
            raise self._miss(miss) from miss
        except asyncio.CancelledError:
            if not created.done():
                who = "the trial ended" if self._closed else "the agent gave the call up"
                record.put(error=f"{who} before the server answered")
            raise
        if is_input_required(outcome.result):  # the agent makes the call again, with what is needed
            return outcome.result
        read = ToolResult(outcome.result)
        self.log.blobs.extend(read.blobs)
        tool = outcome.tool if outcome.tool != name else None
        record.know(tool=tool, error_kind=outcome.error_kind, changed=outcome.changed, content=read.content)
        # Only a call that failed is held against the schema, as servers may take more than it says.
        if read.is_error:
            self._put_failed(record, read.text)
        else:
            record.put(result=read.text)
        is_of_server = outcome.sent or created.done()
        return outcome.result if is_of_server else self._instead(params, outcome.result)

    async def _told(
        self, agent_request: AgentRequest, params: Mapping[str, Any], asked: Awaitable[dict[str, Any]]
    ) -> dict[str, Any]:
        """Await a call as it is sent, with these parameters of `tools/call`, tell of it, and return its result."""
        if self.emit is None:
            return await asked
        call = {"server": self.name, "tool": params["name"], "call": next(self._numbers)}
        self.emit("server_called", {**call, "arguments": params.get("arguments") or {}})
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
            took = time.perf_counter() - began - agent_request.aside
            self.emit("server_returned", {**call, "error": error, "duration": took})

    def _put_failed(self, record: CallRecord, error: str) -> None:
        """Record a call that failed, with the kind of its error if that is that its arguments do not fit the tool."""
        call, schema = record.call, self.listing.schemas.get(record.call.name)
        if call.error_kind is None and schema is not None and not fit(schema, call.arguments):
            record.know(error_kind=BAD_ARGUMENTS)
        record.put(error=error)

    def _lose(self, reason: str, kind: str, *, bystander: bool) -> None:
        # The first loss is the cause of those that follow.
        if self.log.lost is None:
            self.log.lost, self.log.kind, self.log.bystander = reason, kind, bystander

    def _miss(self, miss: ReplayMissError) -> MCPError:
        """Note what the recording of a server that is played does not have, and return what the agent gets for it."""
        if self.log.missed is None:
            self.log.missed = str(miss)
        return MCPError(INTERNAL_ERROR, str(miss).partition("\n")[0])


def _is_beside(link: Link, lost: ServerLostError) -> bool:
    """Return whether another attempt's call may be why the server was lost."""
    return link.bystander and not isinstance(lost, CallLostError)


BAD_ARGUMENTS = "bad_arguments"
"""The kind of an error of a call whose arguments do not fit."""
