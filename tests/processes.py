"""Processes that are up at once: forked from one that has imported keval, and the MCP SDK, which takes a second.

They are processes like any other, so a test can kill one and start another on its port.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs

__all__ = ["Listening", "children", "command", "serving"]

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        *("mcp.server.mcpserver", "mcp.server.sse", "starlette.applications", "uvicorn"),
        *("keval.cli.session", "keval.run.flow", "keval.run.select"),  # commands ask which options packages have
    ]
)


@attrs.define
class Listening:
    """A process that runs `listen(socket, *args)` of a module, where the socket listens on loopback already.

    The module is named and not imported here, as the SDK's servers set up logging for the process that they are in.
    """

    port: int
    _process: BaseProcess

    @classmethod
    def start(cls, module: str, *args: Any, port: int = 0) -> Listening:
        # With the protocol named, asyncio switches Nagle's algorithm off; it costs 40 ms a call otherwise.
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            listener.listen(128)
            process = _FORKS.Process(target=_listen, args=(module, listener, *args), daemon=True)
            process.start()
            return cls(listener.getsockname()[1], process)

    def stop(self) -> None:
        """Kill the process; safe to call again."""
        self._process.kill()
        self._process.join()


def _listen(module: str, *args: Any) -> None:
    """Serve without a word on the terminal of whoever runs the tests."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    import_module(module).listen(*args)


def command(folder: Path, environ: Mapping[str, str], args: Sequence[str], timeout: float) -> tuple[int, str, str]:
    """Run keval in `folder`, and return how it ended and what it wrote."""
    with TemporaryDirectory() as temporary:
        written = Path(temporary, "stdout"), Path(temporary, "stderr")
        process = _FORKS.Process(target=_command, args=(folder, dict(environ), args, *written))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
        process.join()
        assert process.exitcode is not None
        stdout, stderr = (path.read_text(encoding="utf-8") for path in written)
    return process.exitcode, stdout, stderr


def _command(folder: Path, environ: dict[str, str], args: Sequence[str], *written: Path) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    for descriptor, path in enumerate(written, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), descriptor)
    from keval.cli import main

    main(args, prog_name="keval")


@contextmanager
def serving(folder: Path, *args: str) -> Iterator[str]:
    """Run a command that serves until it is ended, and yield the first line that it prints."""
    lines, written = _FORKS.Pipe(duplex=False)
    process = _FORKS.Process(target=_serving, args=(folder, dict(os.environ), args, written))
    process.start()
    written.close()
    try:
        with open(lines.fileno(), encoding="utf-8", closefd=False) as printed:
            yield printed.readline().strip()
    finally:
        process.terminate()
        process.join(30)
        lines.close()
        assert 0 == process.exitcode


def _serving(folder: Path, environ: dict[str, str], args: Sequence[str], written: Connection) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    os.dup2(written.fileno(), 1)
    from keval.cli import main

    main(args, prog_name="keval")


def children() -> set[str]:
    """The processes that this one has started and that still are."""
    found: set[str] = set()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended, and its children are another's
            found.update((thread / "children").read_text("ascii").split())
    return found
