"""The check `python`: a function of the user's, which is called in a process of its own."""

from __future__ import annotations

import ast
import json
import pickle
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import attrs
from attrs.validators import gt

from keval.plugin import EndOfTrial, Finding, suggestion
from keval_checks.left_files import UnfitError, cannot_run, workspace_of
from keval_checks.program import Ended, run_program
from keval_programs import open_folder


@attrs.frozen
class PythonCheck:
    """Passes if a function says so. `target` is `FILE.py:FUNCTION`, beside the config.

    The function takes the `keval.Trial` and the path of its workspace, which is `None` without one. It returns whether
    the check passed, or that and a reason. An assertion of it that does not hold fails the check, and `None` passes it.
    It runs in a process of its own, in the folder of its file, without the environment of keval or the agent.
    """

    short_option: ClassVar[str] = "target"
    needs_workspace: ClassVar[bool] = False

    target: Path
    timeout_seconds: float = attrs.field(default=60.0, validator=gt(0))

    def __attrs_post_init__(self) -> None:
        file, function = self._file, self._function
        if file.suffix != ".py" or not function.isidentifier():
            raise ValueError(f"'target' must be FILE.py:FUNCTION, such as checks.py:totals: {self.target.name!r}")
        try:
            known = set(_names(ast.parse(file.read_bytes(), str(file))))
        except OSError as error:
            raise ValueError(f"'target' must name a file that can be read: {file}: {error.strerror}") from error
        except (SyntaxError, ValueError, RecursionError) as error:
            raise ValueError(f"'target' must name a file of Python: {error}") from error
        if function not in known:
            told = f"{file.name} has no function {function!r}{suggestion(function, known, 'functions')}"
            raise ValueError(f"'target' must name a function of the file: {told}")

    @property
    def _file(self) -> Path:
        return self.target.with_name(self.target.name.rpartition(":")[0] or self.target.name)

    @property
    def _function(self) -> str:
        return self.target.name.rpartition(":")[2]

    async def check(self, end: EndOfTrial) -> Finding:
        """Call the function; see `keval.plugin.Check`. Raises TrialError: it raises anything but AssertionError."""
        try:
            folder = None if end.folder is None else workspace_of(end)
        except UnfitError as unfit:
            return Finding(False, str(unfit))
        file = self._file.resolve()
        async with open_folder() as own:
            # Pipes, and a mark that is drawn, as what the function runs may be the agent's, and would find files.
            mark = uuid.uuid4().hex
            given = f"{mark}\n".encode() + pickle.dumps((end.trial, folder))
            # With `-P`, what keval imports is not looked for in the folder of the file.
            call = (sys.executable, "-P", "-m", "keval_checks.called_function", str(file), self._function)
            ended = await run_program(call, file.parent, own, self.timeout_seconds, given=given)
        written, marked, told = ended.output.rpartition(mark)
        if ended.code is None:
            return Finding(False, f"{self.target.name} did not end within {self.timeout_seconds:g} s", ended.kept)
        if not marked:
            raise cannot_run(f"{self.target.name} ended with exit code {ended.code}: {ended.kept or 'no output'}")
        found: dict[str, Any] = json.loads(told.partition("\n")[0])
        if found["passed"] is None:
            raise cannot_run(f"{self.target.name} {found['reason']}")
        return Finding(found["passed"], found["reason"], Ended(ended.code, written).kept)


def _names(module: ast.Module) -> Iterator[str]:
    """Yield the names that a module defines or imports, as far as that shows without running it."""
    for node in ast.walk(module):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
