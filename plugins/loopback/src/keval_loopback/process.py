"""Running a server in a process of its own, for as long as a model provider needs it."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
import warnings
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import IO, cast

import attrs
import orjson

from keval.errors import PluginWarning, PreflightError
from keval.processes import supervised
from keval_loopback.loopback import listen

_MOST_RESTARTS = 5
_MOST_TOLD = 2_000
"""Bytes of what the processes wrote to stderr that are shown, from its end."""
_INHERITS = os.name == "posix"
"""Whether a process can be given a socket that listens already; otherwise it is given the port."""


@attrs.frozen
class ServerProgram:
    """A module of Python that serves on loopback: `python -m MODULE OPTIONS --listen-fd=N --child`, or `--port=N`.

    It serves with `keval_loopback.serving`. `environ` is what it finds in its environment besides that of
    this process. Messages call it `name`, and say how to try it `by_hand`; `lost` is what is no more when it has ended
    for good.
    """

    module: str
    options: Sequence[str]
    environ: Mapping[str, str] = attrs.field(repr=False)
    name: str
    by_hand: str
    lost: str


@asynccontextmanager
async def run_server(program: ServerProgram, *, startup: float, shutdown: float) -> AsyncIterator[str]:
    """Start a server on a free port, yield `http://127.0.0.1:PORT`, and end it.

    `startup` and `shutdown` are how long the process may take for each, in seconds. It ends with this process, too. If
    it ends before, it is started again, up to five times. The requests that it had are lost. Those that come before it
    serves again wait, because the socket belongs to this process.

    Raises:
        PreflightError: it does not come up; the message has what it wrote to stderr.
    """
    with tempfile.TemporaryFile() as errors, listen(0) as listener:
        port: int = listener.getsockname()[1]
        # The process takes the port again; until then, another program can take it.
        if not _INHERITS:
            listener.close()
        server = _Server(program, errors, listener, port, startup)
        try:
            await server.start()
            keeping = asyncio.create_task(server.keep())
            try:
                yield f"http://127.0.0.1:{port}"
            finally:
                keeping.cancel()
                await asyncio.wait([keeping])
        finally:
            await server.end(shutdown)


@attrs.define(eq=False)
class _Server:
    """The process of a server, and those that take its place when it has ended."""

    program: ServerProgram
    errors: IO[bytes]
    listener: socket.socket
    port: int
    startup: float
    _child: Process | None = None

    async def start(self) -> None:
        """Start the process and wait until it serves. Raises PreflightError."""
        inherited = (self.listener.fileno(),) if _INHERITS else ()
        where = f"--listen-fd={inherited[0]}" if inherited else f"--port={self.port}"
        self._child = await asyncio.create_subprocess_exec(
            # -P, as no module in the working directory may stand in for ours
            *supervised((sys.executable, "-P", "-m", self.program.module, *self.program.options, where, "--child")),
            # Nothing is written to it. When it closes, the process knows that keval has ended, even by SIGKILL.
            stdin=PIPE,
            stdout=PIPE,
            stderr=self.errors,
            env={**os.environ, **self.program.environ},
            pass_fds=inherited,
            # Ctrl-C is for keval, which finishes what is under way; the server must live until then.
            start_new_session=True,
        )
        output = cast(asyncio.StreamReader, self._child.stdout)  # it is a pipe
        try:
            async with asyncio.timeout(self.startup):
                # The line says that the process serves; the port itself is known.
                orjson.loads(await output.readline())["port"]
        except (TimeoutError, ValueError, KeyError, TypeError) as error:
            how = f"within {self.startup:g} s" if isinstance(error, TimeoutError) else "as it should"
            raise PreflightError(
                f"{self.program.name} did not come up {how}; try `{self.program.by_hand}` by hand. It said:\n"
                f"{self._said()}"
            ) from error

    async def keep(self) -> None:
        """Start the process again whenever it ends, at most five times; warn of the first time, and of the last."""
        for restarts in range(_MOST_RESTARTS):
            code = await self._ended()
            if restarts == 0:
                _warn(
                    f"{self.program.name} ended (exit code {code}) and is started again, up to {_MOST_RESTARTS} times;"
                    " trials whose requests it had are attempted again"
                )
            try:
                await self.start()
            except PreflightError:  # counted like one that came up and ended
                await self.end(0)
        code = await self._ended()
        self.listener.close()  # so that requests fail, and do not wait for nobody
        _warn(
            f"{self.program.name} ended (exit code {code}) after {_MOST_RESTARTS} restarts, and is not started again;"
            f" {self.program.lost}. It said:\n{self._said()}"
        )

    async def end(self, shutdown: float) -> None:
        """Close the process's stdin, on which it exits; kill it if it does not within `shutdown` seconds."""
        if (child := self._child) is None:
            return
        cast(asyncio.StreamWriter, child.stdin).close()  # it is a pipe
        for further in (child.terminate, child.kill):
            try:
                async with asyncio.timeout(shutdown):
                    await child.wait()
                return
            except TimeoutError:
                further()
        await child.wait()

    async def _ended(self) -> int:
        return await cast(Process, self._child).wait()

    def _said(self) -> str:
        size = self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(0, size - _MOST_TOLD))
        return self.errors.read().decode(errors="replace").strip() or "it wrote nothing to stderr"


def _warn(message: str) -> None:
    warnings.warn(message, PluginWarning, stacklevel=2)
