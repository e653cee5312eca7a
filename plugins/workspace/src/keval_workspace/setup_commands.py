"""The commands of `setup:`, each run in the workspace with an environment that has nothing of the user's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from keval.errors import TrialError
from keval.seams.transcript_builder import TranscriptBuilder
from keval_programs.environments import environment
from keval_programs.folder import TrialFolder
from keval_programs.process import Process, running

_SHELL = ("/bin/sh", "-c")
_TO_STDERR = 'exec "$@" 1>&2'
"""Runs a command that writes all its output where `Process` keeps the end of it."""


class SetupError(Exception):
    """A setup command failed; the message has its exit status and the end of its output."""


async def set_up(folder: TrialFolder, commands: Sequence[str | Sequence[str]], seconds: float) -> None:
    """Run commands one after the other; all that they have started ends with them. Raises SetupError."""
    for command in commands:
        words = (*_SHELL, command) if isinstance(command, str) else command
        process = Process(
            name="sh", command=(*_SHELL, _TO_STDERR, "sh", *words), env=environment(folder.home, {}), cwd=folder.work
        )
        shown = command if isinstance(command, str) else " ".join(command)
        try:
            async with running(process, TranscriptBuilder()), asyncio.timeout(seconds):
                process.stdin.close()
                code = await process.wait()
        except TimeoutError as error:
            problem = f"did not end within {seconds:g} s; raise `setup_timeout_seconds`"
            raise SetupError(f"the setup command `{shown}` {problem}{_output(process)}") from error
        except TrialError as error:
            raise SetupError(f"the setup command `{shown}`: {error}") from error
        if code:
            raise SetupError(f"the setup command `{shown}` ended with exit status {code}{_output(process)}")


def _output(process: Process) -> str:
    said = process.told()
    return f"; its output ends:\n{said}" if said else "; it wrote nothing"
