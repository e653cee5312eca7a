"""A server's process: how it is started and ended, and what it writes to standard error."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import attrs
from mcp.client.stdio import get_default_environment

from keval.records.servers import ServerAddress

_READ = 2**16
_STDIN_SECONDS = _TERM_SECONDS = _KILL_SECONDS = 2.0
"""What a process may take to end: by itself when its input closes, when it is asked to, and when it is killed."""


@attrs.frozen(eq=False)
class ServerProcess:
    """A server's process, with a group of its own."""

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    _process: asyncio.subprocess.Process

    @classmethod
    async def spawn(cls, server: ServerAddress, stderr: TextIO) -> ServerProcess:
        """Start the server's command. Raises OSError when that is not possible."""
        process = await asyncio.create_subprocess_exec(
            server.command or "",
            *server.args,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            env={**get_default_environment(), **server.env},
            cwd=server.cwd,
            # `end` signals the whole group, and Ctrl-C at the terminal reaches keval alone.
            start_new_session=True,
        )
        assert process.stdin is not None  # noqa: S101 - a pipe was asked for
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        return cls(process.stdin, process.stdout, process)

    async def end(self) -> None:
        """Close the server's input; end it, and all in its process group, if it does not end then."""
        self.stdin.close()
        drain = asyncio.create_task(_discard(self.stdout))  # it may be busy writing
        try:
            if await self._ended(_STDIN_SECONDS):
                return
            for number, seconds in ((signal.SIGTERM, _TERM_SECONDS), (signal.SIGKILL, _KILL_SECONDS)):
                # macOS forbids to signal a group that has only processes nobody waited for.
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, number)
                if await self._ended(seconds):
                    return
        finally:
            drain.cancel()
            await asyncio.wait({drain})
            # asyncio has no public way to close the pipes while another process holds their other ends.
            self._process._transport.close()  # type: ignore[attr-defined]

    async def _ended(self, within: float) -> bool:
        deadline = asyncio.get_running_loop().time() + within
        # Not `process.wait()`, which also waits until no process holds the pipes.
        while self._process.returncode is None:
            if asyncio.get_running_loop().time() > deadline:
                return False
            await asyncio.sleep(0.01)
        return True


async def _discard(output: asyncio.StreamReader) -> None:
    while await output.read(_READ):
        pass


_LINES = 20
_BYTES = 8192
_PATIENCE = 1.0
"""Seconds for what was written last to arrive; all of it has, unless a process that the server left holds the pipe."""


@attrs.define
class ProcessLog:
    """The end of what one server process wrote to standard error, however much that is."""

    _kept: bytes = attrs.field(default=b"", init=False)

    @contextmanager
    def stderr(self) -> Iterator[TextIO]:
        """Yield the file for the process to write to: a pipe, as a captured `sys.stderr` has no file number."""
        reading, writing = os.pipe()
        # A thread, so that the server can write also while the event loop is busy.
        reader = threading.Thread(target=self._read, args=(reading,), name="keval-mcp-stderr", daemon=True)
        reader.start()
        try:
            with os.fdopen(writing, "w", encoding="utf-8") as file:
                yield file
        finally:
            reader.join(_PATIENCE)

    def tail(self) -> str:
        """Return the last lines written so far."""
        lines = self._kept.decode("utf-8", errors="replace").strip().splitlines()
        return "\n".join(lines[-_LINES:])

    def _read(self, descriptor: int) -> None:
        try:
            while said := os.read(descriptor, _READ):
                self._kept = (self._kept + said)[-_BYTES:]
        finally:
            os.close(descriptor)
