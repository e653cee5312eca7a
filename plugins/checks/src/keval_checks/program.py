"""Programs that checks run: in keval's own clean environment, bounded in time, and ended with all that they started."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import attrs

from keval.plugin import Sandbox, TranscriptBuilder, TrialError
from keval_programs import Confinement, Process, TrialFolder, environment, running, words

_MERGED = 'exec "$@" 2>&1'
_READ_BYTES = 2**20
"""How much of the end of an output is looked at."""
MOST_KEPT = 4000
"""Characters of the end of an output that are kept."""


@attrs.frozen
class Ended:
    """How a program ended: its exit code, and the end of what it wrote.

    There is no code if its time was over, or if it used more than its sandbox allows: `limit` says that.
    """

    code: int | None
    output: str
    limit: str | None = None

    @property
    def kept(self) -> str | None:
        """The end of the output, as results of checks keep it; `None` if there is none."""
        return self.output[-MOST_KEPT:] or None


def command_of(field: str, run: str | Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command: a list of them, or a text for the shell. Raises ValueError: it is empty."""
    if isinstance(run, str) and run.strip():
        return ("/bin/sh", "-c", run)
    return words(field, run)


async def run_program(
    words: Sequence[str],
    cwd: Path,
    own: TrialFolder,
    seconds: float | None,
    *,
    env: Mapping[str, str] | None = None,
    given: bytes = b"",
    sandbox: Sandbox | None = None,
) -> Ended:
    """Run a program in the folder `cwd`, for so many seconds or without a limit; `own` has its home, which is empty.

    It reads what is `given`. Nothing of `cwd` is on its PATH, as the agent wrote it.

    Raises:
        TrialError: it, or the sandbox, cannot be started.
    """
    named = environment(own.home, env or {})
    named["PATH"] = _outside(named["PATH"], cwd)
    shut_in = None
    if sandbox is not None:
        shut_in = Confinement(sandbox, attrs.evolve(own, work=cwd), (), _programs(words, named["PATH"]))
    # The shell is inside, so that it tells a program that is not there in the same way everywhere.
    process = Process("the command", ("/bin/sh", "-c", _MERGED, "sh", *words), named, cwd, shut_in)
    written, code = bytearray(), None
    try:
        async with running(process, TranscriptBuilder()):
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    process.stdin.write(given)
                    process.stdin.close()
                    while chunk := await process.stdout.read(2**16):
                        written += chunk
                        del written[:-_READ_BYTES]
                    code = await process.wait()
    except TrialError:
        # What exceeds a limit of the sandbox is a result of the check; the agent may have written the program.
        if process.limit is None:
            raise
        code = None
    limit = None if process.limit is None else str(process.limit)
    return Ended(code, written.decode("utf-8", "replace") + process.told(), limit)


def _programs(words: Sequence[str], path: str) -> list[Path]:
    """Return the programs that a command names, each where it is on this PATH."""
    # Not parsed as a shell would: a word too many only shows the sandbox one more program.
    named = {word for word in re.split(r"[\s;|&()<>'\"`]+", " ".join(words)) if "/" not in word or os.path.isabs(word)}
    return [Path(found) for word in sorted(named) if word and (found := shutil.which(word, path=path)) is not None]


def _outside(path: str, folder: Path) -> str:
    """Return the folders of a PATH that are neither relative nor within `folder`."""
    kept = (each for each in path.split(os.pathsep) if os.path.isabs(each))
    return os.pathsep.join(each for each in kept if not Path(os.path.realpath(each)).is_relative_to(folder))
