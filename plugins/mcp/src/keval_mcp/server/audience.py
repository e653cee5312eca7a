"""The audience of a server: who answers what it asks, and hears what it says unasked."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import attrs
from mcp import MCPError

from keval.records.cassettes import ServerTrafficLog, TrafficError
from keval.records.servers import CallLog
from keval.records.transcript import ModelUsage, ServerExchange
from keval_mcp.server.answers import NEEDED, ClientAnswers
from keval_mcp.server.client import Client
from keval_mcp.server.session import Listing

PROGRESS = "notifications/progress"
TOOLS_LIST_CHANGED = "notifications/tools/list_changed"
RELATED_TASK = "io.modelcontextprotocol/related-task"
"""What names the task in the `_meta` of messages about one."""

_MOST = 1000
"""Exchanges that are kept of one attempt with one server."""


class AgentSession(Protocol):
    """An agent's session with the tap, through which a server reaches the agent."""

    capabilities: Mapping[str, Any]

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the agent. Raises MCPError when it refuses."""
        ...

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass a notification on to the agent."""
        ...


class Member(Protocol):
    """One attempt that uses the server, with its `tasks`.

    `traffic_log` keeps what the server says by itself, if the run is recorded.
    """

    log: CallLog
    answers: ClientAnswers
    agents: list[AgentSession]
    subscribed: set[str]
    traffic_log: ServerTrafficLog | None

    @property
    def own(self) -> bool:
        """Whether no other attempt uses the server."""
        ...

    @property
    def tasks(self) -> Container[str]:
        """The names of the tasks that the server has begun for this attempt."""
        ...

    def relisted(self, listing: Listing, lost: TrafficError | None = None) -> None:
        """Take what the server lists now, after it was `lost` between two exchanges, if it was."""
        ...

    @property
    def busy(self) -> bool:
        """Whether a request of this attempt is under way."""
        ...


@attrs.define(eq=False)
class Audience:
    """The attempts that use one connection with the server `name`.

    An attempt with a server of its own passes on to its agent what the agent declares that it can do, and `client` does
    not. All else is answered by that. `passed_on` are the capabilities of the agent that the server is told of.
    `relist` is called when the server says that its tools have changed. `unconfirmed` has what to set when the server
    listens for changes of these resources.
    """

    name: str
    client: Client
    relist: Callable[[], object]
    passed_on: Mapping[str, Any] = attrs.field(factory=dict)
    members: list[Member] = attrs.field(factory=list, init=False)
    unconfirmed: dict[asyncio.Event, Sequence[str]] = attrs.field(factory=dict, init=False)
    _progress: dict[str, Callable[[Mapping[str, Any]], object]] = attrs.field(factory=dict, init=False)
    _numbers: Iterator[int] = attrs.field(factory=itertools.count, init=False)

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the server is told that its client can do."""
        own = self.client.capabilities
        extensions = {**(self.passed_on.get("extensions") or {}), **self.client.extensions}
        return {**self.passed_on, **own, **({"extensions": extensions} if extensions else {})}

    @property
    def about(self) -> dict[str, Any]:
        """What the server is told of its client, as `initialize` has it."""
        return {"capabilities": self.capabilities, "clientInfo": self.client.info}

    def of_agent(self, method: str) -> str | None:
        """Return the capability by which an agent is asked; `None` where the client answers, or nothing declares it."""
        needed = NEEDED.get(method)
        return None if needed in self.client.capabilities else needed

    async def answer(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a request of the server; it is recorded in the log of each attempt with a request under way."""
        # The attempts that it may be about: those that wait for the server, or all.
        busy = [member for member in self.members if member.busy]
        concerned = self._of_task(params) or busy or [*self.members]
        traffic_logs = [(log, log.begin("asked", method, params)) for each in concerned if (log := each.traffic_log)]
        try:
            result = await self._answer(concerned, method, params)
        except MCPError as refused:
            error = TrafficError("refused", refused.message, code=refused.code, data=refused.data)
            for log, number in traffic_logs:
                log.end(number, error=error)
            raise
        for log, number in traffic_logs:
            log.end(number, result)
        return result

    async def answer_by_client(
        self, answers: ClientAnswers, logs: Iterable[CallLog], method: str, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Answer a request of the server as the context's client does. Raises MCPError when it has no answer."""
        asked = ServerExchange(self.name, method, "server", params, answered_by="policy")
        took: list[ModelUsage] = []
        return await recorded(logs, asked, answers.answer(method, params, took), took)

    def hear(self, method: str, params: Mapping[str, Any]) -> None:
        """Record a notification of the server, and pass it on to the agents that it concerns."""
        if method == PROGRESS:
            listener = self._progress.get(str(params.get("progressToken")))
            if listener is not None:
                listener(params)
            return
        if method == "notifications/subscriptions/acknowledged":  # of keval's listening
            named = (params.get("notifications") or {}).get("resourceSubscriptions") or ()
            for confirmed, uris in self.unconfirmed.items():
                if set(uris) <= {*named}:
                    confirmed.set()
            return
        if method == "notifications/cancelled":  # of a request of the server, whose answering has ended with it
            return
        self.tell(self._hearers(method, params), method, params)
        if method == TOOLS_LIST_CHANGED:
            self.relist()

    def tell(self, members: Iterable[Member], method: str, params: Mapping[str, Any]) -> None:
        """Record a notification of the server for these attempts, and pass it on to their agents."""
        for member in members:
            if member.traffic_log is not None:
                member.traffic_log.end(member.traffic_log.begin("told", method, params))
            note([member.log], ServerExchange(self.name, method, "server", params, at=time.time()))
            if method == TOOLS_LIST_CHANGED:  # each attempt tells its agent when it follows, after the tools are read
                continue
            for agent in member.agents:
                agent.tell(method, params)

    @contextmanager
    def listening(self, listener: Callable[[Mapping[str, Any]], object]) -> Iterator[str]:
        """Yield a progress token; `listener` gets the parameters of each progress notification for it."""
        # Agents' own tokens may be alike, as each agent counts for itself.
        token = f"keval-{next(self._numbers)}"
        self._progress[token] = listener
        try:
            yield token
        finally:
            del self._progress[token]

    async def _answer(self, concerned: Sequence[Member], method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        logs = [member.log for member in concerned]
        # What keval does not know, and is nothing that is declared, the agent may.
        needed, known = self.of_agent(method), method in NEEDED
        for member in self.members:
            for agent in member.agents:
                # Where several attempts use a server, nobody knows which of them it asks.
                if member.own and (not known or (needed in self.passed_on and needed in agent.capabilities)):
                    asked = ServerExchange(self.name, method, "server", params, answered_by="agent")
                    return await recorded(logs, asked, agent.ask(method, params))
        answers = concerned[0].answers if concerned else ClientAnswers(self.client)
        return await self.answer_by_client(answers, logs, method, params)

    def _hearers(self, method: str, params: Mapping[str, Any]) -> Iterable[Member]:
        if method == "notifications/resources/updated":
            return [member for member in self.members if member.own or is_within(params.get("uri"), member.subscribed)]
        if method.endswith("/list_changed"):
            return [*self.members]
        return self._of_task(params) or [member for member in self.members if member.own or member.busy]

    def _of_task(self, params: Mapping[str, Any]) -> list[Member]:
        """Return the attempts whose task a message of the server is about, if it names one."""
        meta = params.get("_meta")
        about = meta.get(RELATED_TASK) if isinstance(meta, dict) and RELATED_TASK in meta else params
        name = about.get("taskId") if isinstance(about, dict) else None
        return [member for member in self.members if isinstance(name, str) and name in member.tasks]


def is_within(uri: object, subscribed: Collection[str]) -> bool:
    """Return whether a resource is one of those `subscribed`, or a part of one, which a server may tell of, too."""
    parts = tuple(each.rstrip("/") + mark for each in subscribed for mark in "/#?")
    return uri in subscribed or (isinstance(uri, str) and uri.startswith(parts))


async def recorded(
    logs: Iterable[CallLog],
    exchange: ServerExchange,
    answer: Awaitable[dict[str, Any]],
    took: Sequence[ModelUsage] = (),
) -> dict[str, Any]:
    """Wait for the answer to a request and return it; the exchange is recorded however it ends.

    `took` has by then what a model took, if one answered.
    """
    at, began = time.time(), time.perf_counter()
    result: dict[str, Any] | None = None
    error: str | None = "it was not answered"
    try:
        result = await answer
        error = None
        return result
    except MCPError as refused:
        error = refused.message
        raise
    finally:
        told = attrs.evolve(exchange, result=result, error=error, sampled=next(iter(took), None))
        note(logs, attrs.evolve(told, at=at, duration=time.perf_counter() - began))


def note(logs: Iterable[CallLog], exchange: ServerExchange) -> None:
    """Add an exchange to logs, the first 1,000 of each, and all that cost something."""
    for log in logs:
        if len(log.exchanges) < _MOST or exchange.sampled is not None:
            log.exchanges.append(exchange)
