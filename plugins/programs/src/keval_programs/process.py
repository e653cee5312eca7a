"""The process of a trial's program, which ends whole."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import cast

import attrs

from keval.errors import TrialError
from keval.execute.shielding import to_the_end
from keval.processes import supervised
from keval.seams.transcript_builder import TranscriptBuilder
from keval_programs.confining import Confinement, Watch

_MOST_BYTES = 2**27
"""Bytes of all lines that a program writes, which a trial is made of; one may be a message with a whole result."""

_KEPT_BYTES = 2**16
"""Bytes of the end of a standard error that are kept."""
_TOLD_CHARACTERS = 2000
_PIECE = 2**16

_PATIENCE = 1.0
"""Seconds in which what an ended program wrote is read; what it left behind may hold the pipe, and write on."""

_GRACE = 6.0
"""Seconds; the supervisor gives up after five, and kills what ignores to be terminated after one."""


@attrs.define(eq=False)
class StandardError:
    """The end of what a program wrote on its standard error, and how many bytes that were in all."""

    size: int = 0
    _end: bytearray = attrs.field(factory=bytearray, init=False)

    def add(self, piece: bytes) -> None:
        """Note what was read."""
        self.size += len(piece)
        self._end += piece
        del self._end[:-_KEPT_BYTES]

    def told(self) -> str:
        """Return the end in words."""
        text = self._end.decode("utf-8", "replace")
        end = text[-_TOLD_CHARACTERS:].strip()
        return end if self.size <= _KEPT_BYTES else f"[the end of {self.size:,} bytes]\n{end}"


class _Streams(SubprocessStreamProtocol):
    """Says that the program has ended as it does; asyncio waits until nobody holds its pipes any more."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit, loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


@attrs.define(eq=False)
class Process:
    """A program and every process that it starts, in a process group of their own; it can be started once.

    `name` is what messages call it. With a `confinement` it runs in a sandbox. `inside` are variables that another
    program chose, and that nothing outside of that sandbox may see.
    """

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    confinement: Confinement | None = None
    inside: Mapping[str, str] = attrs.field(factory=dict)
    stderr: StandardError = attrs.field(factory=StandardError, init=False)
    limit: TrialError | None = attrs.field(default=None, init=False)
    """Why it was ended: it used more than its sandbox allows, or told more than a trial can hold."""
    _read: int = attrs.field(default=0, init=False)
    _process: asyncio.subprocess.Process = attrs.field(init=False)  # from here on: from its start on
    _transport: asyncio.SubprocessTransport = attrs.field(init=False)
    _exited: asyncio.Event = attrs.field(init=False)
    _reading: asyncio.Task[None] = attrs.field(init=False)

    async def start(self, command: Sequence[str]) -> None:
        """Start it by this command. Raises TrialError of kind `process`."""
        try:
            loop = asyncio.get_running_loop()
            transport, protocol = await loop.subprocess_exec(
                lambda: _Streams(_MOST_BYTES, loop),
                *supervised(command),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                # Who is shut in may have put a link in the place of its folder; the sandbox leads there from inside.
                cwd=self.cwd if self.confinement is None else self.cwd.anchor,
                env=self.outer_env,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # of a NUL in an argument, for example
            raise TrialError(f"{self.command[0]} cannot be started: {error}", kind="process") from error
        self._transport, self._exited = transport, protocol.exited
        self._process = asyncio.subprocess.Process(transport, protocol, loop)
        self._reading = asyncio.create_task(self._read_stderr(cast(asyncio.StreamReader, self._process.stderr)))

    @property
    def outer_env(self) -> Mapping[str, str]:
        """The environment that it is started in, which is that of its sandbox."""
        if self.confinement is None:
            return {**self.env, **self.inside}
        return self.confinement.outside(self.env, self.inside)

    @property
    def stdin(self) -> asyncio.StreamWriter:
        """What it reads."""
        return cast(asyncio.StreamWriter, self._process.stdin)  # it is a pipe

    @property
    def stdout(self) -> asyncio.StreamReader:
        """What it writes."""
        return cast(asyncio.StreamReader, self._process.stdout)  # it is a pipe

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.returncode is None

    async def readline(self) -> bytes:
        """Return the next line that it writes, or nothing after the last; one that writes too much is ended."""
        with suppress(ValueError):  # a line without an end
            line = await self.stdout.readline()
            self._read += len(line)
            if self._read <= _MOST_BYTES:
                return line
        told = f"{self.name} was ended, as it wrote more than {_MOST_BYTES:,} bytes; let it tell less"
        self.limit = TrialError(told, kind="output_too_large")
        self.kill()
        return b""

    async def write(self, text: str) -> None:
        """Send a text. Raises TrialError of kind `process` when nobody is there to read it."""
        try:
            self.stdin.write(text.encode("utf-8", "replace"))
            await self.stdin.drain()
        except ConnectionError as error:
            # Why it ended may arrive on its standard error after the pipe broke.
            await self._is_read()
            raise self.death() from error

    async def wait(self) -> int:
        """Wait until it is gone, and return its exit code."""
        await self._exited.wait()
        await self._is_read()
        self._reading.cancel()
        return self._process.returncode or 0

    async def ended(self, seconds: float) -> bool:
        """Let it end by itself for so long; returns whether it has."""
        await asyncio.wait({asyncio.ensure_future(self.wait())}, timeout=seconds)
        return not self.is_running

    def terminate(self) -> None:
        """Ask it and all it started to end at once."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it and all it started."""
        self._signal(signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)

    def told(self) -> str:
        """Return the end of its standard error."""
        return self.stderr.told()

    def death(self, output: str = "") -> TrialError:
        """Return the error for a program that ended too early, with the end of its standard error, or else `output`."""
        code = self._process.returncode
        how = "stopped reading" if code is None else f"ended with exit code {code}"
        said = self.told()
        which = "stderr" if said else "output"
        said = said or output[-_TOLD_CHARACTERS:].strip()
        words = f"; its {which} ends:\n{said}" if said else ""
        return TrialError(f"{self.name} {how}{words}", kind="process", retryable=True)

    async def watch(self, watch: Watch) -> None:
        """End it when it uses more than it may."""
        self.limit = await watch.exceeded(self.name, self._process.pid, lambda: self.stderr.size)
        self.kill()

    async def _read_stderr(self, reader: asyncio.StreamReader) -> None:
        while piece := await reader.read(_PIECE):
            self.stderr.add(piece)

    async def _is_read(self) -> None:
        """Wait until its standard error is read, as far as that takes no time."""
        await asyncio.wait({self._reading}, timeout=_PATIENCE)

    def close(self) -> None:
        """Close its pipes, which a process that it left behind may hold, once it has ended."""
        self._transport.close()

    def _signal(self, number: int) -> None:
        # It may be gone, or be going: macOS forbids to signal a group that has only processes nobody waited for.
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.send_signal(number)
            else:
                os.killpg(self._process.pid, number)


@asynccontextmanager
async def running(process: Process, builder: TranscriptBuilder) -> AsyncIterator[Process]:
    """Start a process; all of it is ended with the block, and `builder` is told what it wrote if that is cut short.

    Raises:
        TrialError: it cannot be started, or used more than its sandbox allows.
    """
    watch = None if process.confinement is None else await process.confinement.watch()
    async with _command(process) as command, AsyncExitStack() as stack:
        try:
            await process.start(command)
            # Also when the trial is cancelled meanwhile: a server of its own must not outlive it.
            stack.push_async_callback(to_the_end, _end(process))
            if watch is not None:
                stack.callback(asyncio.create_task(process.watch(watch)).cancel)
            yield process
        except Exception as error:
            builder.wrote(process.told())
            if process.limit is None and watch is not None:
                process.limit = await watch.failed_by(process.name)
            if process.limit is not None:
                raise process.limit from error
            raise
        except BaseException:
            # Cancelled, as by a time limit: what the program wrote explains that, and its disk is not looked through.
            builder.wrote(process.told())
            raise
        # The watch ended it, which to the adapter may look like a program that was done.
        if process.limit is not None:
            raise process.limit


def _command(process: Process) -> AbstractAsyncContextManager[Sequence[str]]:
    if process.confinement is None:
        return nullcontext(process.command)
    return process.confinement.command(process.command, process.outer_env, process.cwd)


async def _end(process: Process) -> None:
    if process.is_running:
        process.terminate()
        if not await process.ended(_GRACE):
            process.kill()
    await process.wait()
    process.close()
