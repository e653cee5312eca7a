"""The plain tool loop: ask the model, run the tools it asks for, tell it what came of them, until it answers.

It knows no model API. An adapter brings a `Chat`, which does, or opens the sessions of its trial itself. Servers behind
the tap are reached in memory, all others by a session of the trial's own. Only for these is the MCP SDK imported here.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import attrs
from attrs.validators import instance_of

from keval import Message, Usage
from keval.errors import ServerLostError, ToolsMissingError, TrialError
from keval.records.servers import McpServer, ServerChannel
from keval.seams.contexts import Context
from keval_mcp.tool_results import Media, ToolResult

if TYPE_CHECKING:
    from keval_mcp.server.upstream import DirectChannel


@attrs.frozen
class Tool:
    """A tool as its server lists it; `input_schema` is a JSON Schema of type object.

    `alias` is the name to offer it to a model under: of letters, digits, `_` and `-`, at most 64 of them, and no other
    tool's. Every model API takes such a name; an MCP server may give any. `read_only` is its `readOnlyHint`.
    """

    server: str
    name: str
    alias: str
    description: str
    input_schema: Mapping[str, Any]
    read_only: bool = False


@attrs.frozen
class Call:
    """A tool call as the model wrote it; `problem` says why it cannot be made, if so.

    `name` is the tool's alias, and `id` what the model's API calls it. Raises TypeError: either is no text.
    """

    id: str = attrs.field(validator=instance_of(str))
    name: str = attrs.field(validator=instance_of(str))
    arguments: Mapping[str, Any]
    problem: str = ""


@attrs.frozen
class Reply:
    """What one request to the model brought; `paused` asks for another one, though there is no call to answer.

    `parts` are what the model wrote, in order: pieces of its text and reasoning and, between them, calls of tools that
    its vendor runs itself, with their results. `calls` are those that wait for an answer.

    A reply with a `fault` has cost tokens and perhaps said something, which is recorded; then it fails the trial. The
    text of one that is `truncated` was ended by a limit of length.

    Raises TypeError: a text of a part is none.
    """

    parts: Sequence[Message | Call | Result] = attrs.field(default=())
    calls: tuple[Call, ...] = ()
    usage: Usage | None = None
    paused: bool = False
    fault: TrialError | None = None
    truncated: bool = False

    @parts.validator
    def _check_parts(self, attribute: object, parts: Sequence[Message | Call | Result]) -> None:
        "".join(part.text + part.reasoning for part in parts if isinstance(part, Message))

    @property
    def text(self) -> str:
        """All text of the reply, without its reasoning."""
        return text_of(self.parts)


def text_of(parts: Iterable[Message | Call | Result]) -> str:
    """Return the text that the parts of a reply hold."""
    return "".join(part.text for part in parts if isinstance(part, Message))


@attrs.frozen
class Result:
    """What the model is told of one of its calls: texts, and media that its chat takes."""

    id: str
    parts: tuple[str | Media, ...]
    is_error: bool

    @property
    def text(self) -> str:
        """Its texts, a line each."""
        return "\n".join(part for part in self.parts if isinstance(part, str))


class Chat(Protocol):
    """A conversation with a model over one API. It keeps what was said, and sends what the API wants of it."""

    def say(self, text: str) -> None:
        """Add a message of the user."""
        ...

    def offer(self, tools: Sequence[Tool]) -> None:
        """Offer the model these tools from now on, in place of those that it was offered."""
        ...

    async def ask(self) -> Reply:
        """Ask the model to go on, and add its reply.

        Raises:
            TrialError: the model failed, or its reply is not understood.
        """
        ...

    def takes(self, media: Media, *, error: bool) -> bool:
        """Return whether a result, or an error, can be told with this; otherwise a text stands in for it."""
        ...

    def tell(self, results: Sequence[Result]) -> None:
        """Add the results of all calls of the last reply, in the order of the calls."""
        ...


StartChat: TypeAlias = Callable[[Sequence[Tool]], Chat]
"""Begins a conversation, with the instructions, what was said earlier and these tools."""


@asynccontextmanager
async def open_conversation(context: Context, start: StartChat, *, max_turns: int) -> AsyncIterator[ToolLoop]:
    """Open sessions with the servers and begin a conversation; it reports to the context's builder.

    Raises:
        ServerLostError: an MCP server did not come up.
        ToolsMissingError: the servers do not offer exactly the condition's tools.
    """
    async with open_sessions(context.servers) as sessions:
        yield ToolLoop(context, sessions, start(sessions.tools), max_turns)


@attrs.frozen
class ToolLoop:
    """A conversation with a model that runs the tools it asks for; `max_turns` bounds the model calls per message."""

    context: Context
    sessions: Sessions
    chat: Chat
    max_turns: int

    async def ask(self, text: str) -> None:
        """Send one message of the user and wait for the answer.

        Raises:
            ServerLostError: an MCP server was lost.
            TrialError: what the chat raises, or says is the fault of a reply; kind `max_turns` when as many model
                calls brought no answer.
        """
        with self.context.builder.turn(text):
            await self._answer(text)

    async def _answer(self, text: str) -> None:
        self.chat.say(text)
        for _ in range(self.max_turns):
            reply = await self._ask()
            if reply.calls:
                self.chat.tell(await self._run_all(reply.calls))
            elif not reply.paused:
                return
        raise TrialError(
            f"{self.max_turns} model calls brought no answer; raise max_turns if that is too few", kind="max_turns"
        )

    async def _ask(self) -> Reply:
        builder = self.context.builder
        if await self.sessions.refresh():
            self.chat.offer(self.sessions.tools)
        builder.offered(tool.name for tool in self.sessions.tools)
        reply = await self.chat.ask()
        builder.model_called(reply.usage)
        for part in _joined(reply.parts):
            match part:
                case Message():
                    thought, sources = part.reasoning, part.citations
                    builder.said(part.text, truncated=reply.truncated, reasoning=thought, citations=sources)
                case Call():
                    builder.called(part.name, part.arguments, part.id, own=True, ago=None)
                case Result(is_error=True):
                    builder.returned(error=part.text, id=part.id)
                case Result():
                    builder.returned(part.text, id=part.id)
        if reply.fault is not None:
            raise reply.fault
        return reply

    async def _run_all(self, calls: Sequence[Call]) -> list[Result]:
        """Run the calls of one reply at the same time; when one loses its server, the others are given up."""
        tools = {tool.alias: tool for tool in self.sessions.tools}
        labels = _labels(calls)
        for call, label in zip(calls, labels, strict=True):
            name = tools[call.name].name if call.name in tools else call.name
            self.context.builder.called(name, call.arguments, label)
        running = [
            asyncio.create_task(self._run(call, label, tools.get(call.name)))
            for call, label in zip(calls, labels, strict=True)
        ]
        # No TaskGroup: until Python 3.12 it leaves the trial's task marked as cancelled when a child fails.
        try:
            return await asyncio.gather(*running)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, call: Call, label: str, tool: Tool | None) -> Result:
        builder = self.context.builder
        problem = call.problem or ("" if tool else f"there is no tool named {call.name!r}")
        if problem or tool is None:
            builder.returned(error=problem, id=label, sent=False)
            return Result(call.id, (problem,), is_error=True)
        try:
            result = await self.sessions.call(tool, call.arguments)
        except ServerLostError as lost:
            builder.returned(error=str(lost), id=label)
            raise
        error = result.is_error
        shown, dropped = result.shown(lambda media: self.chat.takes(media, error=error))
        answer, refusal = (None, result.text) if error else (result.text, None)
        builder.returned(answer, error=refusal, id=label, content=result.content, dropped=dropped)
        for blob in result.blobs:
            builder.attach(blob.content, blob.media_type)
        return Result(call.id, shown, error)


def _joined(parts: Iterable[Message | Call | Result]) -> Iterator[Message | Call | Result]:
    """Yield the parts of a reply with the pieces that follow each other as one message, which may be empty."""
    said = nothing = Message("assistant", "")
    for part in parts:
        if isinstance(part, Message):
            thought = "\n\n".join(filter(None, (said.reasoning, part.reasoning)))
            sources = tuple(dict.fromkeys((*said.citations, *part.citations)))
            said = Message("assistant", said.text + part.text, reasoning=thought, citations=sources)
        else:
            yield from (said, part)
            said = nothing
    yield said


def _labels(calls: Sequence[Call]) -> list[str]:
    """Return an id per call of a reply to record it under: some models give several the same, or none."""
    labels: list[str] = []
    for number, call in enumerate(calls):
        labels.append(f"{call.id}#{number}" if call.id in labels or not call.id else call.id)
    return labels


_LONGEST_ALIAS = 64

# What the SDK has to say of a server is in the errors raised here; Python would print it where nobody configured logs.
logging.getLogger("mcp").addHandler(logging.NullHandler())


@attrs.define(eq=False)
class Sessions:
    """The ways to all servers of a trial; `tools` are theirs, in the servers' own order, when they were read last."""

    _channels: Mapping[str, ServerChannel | DirectChannel] = attrs.field(factory=dict)
    _listed: Mapping[str, Sequence[Mapping[str, Any]]] = attrs.field(factory=dict)
    tools: tuple[Tool, ...] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.tools = tuple(_tools(self._listed))

    async def refresh(self) -> bool:
        """Read the tools again, which takes no request to a server, and return whether they have changed."""
        listed = {name: await channel.list_tools() for name, channel in self._channels.items()}
        # A channel returns the same tuple until its list changes, so no definitions are compared before each model
        # call.
        if all(tools is self._listed[name] for name, tools in listed.items()):
            return False
        self._listed, self.tools = listed, tuple(_tools(listed))
        return True

    async def call(self, tool: Tool, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool, once; any number of calls may be under way.

        Raises:
            ServerLostError: its server died or hangs, or an HTTP error came in place of an answer.
        """
        return ToolResult(await self._channels[tool.server].call_tool(tool.name, arguments))


@asynccontextmanager
async def open_sessions(servers: Sequence[McpServer]) -> AsyncIterator[Sessions]:
    """Reach every server and list its tools; all sessions are closed however the body ends.

    Raises:
        ServerLostError: a server does not come up.
        ToolsMissingError: a server does not offer exactly what it listed before the run.
    """
    async with AsyncExitStack() as stack:
        channels: dict[str, ServerChannel | DirectChannel] = {}
        listed: dict[str, tuple[Mapping[str, Any], ...]] = {}
        for server in servers:
            channel = server.channel or await _open(server, stack)
            channels[server.name], listed[server.name] = channel, await channel.list_tools()
            found, expected = {tool["name"] for tool in listed[server.name]}, set(server.tools)
            if found != expected:
                raise ToolsMissingError(expected - found, found - expected)
        yield Sessions(channels, listed)


async def _open(server: McpServer, stack: AsyncExitStack) -> DirectChannel:
    from keval_mcp.server.upstream import direct_channel  # the MCP SDK takes 0.4 s to import

    return await stack.enter_async_context(direct_channel(server))


def _tools(listed: Mapping[str, Iterable[Mapping[str, Any]]]) -> Iterable[Tool]:
    taken: set[str] = set()
    for server, definitions in listed.items():
        for definition in definitions:
            name = definition["name"]
            alias = _alias(name, taken)
            taken.add(alias)
            about, hints = definition.get("description") or "", definition.get("annotations") or {}
            read_only = hints.get("readOnlyHint") is True
            yield Tool(server, name, alias, about, definition["inputSchema"], read_only)


def _alias(name: str, taken: set[str]) -> str:
    fitting = re.sub(r"[^a-zA-Z0-9_-]", "_", name)
    alias, number = fitting[:_LONGEST_ALIAS], 1
    while alias in taken:
        number += 1
        alias = f"{fitting[: _LONGEST_ALIAS - len(str(number)) - 1]}_{number}"
    return alias
