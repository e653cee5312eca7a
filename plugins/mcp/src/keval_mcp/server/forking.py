"""Forking: the processes of a Python server are forked from one that has imported its packages (`start_method: fork`).

Starting such a server is importing its packages, for most of a second of CPU. A template process does that once, and
each process of the server is a copy of it from then on; `fork_template` is its program.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import shlex
import shutil
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import TextIO

import attrs

from keval.errors import PreflightError
from keval.execute.shielding import to_the_end
from keval.processes import supervised
from keval.seams.contexts import ServerSpec
from keval_mcp.server.process import ProcessLog, ServerProcess, environment

_TEMPLATE = Path(__file__).with_name("fork_template.py")
_WITH_VALUE = ("-X", "-W", "--check-hash-based-pycs")
"""Flags of Python whose value may be an argument of its own."""
_FULL = 0.01
"""Seconds until the template may have read what was sent to it."""


@attrs.frozen
class PythonCommand:
    """A command that runs a Python program: the interpreter with its flags, and what follows them."""

    interpreter: tuple[str, ...]
    program: tuple[str, ...]

    @classmethod
    def of(cls, command: str, args: Sequence[str], path: str) -> PythonCommand | None:
        """Read a command: of the interpreter, or of a script that names it; `None` if it is neither.

        The `path` is where the interpreter of a script is searched.
        """
        if _is_python(command):
            return cls._split(command, args)
        interpreter = _interpreter(command, path)
        return cls(interpreter, (command, *args)) if interpreter else None

    @classmethod
    def _split(cls, python: str, args: Sequence[str]) -> PythonCommand | None:
        flags, rest = [python], [*args]
        while rest and rest[0].startswith("-"):
            flag = rest.pop(0)
            if found := re.fullmatch("-([bBdEIOPqsSuv]*)([mc])(.*)", flag, re.DOTALL):
                letters, what, value = found.groups()
                flags += [f"-{letters}"] if letters else []
                program = (f"-{what}", *([value] if value else []), *rest)
                return cls(tuple(flags), program) if len(program) > 1 else None
            flags.append(flag)
            if flag in _WITH_VALUE and rest:
                flags.append(rest.pop(0))
        return cls(tuple(flags), tuple(rest)) if rest else None


def _is_python(command: str) -> bool:
    return re.fullmatch(r"(python|pypy)[\d.]*t?", os.path.basename(command)) is not None


def _interpreter(script: str, path: str) -> tuple[str, ...]:
    """Return the interpreter that the first line of a script names, with flags; nothing if that is not Python."""
    with open(script, "rb") as file:
        head = file.read(1024).decode(errors="replace")
    # Where the path is too long or has a space, pip and uv write a script of both sh and Python.
    if both := re.match(r"#!/bin/sh\n'''exec' (.+) \"\$0\" \"\$@\"\n", head):
        words = shlex.split(both[1])
    else:
        first = head.partition("\n")[0]
        words = first[2:].split() if first.startswith("#!") else []
    if words and os.path.basename(words[0]) == "env":
        found = shutil.which(words[1], path=path) if len(words) > 1 else None
        words = [found, *words[2:]] if found is not None else []
    return tuple(words) if words and _is_python(words[0]) else ()


@asynccontextmanager
async def forking(server: ServerSpec, folder: Path | None) -> AsyncIterator[ForkTemplate]:
    """Yield the template of a server's processes, which works in `folder`; none of them outlives it.

    Raises:
        PreflightError: its command runs no Python program.
    """
    command = PythonCommand.of(server.command or "", server.args, environment(server).get("PATH", os.defpath))
    if command is None:
        raise PreflightError(
            f"server '{server.name}': '{server.command}' starts no Python program that can be forked; for start_method:"
            " fork give `python FILE`, `python -m MODULE` or a script that pip or `uv tool install` has installed, in"
            " place of what finds one, such as uvx; or leave out start_method"
        )
    log = ProcessLog()
    # A packet arrives whole, with its descriptors; on a stream, two requests could run into each other.
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, log.stderr() as file:
        with theirs:
            started = await asyncio.create_subprocess_exec(
                *supervised((*command.interpreter, str(_TEMPLATE), inspect.getfile(supervised), *command.program)),
                stdin=theirs.fileno(),
                stdout=file,
                stderr=file,
                env=environment(server),
                cwd=folder,
                start_new_session=True,
            )
        ours.setblocking(False)
        try:
            yield ForkTemplate(ours, log)
        finally:
            with suppress(ProcessLookupError):
                started.terminate()
            await to_the_end(started.wait())


@attrs.frozen(eq=False)
class ForkTemplate:
    """The process that forks those of a server; `_control` is where they are asked for."""

    _control: socket.socket
    _log: ProcessLog

    async def fork(self, env: Mapping[str, str], cwd: str | None, stderr: TextIO) -> ServerProcess:
        """Fork a process with this environment and working folder. Raises OSError if the template has ended."""
        with ExitStack() as opened, ExitStack() as given:
            life, theirs = socket.socketpair()
            (their_stdin, stdin), (stdout, their_stdout) = _pipe(), _pipe()
            for ours in (life, stdin, stdout):
                opened.enter_context(ours)
            for other in (theirs, their_stdin, their_stdout):
                given.enter_context(other)
            request = json.dumps({"env": {**env}, "cwd": cwd}).encode()
            try:
                await self._send(request, [each.fileno() for each in (their_stdin, their_stdout, stderr, theirs)])
                # Only the fork may hold these ends, or keval would never see that they were closed.
                given.close()
                process = await _connected(life, stdin, stdout)
            except ConnectionError as error:
                said = self._log.tail()
                raise OSError(
                    f"the template of its processes has ended{f', saying: {said}' if said else ''}"
                ) from error
            # From here on, `let_go` of the process closes them.
            opened.pop_all()
            return process

    async def _send(self, request: bytes, descriptors: Sequence[int]) -> None:
        while True:
            try:
                # asyncio sends no descriptors, so a full socket is tried again.
                socket.send_fds(self._control, [request], descriptors)
            except BlockingIOError:
                await asyncio.sleep(_FULL)
            else:
                return


def _pipe() -> tuple[FileIO, FileIO]:
    reading, writing = os.pipe()
    return FileIO(reading), FileIO(writing, "w")


async def _connected(life: socket.socket, stdin: FileIO, stdout: FileIO) -> ServerProcess:
    """Return the process at the other ends, when it has told its id; it ends with `life`.

    Raises:
        ConnectionError: it has ended before.
    """
    loop, output = asyncio.get_running_loop(), asyncio.StreamReader()
    living, life_writer = await asyncio.open_connection(sock=life)
    try:
        if not (told := await living.readline()):
            raise ConnectionResetError
        reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(output), stdout)
        # `StreamWriter.drain` needs a protocol with flow control, of which the reader's is the only public one.
        writing, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), stdin
        )
    except BaseException:
        life_writer.close()
        raise
    writer = asyncio.StreamWriter(writing, protocol, None, loop)

    def let_go() -> None:
        for each in (life_writer, reading, writing):
            each.close()

    return ServerProcess(int(told), writer, output, living.at_eof, let_go)
