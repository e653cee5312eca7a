"""The check `unchanged`: whether files are as they were when the agent began."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import attrs
from attrs.validators import gt

from keval.plugin import EndOfTrial, Finding
from keval_checks.expected import Texts, texts
from keval_checks.left_files import UnfitError, cannot_run, workspace_of
from keval_programs import Tree

_NAMED = 3


@attrs.frozen
class UnchangedCheck:
    """Passes if no file that a pattern of `paths` matches was added, changed or deleted.

    In a pattern, `*` and `?` match within a name, and `**` any folders; that of a folder matches all that is in it.
    Files that `ignore` matches may differ.
    """

    short_option: ClassVar[str] = "paths"
    needs_workspace: ClassVar[bool] = True

    paths: Texts
    ignore: Texts = ()
    timeout_seconds: float = attrs.field(default=60.0, validator=gt(0))
    _matches: Callable[[str], bool] = attrs.field(init=False, repr=False, eq=False)

    @_matches.default
    def _read(self) -> Callable[[str], bool]:
        paths = [_pattern(each) for each in texts("paths", self.paths)]
        ignored = [_pattern(each) for each in texts("ignore", self.ignore)]
        if not paths:
            raise ValueError("'paths' must hold at least one pattern")

        def matches(path: str) -> bool:
            return any(each.fullmatch(path) for each in paths) and not any(each.fullmatch(path) for each in ignored)

        return matches

    async def check(self, end: EndOfTrial) -> Finding:
        """Look at the changes; see `keval.plugin.Check`. Raises TrialError: no file ever matched a pattern."""
        # A name that a terminal would not show is written in quotation marks, with escapes.
        found = [change for change in end.changes if self._matches(change.path.strip('"'))]
        if found:
            named = ", ".join(f"{change.path} was {change.kind}" for change in found[:_NAMED])
            more = f", and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            return Finding(False, named + more)
        if end.changes_cut:  # one of these may be in the way
            told = f"{end.changes_cut:,} files more were added than are listed, so that nothing shows what is unchanged"
            return Finding(False, told)
        try:
            folder = workspace_of(end)
        except UnfitError as unfit:
            return Finding(False, str(unfit))
        # What matches nothing now, and nothing that was deleted, matched nothing in the beginning.
        if not await asyncio.to_thread(lambda: any(map(self._matches, _paths(folder)))):
            raise cannot_run(f"no file of the workspace matches {self.paths!r}, so the check proves nothing")
        return Finding(True, "nothing of it has changed")


def _pattern(glob: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", glob.rstrip("/"))
    meaning = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(meaning.get(part, re.escape(part)) for part in parts) + "(?:/.*)?", re.DOTALL)


def _paths(folder: Path) -> Iterator[str]:
    with Tree.at(folder) as tree:
        yield from (entry.path for entry in tree.walk(but=None))
