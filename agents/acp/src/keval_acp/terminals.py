"""The terminals of a trial: commands that an agent has keval run in the trial's folder."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import attrs
from acp.exceptions import RequestError

from keval.plugin import TranscriptBuilder, TrialError
from keval_programs import Confinement, Process, running

_MOST_BYTES = 1_000_000
"""What is kept of a command's output, if the agent sets no lower limit."""
_MOST_KEPT = 64 * 2**20
"""What is kept of the outputs of all terminals that were released; what later ones wrote is forgotten."""
_MOST_AT_ONCE, _MOST = 32, 1000
"""Terminals that an agent may have, of which each is a process of keval's and has a sandbox of its own."""

_PIECE = 65_536


@attrs.define(eq=False)
class Terminal:
    """A command that was started, and the end of what it wrote: of at most `limit` bytes."""

    process: Process
    limit: int
    stack: AsyncExitStack
    truncated: bool = False
    _written: bytearray = attrs.field(factory=bytearray, init=False)
    _reading: asyncio.Task[None] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._reading = asyncio.create_task(self._read())

    @property
    def output(self) -> str:
        """What it wrote; a character that the limit cuts is left out."""
        written = bytes(self._written)
        while self.truncated and written and written[0] & 0xC0 == 0x80:
            written = written[1:]
        return codecs.getincrementaldecoder("utf-8")("replace").decode(written)

    async def wait(self) -> int:
        """Wait until it has ended and all is read; returns its exit code."""
        code = await self.process.wait()
        await asyncio.wait({self._reading}, timeout=1.0)  # a process that it left behind may write on
        return code

    async def close(self) -> None:
        """End it, and all that it started. That it used more than its sandbox allows, its process says."""
        with suppress(TrialError):
            await self.stack.aclose()
        self._reading.cancel()
        await asyncio.wait({self._reading})

    async def _read(self) -> None:
        while piece := await self.process.stdout.read(_PIECE):
            self._written += piece
            if len(self._written) > self.limit:
                self.truncated = True
                del self._written[: len(self._written) - self.limit]


@attrs.define
class Terminals:
    """The terminals of one trial by id, which run where its agent does. All are closed at its end."""

    env: Mapping[str, str]
    confinement: Confinement | None = None
    _terminals: dict[str, Terminal] = attrs.field(factory=dict, init=False)
    _outputs: dict[str, str] = attrs.field(factory=dict, init=False)
    _limits: list[TrialError | None] = attrs.field(factory=list, init=False)

    async def create(
        self, command: str, args: Sequence[str] | None, env: Mapping[str, str], cwd: Path, limit: int | None
    ) -> str:
        """Start a command, and return the terminal's id; without arguments it is a line for the shell.

        Raises:
            TrialError: it cannot be started, or there are too many.
        """
        if len(self._terminals) >= _MOST_AT_ONCE or len(self._terminals) + len(self._outputs) >= _MOST:
            told = f"an agent may have {_MOST_AT_ONCE} terminals at once, and {_MOST:,} in a trial; release some"
            raise TrialError(told, kind="terminals")
        # One pipe has both outputs, in the order in which they were written.
        script = ('exec "$@" 2>&1', "sh", command, *args) if args else (f"exec 2>&1\n{command}",)
        name = f"terminal-{len(self._terminals) + len(self._outputs) + 1}"
        process = Process(
            name=command,
            command=("/bin/sh", "-c", *script),
            env=self.env,
            cwd=cwd,
            confinement=self.confinement,
            inside=env,
        )
        stack = AsyncExitStack()
        await stack.enter_async_context(running(process, TranscriptBuilder()))
        process.stdin.close()
        self._terminals[name] = Terminal(process, _MOST_BYTES if limit is None else min(limit, _MOST_BYTES), stack)
        return name

    def get(self, id: str) -> Terminal:
        """Return a terminal. Raises RequestError: there is none, or it was released."""
        if id not in self._terminals:
            raise RequestError.invalid_params({"terminalId": id, "details": "there is no such terminal"})
        return self._terminals[id]

    async def release(self, id: str) -> None:
        """Close a terminal; its output is kept for the transcript. Raises RequestError: there is none."""
        terminal = self.get(id)
        await terminal.close()
        kept = sum(map(len, self._outputs.values()))
        self._outputs[id] = terminal.output[-_MOST_KEPT + kept :] if kept < _MOST_KEPT else ""
        self._limits.append(terminal.process.limit)
        del self._terminals[id]

    def output(self, id: str) -> str:
        """Return what a terminal wrote, also one that was released; empty if there was none."""
        return self._terminals[id].output if id in self._terminals else self._outputs.get(id, "")

    async def close(self) -> None:
        """Close all. Raises TrialError: one used more than its sandbox allows."""
        await asyncio.gather(*(terminal.close() for terminal in self._terminals.values()))
        for limit in (*self._limits, *(terminal.process.limit for terminal in self._terminals.values())):
            if limit is not None:
                raise limit
