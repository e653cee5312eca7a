"""`--view`: a viewer that shows a run in the browser while it goes on, as a process of its own."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from keval.cli.call import CommandCall, CommandOptions
from keval.cli.messages import tell
from keval.processes import supervised
from keval.seams.hooks import hookimpl

if TYPE_CHECKING:
    from keval.records.manifest import Manifest

_COMMAND = "view"
"""The command of a plugin that shows runs; it is called as `keval view RESULTS --run RUN [--no-browser]`."""
_CLOSING = 5.0
"""Seconds for the viewer to end, before it is killed."""
_INTERRUPTED = 130


def _apply(call: CommandCall, *, view: bool) -> None:
    if view:
        call.watchers.append(("keval/viewing", call.stack.enter_context(_viewing())))


_TOLD = "Show the run in the browser while it runs and, in a terminal, afterwards until Ctrl-C."
options = CommandOptions([click.option("--view", is_flag=True, help=_TOLD)], _apply)


@contextmanager
def _viewing() -> Iterator[_Viewer]:
    """Yield the hook plugin that begins the viewer when a run begins.

    After a run that was not interrupted, the viewer goes on until Ctrl-C, if there is a terminal to press it in; the
    command's exit code stays.
    """
    viewer = _Viewer()
    try:
        yield viewer
    except SystemExit as ended:
        if ended.code != _INTERRUPTED:
            viewer.stay()
        raise
    finally:
        viewer.end()


class _Viewer:
    """The process that shows a run, from when the run begins."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._teller: threading.Thread | None = None
        self._url = ""
        self._has_spoken = threading.Event()

    @hookimpl
    def keval_run_started(self, directory: Path, manifest: Manifest) -> None:
        results = directory.parent.parent
        # `-P`, so that no module of the working folder stands in for one of keval's.
        command = [sys.executable, "-P", "-m", "keval", _COMMAND, str(results), "--run", str(directory)]
        self._process = subprocess.Popen(  # noqa: S603 - keval itself
            supervised(command if _has_terminal() else [*command, "--no-browser"]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # Ctrl-C in a terminal is for the run, which is still looked at while it stops
        )
        self._teller = threading.Thread(target=self._pass_on, daemon=True)
        self._teller.start()

    def stay(self) -> None:
        """Wait until Ctrl-C, if there is a terminal to press it in, or until the viewer ends by itself."""
        if self._process is None or self._process.poll() is not None or not _has_terminal():
            return
        # What the run printed is to be read during the wait, also through a pipe.
        sys.stdout.flush()
        with suppress(KeyboardInterrupt):
            self._has_spoken.wait()  # a short run may have ended before
            if self._process.poll() is None:
                tell(f"the viewer is still running; press Ctrl-C to stop it: {self._url}")
                self._process.wait()

    def end(self) -> None:
        """End the viewer, if it runs."""
        if self._process is None or self._teller is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_CLOSING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._teller.join(_CLOSING)

    def _pass_on(self) -> None:
        """Print what the viewer says: its address, or why there is none."""
        assert self._process is not None  # noqa: S101 - for mypy: it was begun before
        assert self._process.stdout is not None  # noqa: S101 - for mypy: it is a pipe
        with self._process.stdout as said:
            for line in said:
                tell(line.rstrip())
                self._url = self._url or line.rstrip()
                self._has_spoken.set()
        self._has_spoken.set()


def _has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()
