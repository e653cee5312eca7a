"""reviews.jsonl of a run: a line for each thing that a person said of an answer. Lines are added, and never changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

import attrs
import orjson

from keval.errors import RunError
from keval.files import cut_torn_line, explained, read_lines, sync_folder
from keval.findings.reviews import Review
from keval.seams.results import mirror_of
from keval.store.serialization import dump, read_record

_PATIENCE = 10.0
"""Seconds to wait for others who write reviews of the same run."""


@attrs.frozen
class ReviewsFile:
    """The reviews of a run. People may review while it runs: the file has a lock of its own."""

    path: Path

    def read(self) -> Iterator[Review]:
        """Read every line, also those that later ones replace. An incomplete last line is ignored. Raises RunError."""
        return read_lines(self.path, read_review)

    def append(self, reviews: Sequence[Review]) -> None:
        """Add reviews, all or none, and return when they are on disk. Raises RunError."""
        # Takes a twentieth of a second to import, which only a run that is written to needs.
        from filelock import FileLock, Timeout

        lines = b"".join(dump(review) + b"\n" for review in reviews)
        with explained(self.path):
            try:
                mirror = mirror_of(self.path.parents[2])
                with (
                    FileLock(self.path.with_name(".reviews.lock"), timeout=_PATIENCE),
                    mirror.adding(self.path) if mirror else nullcontext(),
                ):
                    self._append(lines)
            except Timeout as error:
                raise RunError(
                    f"another process has been writing to {self.path} for {_PATIENCE:g} s; try again"
                ) from error

    def _append(self, lines: bytes) -> None:
        is_new = not self.path.exists()
        # A link that somebody put there leads nowhere.
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        file = os.open(self.path, flags, 0o644)
        try:
            cut_torn_line(file)
            size = os.fstat(file).st_size
            try:
                written = os.write(file, lines)
                if written < len(lines):
                    raise OSError(f"{written} of {len(lines)} bytes were written")
            except OSError:
                os.ftruncate(file, size)
                raise
            os.fsync(file)
        finally:
            os.close(file)
        if is_new:
            sync_folder(self.path.parent)


def read_review(line: bytes) -> Review:
    """Read a line of reviews.jsonl. Raises LookupError, TypeError or ValueError."""
    return read_record(Review, orjson.loads(line))
