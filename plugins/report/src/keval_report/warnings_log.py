"""What other packages warn of during a run: a log in its folder, and one line on the terminal.

Frameworks and SDKs warn often, and mostly of themselves. keval's own warnings are shown where they arise.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from keval.cli.messages import foreign, set_aside, tell
from keval.files import open_added
from keval.records.formats import counted
from keval.records.trial import TrialKey
from keval.redaction import Redactor
from keval.seams.hooks import Hooks

FILE = "warnings.log"
_MOST = 500
"""Different warnings that are kept; further ones are only counted."""
_LONGEST = 2_000


class WarningsLog:
    """A `keval.seams.hooks.RunWatcher` that collects warnings of other packages, which a command then does not show."""

    def __init__(self) -> None:
        self._new: Counter[tuple[str, str]] = Counter()
        self._written: Counter[str] = Counter()
        self._file: Path | None = None
        self._redact = Redactor()
        set_aside(self._add)

    @asynccontextmanager
    async def publishing(self, folder: Path, hooks: Hooks, redact: Redactor) -> AsyncIterator[None]:
        """Write the log when the block ends, as long as the run is kept from other writers."""
        self._file, self._redact = folder / FILE, redact
        try:
            yield
        finally:
            self._write()

    def begins(self, key: TrialKey) -> None:
        """Do nothing."""

    def ends(self) -> None:
        """Tell how many warnings there were, and write those that came while all was closed."""
        set_aside(None)
        self._write()
        if self._written:
            told = f"{counted(self._written.total(), 'warning')} of {', '.join(sorted(self._written))}"
            tell(f"{told}: see {self._file}")

    def _add(self, file: str, text: str) -> None:
        found = package_of(file), text[: 4 * _LONGEST]  # what is written is cut when no secret can be cut with it
        self._new[found if found in self._new or len(self._new) < _MOST else (found[0], "more warnings")] += 1

    def _write(self) -> None:
        found, self._new = self._new, Counter()
        lines = list[str]()
        for (package, text), count in found.items():
            self._written[package] += count
            shown = foreign(self._redact.text(text)[:_LONGEST]).replace("\n", "\n    ")
            lines.append(f"{count} × {package}: {shown}")
        if self._file is None:  # the run could not begin: what they say may be why
            self._written.clear()
            for line in lines:
                tell(f"warning: {line}")
        elif lines:
            try:
                with os.fdopen(open_added(self._file), "a", encoding="utf-8", errors="replace") as file:
                    file.writelines(f"{line}\n" for line in lines)
            except OSError as error:
                tell(f"{self._file} cannot be written: {error.strerror or error}")


def package_of(file: str) -> str:
    """Return the package that a file belongs to, or else its name."""
    path = Path(file)
    roots = [Path(each) for each in sys.path if os.path.isabs(each) and path.is_relative_to(each)]
    if not roots:
        return path.stem
    root = max(roots, key=lambda each: len(each.parts))
    first, *others = path.relative_to(root).with_suffix("").parts
    is_namespace = len(others) > 1 and not (root / first / "__init__.py").exists()
    return f"{first}.{others[0]}" if is_namespace else first
