"""A trial's own directory: Claude Code finds nothing of the user's or of another trial's in it, and leaves nothing."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

__all__ = ["Home", "open_home"]


@attrs.frozen
class Home:
    """The directory, which only the user can read; secrets go into its files, as a command line is public."""

    root: Path

    @property
    def config(self) -> Path:
        """Where Claude Code keeps settings, sessions and memory."""
        return self.root / "config"

    @property
    def work(self) -> Path:
        """The empty directory that Claude Code works in."""
        return self.root / "work"

    @property
    def stderr(self) -> Path:
        """Where Claude Code's own stderr goes."""
        return self.root / "stderr.txt"

    def write(self, name: str, content: str) -> Path:
        """Write a file and return its path."""
        path = self.root / name
        path.write_text(content, encoding="utf-8")
        return path

    def write_json(self, name: str, content: Any) -> Path:
        """Write a JSON file and return its path."""
        return self.write(name, json.dumps(content))


@contextmanager
def open_home() -> Iterator[Home]:
    """Make the directory, and remove it with everything in it."""
    # A process that was killed may be seen for a moment after, and what it wrote last is nobody's.
    with tempfile.TemporaryDirectory(prefix="keval-claude-", ignore_cleanup_errors=True) as path:
        home = Home(Path(path).resolve())
        home.config.mkdir()
        home.work.mkdir()
        yield home
