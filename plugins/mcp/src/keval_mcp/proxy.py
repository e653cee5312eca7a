"""The server proxy: connects to MCP servers and offers each to agents by the tap, from a recording, or as it is."""

from __future__ import annotations

import asyncio
import json
import logging
import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import attrs

from keval import Transcript
from keval.errors import PluginWarning, PreflightError, ServerLostError
from keval.records.cassettes import ServerCassette, ServerTraffic
from keval.records.servers import CallLog, McpServer, ServerStarts, Sharing, ToolListing
from keval.seams.contexts import Context, ServerSpec, ServerUse
from keval.seams.infrastructure import ConnectedServer
from keval_mcp.changes import Changes
from keval_mcp.hints import sharing_by_hints
from keval_mcp.passage.link import LiveLink, ReplayedLink, ServerUsers, error_in, recorded_error
from keval_mcp.passage.offered import Offered
from keval_mcp.passage.passage import Link, Passage
from keval_mcp.providers import ProxiedServer, planned_sharing, sharing_of, tell
from keval_mcp.reconciliation import as_observed, check
from keval_mcp.server.answers import ClientAnswers
from keval_mcp.server.audience import Audience
from keval_mcp.server.client import client_of
from keval_mcp.server.connection import ServerConnection, Starter, connection_to, in_folder
from keval_mcp.server.difference import difference
from keval_mcp.server.pool import Pool
from keval_mcp.server.session import Listing
from keval_mcp.server.upstream import CHECK_SECONDS
from keval_mcp.server.waiting import ProgressTimeout
from keval_mcp.tap.agent_session import Channel
from keval_mcp.tap.http import Tap, tap

# Python prints the warnings of libraries that nobody configured logging for; what the SDK has to say of a server
# reaches the user in keval's own errors.
logging.getLogger("mcp").addHandler(logging.NullHandler())

_log = logging.getLogger("keval_mcp")


@attrs.frozen
class McpProxy:
    """Connects to servers over stdio, streamable HTTP and SSE; see `keval.seams.infrastructure.ServerProxy`."""

    _starter: Starter = attrs.field(factory=Starter, init=False)

    @asynccontextmanager
    async def connect(self, use: ServerUse) -> AsyncIterator[ConnectedServer]:
        """Bring a server up, list its tools, and hold it as long as its trials share it.

        Raises:
            PreflightError: the server does not come up, or has nothing for agents.
            InterventionError: an intervention on it cannot be made.
        """
        server = use.server
        async with AsyncExitStack() as stack:
            # A server that is played is neither started nor reached: the recording has what it listed.
            if use.cassette is not None and not use.asks_live:
                listing, sharing = _recorded(use.cassette, _proxied(server))
                changes, told = _offer(use, listing)
                if sharing is not None and _is_shared_by_hints(server, told):
                    told = attrs.evolve(told, sharing=sharing)
                yield PlayedServer(await stack.enter_async_context(tap(use.name)), changes, told, use.cassette)
                return
            if server.bring_up is not None:
                server = await stack.enter_async_context(server.bring_up(server))
            async with AsyncExitStack() as first:
                connection, listing = await _first_connected(server, first)
                if use.cassette is not None:
                    listing = _as_recorded(use.name, use.cassette, listing)
                changes, told = _offer(attrs.evolve(use, server=server), listing)
                is_unused = True
                if _is_shared_by_hints(server, told):
                    sharing, is_unused = await self._try_hints(use, server, changes, connection)
                    told = attrs.evolve(told, sharing=sharing)
                if use.traffic_log is not None:
                    kept = {**listing.as_kept(), "sharing": told.sharing and attrs.asdict(told.sharing)}
                    if (skills := _proxied(server).skills) is not None:
                        kept["skills"] = skills.kept()
                    use.traffic_log.end(use.traffic_log.begin("listed"), kept)
                if not server.tap:
                    # Agents connect themselves; this connection was only to see what the server lists.
                    await first.aclose()
                    yield _Direct(server, told, connection.start_seconds)
                    return
                reached = await stack.enter_async_context(tap(server.name))
                live = _Live(reached, changes, told, server, connection, self._starter, stack)
                # A process that is started ahead cannot be told of its trial, as none has asked for it yet.
                if not live.shared and use.start_ahead and not _is_told(server):
                    live.start_ahead = use.start_ahead
                    # The first trial gets the process that has just listed the tools, and did nothing else.
                    if is_unused:
                        live.pool({}).add(connection, first.pop_all())
                if not live.shared:
                    await first.aclose()
                yield live

    async def _try_hints(
        self, use: ServerUse, server: ServerSpec, changes: Changes, connection: ServerConnection
    ) -> tuple[Sharing, bool]:
        """Return whether trials share a server that only reads by its hints, and whether it was asked nothing."""
        if use.start_ahead == 1:
            told = "one trial is planned, for which no readOnlyHint is tried"
            return Sharing(False, told, verified=server.transport == "stdio"), True
        own = {*changes.names.values()}
        tools = [tool for tool in changes.original.tools if tool["name"] in own]
        return await sharing_by_hints(server, tools, connection, self._starter)

    def observed(self, transcript: Transcript, context: Context) -> Transcript:
        """Return the transcript with each call's result, and all else that passed, as taps saw it."""
        return as_observed(transcript, context)

    def check(self, transcript: Transcript, context: Context) -> None:
        """Raise if a completed trial is not evidence about its condition."""
        check(transcript, context)


def _is_shared_by_hints(server: ServerSpec, listing: ToolListing) -> bool:
    """Return whether nothing but the hints of its tools says that trials share a server."""
    return listing.sharing is not None and listing.sharing.shared and planned_sharing(server) is None


_PLAIN = ProxiedServer("", "stdio")


def _proxied(server: ServerSpec) -> ProxiedServer:
    """Return what the proxy is told of a server; of one that is not of this package's contexts, nothing."""
    return server if isinstance(server, ProxiedServer) else _PLAIN


def _recorded(cassette: ServerCassette, server: ProxiedServer = _PLAIN) -> tuple[Listing, Sharing | None]:
    """Return what a server listed when it was recorded, and whether trials shared it, if the recording says.

    The skills that it hands out are restored.
    """
    kept = {**cassette.listed()}
    sharing, skills = kept.pop("sharing", None), kept.pop("skills", None)
    if server.skills is not None:
        server.skills.restore(skills)
    return Listing.told(kept), Sharing(**sharing) if sharing else None


def _as_recorded(name: str, cassette: ServerCassette, listing: Listing) -> Listing:
    """Return what a server listed when it was recorded. Raises PreflightError: it has other tools now."""
    recorded, _ = _recorded(cassette)
    if recorded.digest != listing.digest:
        raise PreflightError(
            f"server '{name}' lists other tools than when it was recorded: {difference(recorded, listing)};"
            " so it cannot be asked what the recording does not have: leave out `misses: live`, or record again"
        )
    return recorded


async def _first_connected(server: ServerSpec, stack: AsyncExitStack) -> tuple[ServerConnection, Listing]:
    """Connect to a server for the first time, and return what it lists. Raises PreflightError."""
    try:
        connection = await stack.enter_async_context(connection_to(server))
        listing = (await connection.upstream()).listing
    except ServerLostError as error:
        raise PreflightError(str(error)) from error
    if not listing.tools:
        others = " and ".join(name for name in ("prompts", "resources") if listing.capabilities.get(name) is not None)
        if _proxied(server).offer == "tools" or not others:
            nothing = "so it changes nothing for an agent; check its configuration"
            raise PreflightError(f"server '{server.name}' lists no tools, {nothing}")
        told = f"only {others}: it changes nothing for agents that take tools alone from MCP servers"
        warnings.warn(f"server '{server.name}' lists no tools, {told}", PluginWarning, stacklevel=2)
    return connection, listing


@attrs.frozen(eq=False)
class _Direct:
    """A server that agents connect to themselves; nobody watches."""

    server: ServerSpec
    tool_listing: ToolListing
    start_seconds: Sequence[float]

    @property
    def starts(self) -> ServerStarts:
        return ServerStarts(len(self.start_seconds), sum(self.start_seconds))

    @asynccontextmanager
    async def open(self, use: ServerUse) -> AsyncIterator[McpServer]:
        async with in_folder(tell(_brought_up(use.server, self.server))) as placed:
            yield McpServer(
                name=placed.name,
                transport=placed.transport,
                url=placed.url,
                headers=placed.headers,
                command=placed.command,
                args=placed.args,
                env=placed.env,
                cwd=placed.cwd,
                tools=self.tool_listing.tools,
                timeout=placed.timeout,
                instructions=self.tool_listing.instructions,
            )


@attrs.define(eq=False)
class Tapped:
    """What agents reach through the tap, be it live or played: `changes` of what the server lists."""

    tap: Tap
    changes: Changes
    tool_listing: ToolListing

    @property
    def shared(self) -> bool:
        """Whether trials share the server."""
        return self.tool_listing.sharing is not None and self.tool_listing.sharing.shared

    async def reached(self, use: ServerUse, link: Link, listing: Listing, stack: AsyncExitStack) -> McpServer:
        """Return how an agent reaches what is behind `link`, which lists this by now."""
        server = use.server
        if use.aliases != self.changes.aliases:  # they are known when all servers of the condition are
            self.changes = Changes.of(use.interventions, use.aliases, self.changes.original)
        trial = self.changes.trial(seed=use.seed, trial=use.trial)
        tools_alone = _proxied(server).offer == "tools"
        offered = Offered(server.name, server.dynamic_tools, trial, CallLog(), tools_alone)
        if link.audience.passed_on:
            offered.begin(listing)
        offered.take(listing)
        progress_timeout = partial(ProgressTimeout, server.timeout, server.max_timeout)
        texts = _proxied(server).texts
        answers = ClientAnswers(link.audience.client, use, offered.log)
        passage = Passage(link, offered, progress_timeout, answers, use.emit, use.traffic_log, use.meter, texts=texts)
        # The way to the server beside that of the agent: nothing is changed, and no call is the agent's.
        offered = Offered(server.name, "freeze", Changes.of((), {}, listing).trial(), CallLog())
        source = Passage(link, offered, progress_timeout, answers, traffic_log=use.traffic_log, guest=True)
        stack.push_async_callback(source.close)
        return McpServer(
            name=server.name,
            transport="http",
            url=await stack.enter_async_context(self.tap.open(passage)),
            tools=passage.listing.names,
            # The tap notices first that a server does not answer, and tells the agent why.
            timeout=max(server.timeout, server.max_timeout or 0.0) + 2 * CHECK_SECONDS,
            log=passage.log,
            instructions=self.tool_listing.instructions,
            channel=Channel(passage),
            source=Channel(source),
        )


@attrs.define(eq=False)
class _Live(Tapped):
    """A server that keval is connected to. If trials share it, they do so by `connection`.

    A server of a trial's own begins with the capabilities that its agent declared to one before. `start_ahead` is how
    many trials processes are started ahead for; `stack` ends them.
    """

    server: ServerSpec
    connection: ServerConnection
    starter: Starter
    stack: AsyncExitStack
    start_ahead: int = 0
    _pools: dict[str, Pool[ServerConnection]] = attrs.field(factory=dict, init=False)
    _declared: dict[str, Mapping[str, Any]] = attrs.field(factory=dict, init=False)
    _users: ServerUsers = attrs.field(factory=ServerUsers, init=False)
    _turn: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    @property
    def starts(self) -> ServerStarts:
        return ServerStarts(len(self.connection.start_seconds), sum(self.connection.start_seconds))

    def pool(self, capabilities: Mapping[str, Any]) -> Pool[ServerConnection]:
        """Return the processes that are started ahead for agents with these capabilities."""
        declared = json.dumps(capabilities, sort_keys=True)
        if declared not in self._pools:
            start = partial(self.starter.started, self.server, self.connection, capabilities)
            to_come = min((pool.expected for pool in self._pools.values()), default=self.start_ahead)
            self._pools[declared] = pool = Pool(start, to_come)
            self.stack.push_async_callback(pool.close)
        return self._pools[declared]

    def _capabilities(self, use: ServerUse, agent: str) -> Mapping[str, Any]:
        """Return the capabilities that a server of the attempt's own is told of before its agent declares any."""
        if use.cassette is not None:
            return _declared_when(use.cassette.opened())
        return self._declared.get(agent, {}) if use.capabilities is None else use.capabilities

    @asynccontextmanager
    async def open(self, use: ServerUse) -> AsyncIterator[McpServer]:
        server, agent = _brought_up(use.server, self.server), "" if use.trial is None else use.trial.agent
        async with AsyncExitStack() as stack:
            # Such a trial has lost the server twice, perhaps to others' calls: a session of its own does not part it
            # from a call that kills the process behind all sessions.
            if use.in_turn:
                await stack.enter_async_context(self._turn)
            number = use.traffic_log.begin("opened") if use.traffic_log is not None else 0
            try:
                own = await self._own(server, self._capabilities(use, agent), stack)
                if own is None:
                    await self.starter.reach(self.connection)
                connection = own or self.connection
                listing = (await connection.upstream()).listing
                if connection.audience.passed_on:
                    listing = connection.compared(listing)
            except ServerLostError as lost:
                if use.traffic_log is not None:
                    use.traffic_log.end(number, error=recorded_error(lost, sent=False))
                raise
            # A session of one's own with a server that others use, too, is no server of one's own.
            users = ServerUsers() if own is not None and server.transport == "stdio" else self._users
            cassette, is_own = use.cassette, own is not None
            replayed = None if cassette is None else ReplayedLink(cassette, connection.audience, is_own)
            learn = partial(self._declared.__setitem__, agent)
            link = LiveLink(connection, server.meta, users.join(), is_own, replayed, learn)
            if use.traffic_log is not None:
                other = listing.tools != self.changes.original.tools
                known = {"declared": connection.audience.passed_on, "listing": listing.as_kept() if other else None}
                use.traffic_log.end(number, {"own": link.own, **{name: each for name, each in known.items() if each}})
            yield await self.reached(use, link, listing, stack)

    async def _own(
        self, server: ServerSpec, capabilities: Mapping[str, Any], stack: AsyncExitStack
    ) -> ServerConnection | None:
        """Connect to a server that no other trial uses, or to one that others use by a session of its own.

        Returns `None` if the trial shares the server: as all do, or as none comes up beside the one that they share;
        it may lock a file.
        """
        if self.shared and server.isolation != "trial":
            return None
        if not self.shared and _is_told(self.server):
            server = tell(server)
        started = self.starter.started(server, self.connection, capabilities)
        # Where `{workspace}` stands in the options, each trial needs another process than those that are started ahead.
        if self.start_ahead and _is_same_process(server, self.server):
            started = self.pool(capabilities).take()
        try:
            own = await stack.enter_async_context(started)
            await self.starter.reach(own)  # what was started ahead may have ended since
        except ServerLostError as error:
            if not self.shared:
                raise
            _log.warning("a trial shares the server again that it lost, as it gets none of its own: %s", error)
            return None
        return own


def _declared_when(opened: ServerTraffic | None) -> Mapping[str, Any]:
    """Return what a recorded server was told that its agent can do as it was opened."""
    declared: Mapping[str, Any] = {} if opened is None else (opened.result or {}).get("declared", {})
    return declared


def _brought_up(server: ServerSpec, connected: ServerSpec) -> ServerSpec:
    """Return a trial's server as it is connected to: by what was brought up for the first connection."""
    return attrs.evolve(server, command=connected.command, url=connected.url, login=connected.login)


def _is_told(server: ServerSpec) -> bool:
    """Return whether a server that serves one trial is told of it when it is connected to, beside each call."""
    return server.transport != "stdio" or server.isolation == "trial"


def _is_same_process(server: ServerSpec, other: ServerSpec) -> bool:
    """Return whether a process that was started for the one serves the other as well."""
    names = ("command", "args", "env", "cwd", "folder")
    return all(getattr(server, name) == getattr(other, name) for name in names)


@attrs.define(eq=False)
class PlayedServer(Tapped):
    """A server that is played, by the cassette of each attempt; nobody is connected to it."""

    cassette: ServerCassette

    @property
    def starts(self) -> ServerStarts:
        return ServerStarts()

    @asynccontextmanager
    async def open(self, use: ServerUse) -> AsyncIterator[McpServer]:
        cassette = use.cassette or self.cassette
        opened = cassette.opened()
        known = opened.result or {} if opened is not None else {}
        number = use.traffic_log.begin("opened") if use.traffic_log is not None else 0
        if use.traffic_log is not None:
            use.traffic_log.end(number, known, opened.error if opened is not None else None)
        if opened is not None and opened.error is not None:
            raise error_in(opened.error)
        own = bool(known.get("own", not self.shared))
        listing = Listing.told(known["listing"]) if "listing" in known else self.changes.original
        # A recording has what was listed, so no tools are read again.
        declared = _declared_when(opened)
        link = ReplayedLink(cassette, Audience(use.name, client_of(use.server), lambda: None, declared), own)
        async with AsyncExitStack() as stack:
            yield await self.reached(use, link, listing, stack)


def _offer(use: ServerUse, listing: Listing) -> tuple[Changes, ToolListing]:
    """Return what a server that lists this offers to the trials of a condition. Raises InterventionError."""
    server = use.server
    if not server.server_instructions:
        listing = attrs.evolve(listing, instructions=None)
    if _proxied(server).offer == "tools":
        listing = listing.with_tools_alone
    changes = Changes.of(use.interventions, {}, listing)
    offered, original = changes.listing, changes.original if changes.interventions else None
    return changes, ToolListing(
        server=server.name,
        tools=offered.names,
        digest=offered.digest,
        definitions=offered.tools,
        instructions=offered.instructions,
        original=original.tools if original else None,
        original_digest=original.digest if original else None,
        original_instructions=original.instructions if original else None,
        unmatched=changes.unmatched,
        sharing=sharing_of(server, offered.tools),
        protocol=listing.version,
    )
