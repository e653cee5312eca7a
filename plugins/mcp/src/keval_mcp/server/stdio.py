"""Stdio: the messages on a server's standard input and output.

The SDK's own transport reads a line however long it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TextIO, cast

import anyio
import attrs
from mcp.shared.message import SessionMessage
from mcp.types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from keval.records.servers import McpServer
from keval.seams.contexts import ServerSpec
from keval_mcp.server.process import ProcessLog, ServerProcess, environment
from keval_mcp.server.streams import KEPT, MESSAGE_ID, TOO_LARGE, TooLargeError, too_deep

if TYPE_CHECKING:  # the SDK exports no name for its stream types, and a server is forked on request
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams

    from keval_mcp.server.forking import ForkTemplate


_READ = 2**16


@asynccontextmanager
async def stdio_streams(
    server: McpServer | ServerSpec, log: ProcessLog, stderr: TextIO, limit: int | None
) -> AsyncIterator[TransportStreams]:
    """Start the server and yield the messages from it and to it; afterwards it has ended.

    A message of more than `limit` bytes is not kept: who waits for it gets an error.

    Raises:
        OSError: the server cannot be started.
    """
    template = cast("ForkTemplate | None", server.template) if isinstance(server, ServerSpec) else None
    if template is not None:
        process = await template.fork(environment(server), server.cwd, stderr)
    else:
        process = await ServerProcess.spawn(server, stderr)
    log.pid = process.pid
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
            return too_deep(error, line) or ValueError(line[:KEPT].decode("utf-8", "replace"))
