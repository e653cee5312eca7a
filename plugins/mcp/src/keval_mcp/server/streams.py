"""The messages of a server as they arrive: what is no message, and what is larger or deeper than allowed.

On standard input and output keval reads them itself: the SDK's own transport reads a line however long it is.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

import anyio
import attrs
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import (
    INTERNAL_ERROR,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from keval.errors import FailureKind
from keval.records.servers import ServerAddress
from keval_mcp.server.bodies import TOO_LARGE, TooLargeError
from keval_mcp.server.process import ServerProcess

if TYPE_CHECKING:  # the SDK exports no name for its stream types
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared._stream_protocols import ReadStream, WriteStream

T = TypeVar("T")

LONGEST = 200
"""Characters that a message quotes of what a server wrote."""


@attrs.define(eq=False)
class Junk:
    """What came over a session and is no message: the first such text, quoted, and how many there were."""

    first: str | None = None
    count: int = 0


@attrs.frozen
class WatchedStream(ObjectReceiveStream[T]):
    """A session's incoming messages; sets `ended` when the server closes them, and notes in `junk` what is no message.

    The SDK tells only the callers that are waiting, so without this the death of an idle server goes unnoticed until
    a trial's next call fails. An error without an id refuses the request in `under_way`, if that is the only one.
    """

    _stream: ReadStream[T]
    _ended: asyncio.Event
    _junk: Junk
    _under_way: set[int | str]

    async def receive(self) -> T:
        try:
            message = await self._stream.receive()
            if (refusal := _refusal_of(message)) is not None:
                return self._answered(cast(T, refusal))
            if isinstance(message, ValueError):
                self._junk.first = self._junk.first or repr(str(_input(message) or message)[:LONGEST])
                self._junk.count += 1
            return self._answered(message)
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._ended.set()
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _answered(self, message: T) -> T:
        answer = message.message if isinstance(message, SessionMessage) else None
        if isinstance(answer, JSONRPCError) and answer.id is None and len(self._under_way) == 1:
            refusal = JSONRPCError(jsonrpc="2.0", id=self._under_way.pop(), error=answer.error)
            return cast(T, SessionMessage(refusal))
        if isinstance(answer, JSONRPCError | JSONRPCResponse) and answer.id is not None:
            self._under_way.discard(answer.id)
        return message


LISTEN = "subscriptions/listen"
"""The request whose answer is what a server without sessions says unasked, and lasts."""


@attrs.frozen
class SentStream(ObjectSendStream[SessionMessage]):
    """A session's outgoing messages; keeps in `under_way` the ids of the requests that await their answers."""

    _stream: WriteStream[SessionMessage]
    _under_way: set[int | str]

    async def send(self, item: SessionMessage) -> None:
        if isinstance(item.message, JSONRPCRequest) and item.message.method != LISTEN:
            self._under_way.add(item.message.id)
        elif isinstance(item.message, JSONRPCNotification) and item.message.method == "notifications/cancelled":
            self._under_way.discard((item.message.params or {}).get("requestId", ""))
        await self._stream.send(item)

    async def aclose(self) -> None:
        await self._stream.aclose()


def _input(error: ValueError) -> str | bytes | None:
    """Return what could not be read, which pydantic's error has."""
    errors: Any = getattr(error, "errors", None)
    found = errors()[0]["input"] if errors else None
    return json.dumps(found) if isinstance(found, dict) else found


# The SDK's dispatcher numbers keval's requests, so an id is never a text.
MESSAGE_ID = re.compile(rb'"id"\s*:\s*(\d+)\s*[,}]')
"""The id of what a message answers."""
KEPT = 2**12
"""Bytes at each end of a message that cannot be read; the id of what it answers is in one of them as a rule."""

TOO_DEEP: FailureKind = "result_too_deep"
"""The kind of failure; also the `data` of the error that stands for a message that was nested too deeply."""
_DEEPEST = 200
"""Levels of JSON that the SDK reads."""
_TOO_DEEP = "recursion limit exceeded"
"""What pydantic says of JSON with more of them."""
_PART = re.compile(rb'"(?:[^"\\]|\\.)*"|[][{}]')
"""A text of JSON, or where a list or a mapping begins or ends."""


UNREADABLE = "unreadable"
"""The `data` of the error that stands for an answer that is no message; its message says what came."""


def _in_place_of(error: ValueError, text: bytes) -> SessionMessage | None:
    """Return an error in place of an answer that cannot be read, for who waits for it; `None` if nobody is known."""
    if _TOO_DEEP in str(error):
        found = MESSAGE_ID.search(text[:KEPT]) or MESSAGE_ID.search(text[-KEPT:])
        return None if found is None else _deep(int(found[1]), _deep_tool(text))
    if b'"id"' not in text or (number := _answered(text)) is None:
        return None
    said = f"something that is no MCP message: {text.decode('utf-8', 'replace')[:LONGEST]!a}"
    told = ErrorData(code=PARSE_ERROR, message=said, data=UNREADABLE)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=told))


def _answered(text: bytes) -> int | None:
    """Return the id of the request that a text answers, as far as it can be read; `None` if it is no answer."""
    try:
        data = json.loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):  # cut short, or several at once
        found = MESSAGE_ID.search(text[:KEPT]) or MESSAGE_ID.search(text[-KEPT:])
        return int(found[1]) if found and b'"jsonrpc"' in text and b'"method"' not in text else None
    if "method" in data or not {"jsonrpc", "result", "error"} & data.keys():
        return None
    number = str(data.get("id"))
    return int(number) if number.isdecimal() else None


def _refusal_of(message: object) -> SessionMessage | None:
    """Return what stands for an answer that the SDK could not read; `None` for any other message."""
    if isinstance(message, ValueError):
        text = _input(message)
        return None if text is None else _in_place_of(message, text.encode() if isinstance(text, str) else text)
    answer = message.message if isinstance(message, SessionMessage) else None
    if not isinstance(answer, JSONRPCError) or not isinstance(answer.id, int):
        return None
    is_deep = answer.error.code == PARSE_ERROR and _TOO_DEEP in answer.error.message
    return _deep(answer.id, None) if is_deep else None


def _deep(id: int, tool: str | None) -> SessionMessage:
    where = f", in its tool {tool}" if tool else ""
    told = (
        f"JSON that is nested more than {_DEEPEST} levels deep{where}; have the server write flatter JSON"
        " (a schema can use $defs)"
    )
    return SessionMessage(
        JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=INTERNAL_ERROR, message=told, data=TOO_DEEP))
    )


def _deep_tool(text: bytes) -> str | None:
    """Return the name, quoted, of the first tool that is nested too deeply in an answer to `tools/list`.

    A tool is a mapping in a list in the result, on the fourth level of the message.
    """
    level = deepest = 0
    name, before = None, b""
    for part in _PART.findall(text):
        if part in (b"{", b"["):
            level += 1
            deepest = max(deepest, level)
            if level == 4:
                name, deepest = None, level
        elif part in (b"}", b"]"):
            if level == 4 and deepest > _DEEPEST and name is not None:
                return repr(name.strip(b'"').decode("utf-8", "replace")[:LONGEST])
            level -= 1
        elif level == 4 and before == b'"name"':
            name = part
        before = part
    return None


_READ = 2**16


@asynccontextmanager
async def stdio_streams(server: ServerAddress, stderr: TextIO, limit: int | None) -> AsyncIterator[TransportStreams]:
    """Start the server and yield the messages from it and to it; afterwards it has ended.

    A message of more than `limit` bytes is not kept: who waits for it gets an error.

    Raises:
        OSError: the server cannot be started.
    """
    process = await ServerProcess.spawn(server, stderr)
    # Without a buffer, a server that writes faster than it is read waits at its pipe, and keval's memory stays small.
    incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_read, process, incoming, limit)
            group.start_soon(_write, process, outgoing, incoming)
            try:
                yield received, sent
            finally:
                group.cancel_scope.cancel()
    finally:
        # A trial that is cancelled must not leave the process behind.
        with anyio.CancelScope(shield=True):
            await process.end()
        for stream in (incoming, received, sent, outgoing):
            stream.close()


async def _read(
    process: ServerProcess, incoming: MemoryObjectSendStream[SessionMessage | Exception], limit: int | None
) -> None:
    line, told = _Line(limit), False
    with incoming, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        while chunk := await process.stdout.read(_READ):
            *ended, rest = chunk.split(b"\n")
            for piece in ended:
                if told and line.empty and not piece.startswith(b"{"):  # quick, as there may be many
                    continue
                line.add(piece)
                message, line = line.message(), _Line(limit)
                if isinstance(message, TooLargeError):  # nobody knows what it answers
                    return
                if message is None or (told and isinstance(message, ValueError)):
                    continue
                await incoming.send(message)
                told = told or isinstance(message, ValueError)
            line.add(rest)


async def _write(
    process: ServerProcess,
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    try:
        async with outgoing:
            async for message in outgoing:
                data = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(data.encode() + b"\n")
                await process.stdin.drain()
    except OSError:
        # The server may still run: who waits for it learns that the connection has ended.
        incoming.close()


@attrs.define
class _Line:
    """A line of a server's output as it arrives; of one that is too long, both ends are kept."""

    limit: int | None
    _pieces: list[bytes] = attrs.field(factory=list, init=False)
    _length: int = attrs.field(default=0, init=False)
    _start: bytes = attrs.field(default=b"", init=False)
    _end: bytes = attrs.field(default=b"", init=False)

    @property
    def empty(self) -> bool:
        return not self._length

    @property
    def _too_long(self) -> bool:
        return self.limit is not None and self._length > self.limit

    def add(self, piece: bytes) -> None:
        self._length += len(piece)
        if not self._too_long:
            self._pieces.append(piece)
            return
        if self._pieces:
            whole = b"".join(self._pieces)
            self._start, self._end, self._pieces = whole[:KEPT], whole[-KEPT:], []
        self._end = (self._end + piece)[-KEPT:]

    def message(self) -> SessionMessage | TooLargeError | ValueError | None:
        """Return the message; a ValueError with its text for a line that is none, and `None` for an empty one."""
        if self._too_long:
            error = TooLargeError(self.limit or 0)
            found = MESSAGE_ID.search(self._start) or MESSAGE_ID.search(self._end)
            if found is None:
                return error
            data = ErrorData(code=INTERNAL_ERROR, message=str(error), data=TOO_LARGE)
            return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=data))
        line = b"".join(self._pieces).strip()
        if not line:
            return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError as error:
            return _in_place_of(error, line) or ValueError(line[:KEPT].decode("utf-8", "replace"))
