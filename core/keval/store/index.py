"""The index of a file of lines: where the lines of each trial begin, by the trial's place among all of its run.

It lies beside its file, and is derived from it. Only who holds the run's lock writes it. An index that is torn, of
another file, of another state of it or another order is not used, but the file.

It has unsigned 64-bit numbers in the machine's order of bytes. Five come first: the format (`keval-1` and a newline,
highest byte first), a digest of the order of trials, the file's size in bytes and its time of change in nanoseconds,
and the number of entries. An entry is the rank of a trial, by repetition, sample, condition and agent, and twice the
byte at which its lines begin, plus 1 if it failed. Entries are sorted by rank. While trials are added, size, time and
number are 0, and entries are in the order of the file.
"""

from __future__ import annotations

import heapq
import os
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import attrs

from keval.files import explained, open_added, read_kept, read_lines, replacing, write_all

_FORMAT = int.from_bytes(b"keval-1\n", "big")
_HEAD = 5
"""Numbers before the first entry."""
_WORD = 8
_TOGETHER = 1 << 16
"""Entries that are sorted at a time: sorting takes ten times the memory of what is sorted."""

Entry: TypeAlias = Callable[[bytes], int | None]
"""Reads of a line twice the rank of its trial, plus 1 if that failed; `None` for a further line of the same trial."""
Entries: TypeAlias = "array[int] | memoryview"


@attrs.frozen(eq=False)
class Index:
    """Where the lines of trials begin: `starts` in bytes, doubled, plus 1 for a failed trial, by rising `ranks`."""

    ranks: Sequence[int]
    starts: Sequence[int]

    def between(self, low: int, high: int) -> range:
        """Return the places of the ranks from `low` to below `high`."""
        return range(bisect_left(self.ranks, low), bisect_left(self.ranks, high))


@attrs.frozen
class IndexFile:
    """The index of the file `of` lines, by a digest of the `order` of trials; `entry` reads a line for it."""

    of: Path
    order: int = 0
    entry: Entry = lambda line: None

    @property
    def path(self) -> Path:
        """Where the index is."""
        return self.of.with_suffix(".index")

    def read(self, is_written: Callable[[], bool] = lambda: False) -> Index:
        """Read the index, or make it of the file; `is_written` says whether a process adds lines. Raises RunError."""
        known = self._known(is_written)
        entries = memoryview(self._made()) if known is None else known
        return Index(entries[::2], entries[1::2])

    def count(self, is_written: Callable[[], bool]) -> int | None:
        """Return how many entries there are, whatever their order; `None` if the index cannot be used."""
        words = self._words(is_written)
        return None if words is None else (len(words) - _HEAD) // 2

    def complete(self) -> None:
        """Write the index, if there is the file and not its index. Raises RunError."""
        if self.of.exists() and self._known(lambda: False) is None:
            self._write(self._made())

    @contextmanager
    def growing(self) -> Iterator[Callable[[array[int]], None]]:
        """Yield what adds the entries of lines that were added, and raises OSError; sort them after the block.

        If the block fails, not all of them may be there, and the index is of no use. Raises RunError.
        """
        known = self._known(lambda: False)
        # Not durable by name: an index that a power cut takes away is made of its file again.
        with replacing(self.path, sync_name=False) as file:
            # Without the file's size nobody uses it once this process is gone, however that ends.
            file.write(self._head(0, 0, 0))
            file.write(self._made() if known is None else known)
        del known  # which may be large
        with explained(self.path):
            index = os.fdopen(open_added(self.path), "ab", buffering=0)
        with index:
            yield lambda entries: write_all(index, entries.tobytes())
        # The process that writes is this one, so its unfinished index counts.
        if (entries := self._known(lambda: True)) is not None:
            self._write(entries)

    def _head(self, *state: int) -> bytes:
        return array("Q", (_FORMAT, self.order, *state)).tobytes()

    def _write(self, entries: Entries) -> None:
        with explained(self.of):
            status = self.of.stat()
        with replacing(self.path, sync_name=False) as file:
            file.write(self._head(status.st_size, status.st_mtime_ns, len(entries) // 2))
            file.write(entries)

    def _words(self, is_written: Callable[[], bool]) -> memoryview | None:
        """Return the numbers of the index, if it is that of the file as it is."""
        try:
            read, status = read_kept(self.path), self.of.stat()
        except OSError:
            return None
        words = memoryview(read[: len(read) // _WORD * _WORD]).cast("Q")
        if len(words) < _HEAD or words[0] != _FORMAT:
            return None
        if words[2]:
            is_whole = (*words[2:4], _HEAD + 2 * words[4]) == (status.st_size, status.st_mtime_ns, len(words))
            return words if is_whole else None
        # Only a writer that is at work vouches for an index without a size, and its last entry may be half written.
        return words[: len(words) - (len(words) - _HEAD) % 2] if is_written() else None

    def _known(self, is_written: Callable[[], bool]) -> Entries | None:
        """Return the entries of the index, sorted; `None` if it cannot be used."""
        words = self._words(is_written)
        if words is None or words[1] != self.order:
            return None
        return words[_HEAD:] if words[2] else _sorted(words[_HEAD:])

    def _made(self) -> array[int]:
        """Make the entries of the file, sorted. Raises RunError."""
        entries, start = array("Q"), 0

        def note(line: bytes) -> None:
            nonlocal start
            if (found := self.entry(line)) is not None:
                entries.extend((found >> 1, start << 1 | found & 1))
            start += len(line)

        deque(read_lines(self.of, note), maxlen=0)
        return _sorted(memoryview(entries))


def _sorted(entries: memoryview) -> array[int]:
    """Return entries by rising rank; those of one rank stay in their order."""
    ranks, starts = array("Q", entries[::2]), entries[1::2]
    firsts = range(0, len(ranks), _TOGETHER)
    parts = (sorted(range(len(ranks))[first : first + _TOGETHER], key=ranks.__getitem__) for first in firsts)
    found = array("Q")
    # The merge is stable: of several lines of one trial the last stays last, and is the one that counts.
    for place in heapq.merge(*(array("L", part) for part in parts), key=ranks.__getitem__):
        found.append(ranks[place])
        found.append(starts[place])
    return found
