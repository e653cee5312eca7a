"""The check `command`: a program that looks at the workspace, and says by its exit code what it thinks of it."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path
from typing import ClassVar

import attrs
from attrs.validators import gt

from keval.plugin import EndOfTrial, Finding, search_path
from keval_checks.expected import Expected, Texts, shown
from keval_checks.left_files import UnfitError, cannot_run, workspace_of
from keval_checks.program import Ended, command_of, run_program
from keval_programs import TrialFolder, open_folder

_NOT_FOUND = 127
"""What a shell exits with if a program is not found (POSIX, Shell Command Language, 2.8.2)."""
# Of dash (`sh: 1: jq: not found`) and of bash (`sh: line 1: jq: command not found`).
_NAMED_PROGRAM = re.compile(r"(?<!\S)([^/\s:]+): (?:command )?not found\s*\Z")


@attrs.frozen
class CommandCheck:
    """Passes if a program ends with the code `exit` in the workspace, within `timeout_seconds`.

    `run` is a list of words, or a text for the shell. It has an empty home and none of the agent's environment. Its
    output, the last MiB of it, has every text of `contains` and none of `not_contains`. `files`, a file or a folder
    beside the config, is copied for it, and `KEVAL_FILES` is the path of the copy, which the agent never sees. If the
    trial has a sandbox, the program runs in it, unless `sandboxed` is false.
    """

    short_option: ClassVar[str] = "run"
    needs_workspace: ClassVar[bool] = True

    run: str | tuple[str, ...]
    exit: int = 0
    contains: Texts = ()
    not_contains: Texts = ()
    files: Path | None = None
    sandboxed: bool = True
    timeout_seconds: float = attrs.field(default=60.0, validator=gt(0))
    _command: tuple[str, ...] = attrs.field(init=False, repr=False, eq=False)
    _expected: Expected = attrs.field(init=False, repr=False, eq=False)

    @_command.default
    def _read_command(self) -> tuple[str, ...]:
        return command_of("run", self.run)

    @_expected.default
    def _read_expected(self) -> Expected:
        if self.files is not None and not self.files.exists():
            raise ValueError(f"'files' must name a file or a folder that exists: {self.files}")
        return Expected.of(self.contains, self.not_contains)

    async def check(self, end: EndOfTrial) -> Finding:
        """Run the program; see `keval.plugin.Check`. Raises TrialError: it is not there."""
        try:
            folder = workspace_of(end)
        except UnfitError as unfit:
            return Finding(False, str(unfit))
        async with open_folder() as own:
            env = {} if self.files is None else {"KEVAL_FILES": str(await asyncio.to_thread(_copied, self.files, own))}
            ended = await run_program(
                self._command,
                folder,
                own,
                self.timeout_seconds,
                env=env,
                sandbox=end.sandbox if self.sandboxed else None,
            )
        missing = _NAMED_PROGRAM.search(ended.output) if ended.code == _NOT_FOUND != self.exit else None
        if missing is not None and self._lacks(missing[1], sandboxed=self.sandboxed and end.sandbox is not None):
            raise cannot_run(f"the program {missing[1]!r} is not found; install it, or give its path")
        passed, reason = self._verdict(ended)
        return Finding(passed, reason, ended.kept)

    def _lacks(self, program: str, *, sandboxed: bool) -> bool:
        """Return whether a program that is said not to be found is the command's own, and is really not there.

        A path that is not found may be what the agent was to make, and its code may say anything.
        """
        own = program in re.split(r"[^\w.+-]+", " ".join(self._command))
        return own and (sandboxed or shutil.which(program, path=search_path()) is None)

    def _verdict(self, ended: Ended) -> tuple[bool, str]:
        if ended.code is None:
            return False, ended.limit or f"the command did not end within {self.timeout_seconds:g} s"
        if ended.code != self.exit:
            last = f": {shown(ended.output.strip().splitlines()[-1])}" if ended.output.strip() else ""
            return False, f"the command ended with exit code {ended.code}, and not {self.exit}{last}"
        fault = self._expected.fault(ended.output, self.timeout_seconds)
        return fault is None, f"its output {fault}" if fault else f"the command ended with exit code {self.exit}"


def _copied(files: Path, own: TrialFolder) -> Path:
    """Copy a file or a folder into the check's own folder, and return where it is."""
    copy = own.own / files.name
    if files.is_dir():
        shutil.copytree(files, copy, symlinks=True)
    else:
        shutil.copy2(files, copy)
    return copy
