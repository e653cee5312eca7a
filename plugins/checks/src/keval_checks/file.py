"""The check `file`: whether a file is there, and what is in it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs
from attrs.validators import gt

from keval.plugin import EndOfTrial, Finding, read_input
from keval_checks.expected import Expected, Texts, shown
from keval_checks.left_files import MOST_BYTES, UnfitError, check_path, left, read_left, workspace_of


@attrs.frozen
class Golden:
    """The content of a file beside the config."""

    file: Path


@attrs.frozen
class FileCheck:
    """Passes if the file `path` of the workspace is as all the options say.

    With `exists: false` it must not be there. `contains` and `not_contains` are a text or several, `matches` a regular
    expression that is found in it, and `json_schema` a JSON Schema, or the path of one, that its JSON fits. `equals` is
    its whole text, or `{file: PATH}` of a file beside the config; blank space at the end does not count.
    """

    short_option: ClassVar[str] = "path"
    needs_workspace: ClassVar[bool] = True

    path: str
    exists: bool = True
    contains: Texts = ()
    not_contains: Texts = ()
    matches: str | None = None
    equals: str | Golden | None = None
    json_schema: Mapping[str, Any] | Path | None = None
    timeout_seconds: float = attrs.field(default=10.0, validator=gt(0))
    _expected: Expected = attrs.field(init=False, repr=False, eq=False)
    _whole: bytes | None = attrs.field(init=False, repr=False, eq=False)

    @_expected.default
    def _read_expected(self) -> Expected:
        check_path("path", self.path)
        return Expected.of(self.contains, self.not_contains, self.matches, self.json_schema)

    @_whole.default
    def _read_whole(self) -> bytes | None:
        if not self.exists and (self._expected != Expected() or self.equals is not None):
            raise ValueError("'exists' must not be false beside what the file's content must be")
        if not isinstance(self.equals, Golden):
            return None if self.equals is None else self.equals.encode().rstrip()
        try:
            return read_input(self.equals.file, MOST_BYTES).rstrip()
        except OSError as error:
            raise ValueError(
                f"'equals' must name a file that can be read: {self.equals.file}: {error.strerror}"
            ) from error

    async def check(self, end: EndOfTrial) -> Finding:
        """Look at the file; see `keval.plugin.Check`."""
        return await asyncio.to_thread(self._found, end)

    def _found(self, end: EndOfTrial) -> Finding:
        try:
            folder = workspace_of(end)
            if not self.exists or (self._whole is None and self._expected == Expected()):
                with left(folder, self.path) as entry:
                    there = entry is not None
                return Finding(there is self.exists, f"{self.path} is {'there' if there else 'not there'}")
            content = read_left(folder, self.path)
        except UnfitError as unfit:
            return Finding(False, str(unfit))
        text = content.decode("utf-8", "replace")
        if self._whole is not None and content.rstrip() != self._whole:
            return Finding(False, f"{self.path} differs from what is expected: {_difference(self._whole, content)}")
        fault = self._expected.fault(text, self.timeout_seconds)
        return Finding(fault is None, f"{self.path} {fault or 'is as expected'}")


def _difference(expected: bytes, content: bytes) -> str:
    """Return the first line in which two contents differ, of both."""
    wanted, had = (each.rstrip().decode("utf-8", "replace").split("\n") for each in (expected, content))
    number = next((n for n, (a, b) in enumerate(zip(wanted, had, strict=False)) if a != b), min(len(wanted), len(had)))
    was, now = (shown(lines[number]) if number < len(lines) else "no such line" for lines in (wanted, had))
    return f"line {number + 1} is {now}, and not {was}" if was != now else f"line {number + 1} differs: {now}"
