"""The plain tool loop: ask the model, run the tools it asks for, tell it what came of them, until it answers.

It knows no model API. An adapter brings a `Chat`, which does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeAlias

import attrs
from attrs.validators import instance_of

from keval import Usage
from keval.errors import ServerLostError, TrialError
from keval.seams.contexts import Context
from keval_mcp.sessions import Sessions, Tool, open_sessions
from keval_mcp.tool_results import Media


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

    A reply with a `fault` has cost tokens and perhaps said something, which is recorded; then it fails the trial. The
    text of one that is `truncated` was ended by a limit of length.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    usage: Usage | None = None
    paused: bool = False
    fault: TrialError | None = None
    truncated: bool = False


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
async def open_conversation(context: Context, start: StartChat, *, max_turns: int) -> AsyncIterator[Conversation]:
    """Open sessions with the servers and begin a conversation; it reports to the context's builder.

    Raises:
        ServerLostError: an MCP server did not come up.
        ToolsMissingError: the servers do not offer exactly the condition's tools.
    """
    async with open_sessions(context.servers) as sessions:
        yield Conversation(context, sessions, start(sessions.tools), max_turns)


@attrs.frozen
class Conversation:
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
        builder.said(reply.text, truncated=reply.truncated)
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


def _labels(calls: Sequence[Call]) -> list[str]:
    """Return an id per call of a reply to record it under: some models give several the same, or none."""
    labels: list[str] = []
    for number, call in enumerate(calls):
        labels.append(f"{call.id}#{number}" if call.id in labels or not call.id else call.id)
    return labels
