"""The index of a file of lines: where the lines of each trial begin, by the trial's place among all of its run.

It lies beside its file, as `trials.index` beside trials.jsonl, is derived from it, and may be deleted. Only the process
that holds the run's lock writes it. It has numbers of 64 bits in the order of bytes of the machine: the format, a
digest of the order of trials, the size of the file and the time of its last change, and how many entries follow. An
entry is the rank of a trial, and twice the byte at which its lines begin, plus 1 if the trial failed. Entries are
sorted by rank, but while lines are added: then the size, the time and the number are 0, and entries follow each other
as lines do. An index that is torn, or of another file, another state of it or another order, is not used; the file is
read in its place.
"""

from __future__ import annotations

import heapq
import os
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import attrs

from keval.files import explained, read_input, read_lines, replacing, write_all

_FORMAT = int.from_bytes(b"keval-1\n", "big")
_HEAD = 5
"""Numbers before the first entry."""
_WORD = 8
_TOGETHER = 1 << 16
"""Entries that are sorted at a time: sorting takes ten times the memory of what is sorted."""

Entry: TypeAlias = Callable[[bytes], int | None]
"""Reads of a line twice the rank of its trial, plus 1 if that failed; `None` for a further line of the same trial."""


@attrs.frozen(eq=False)
class Index:
    """Where the lines of trials begin: `starts` in bytes, doubled, plus 1 for a failed trial, by rising `ranks`."""

    ranks: Sequence[int]
    starts: Sequence[int]

    def __len__(self) -> int:
        return len(self.ranks)

    def place(self, rank: int) -> int | None:
        """Return the place of a trial's entry, of several the last one."""
        place = bisect_right(self.ranks, rank) - 1
        return place if place >= 0 and self.ranks[place] == rank else None

    def between(self, low: int, high: int) -> range:
        """Return the places of the ranks from `low` to below `high`."""
        return range(bisect_left(self.ranks, low), bisect_left(self.ranks, high))


def read_index(file: Path, order: int, entry: Entry, is_written: Callable[[], bool]) -> Index:
    """Read the index of a file, or make it of the file; `is_written` says whether a process adds lines to that.

    Raises RunError.
    """
    entries = _known(file, order, is_written)
    if entries is None:
        entries = memoryview(_scanned(file, entry))
    return Index(entries[::2], entries[1::2])


def complete_index(file: Path, order: int, entry: Entry) -> None:
    """Write the index of a file, if there is the file and not its index. Raises RunError."""
    if file.exists() and _known(file, order, lambda: False) is None:
        _write(file, order, _scanned(file, entry))


def count_entries(file: Path, is_written: Callable[[], bool]) -> int | None:
    """Return how many trials the index of a file has; `None` if it cannot be used."""
    try:
        with _beside(file).open("rb") as index:
            head = array("Q", index.read(_HEAD * _WORD))
            size = os.fstat(index.fileno()).st_size // _WORD - _HEAD
    except (OSError, ValueError):
        return None
    return size // 2 if len(head) == _HEAD and _is_of(file, memoryview(head), size, is_written) else None


class GrowingIndex:
    """The index of a file to which lines are added."""

    def __init__(self, file: Path, order: int, entry: Entry) -> None:
        self._path, self._order, self._entry = file, order, entry

    def begin(self) -> None:
        """Note that lines are added from now on. Raises RunError."""
        known = _known(self._path, self._order, lambda: False)
        entries = memoryview(_scanned(self._path, self._entry)) if known is None else known
        with replacing(_beside(self._path), sync_name=False) as file:
            file.write(_head(self._order, 0, 0, 0))
            file.write(entries)
        with explained(_beside(self._path)):
            self._file = _beside(self._path).open("ab", buffering=0)

    def add(self, entries: array[int]) -> None:
        """Add the entries of lines that are on disk. Raises OSError."""
        write_all(self._file, entries.tobytes())

    def end(self, *, whole: bool) -> None:
        """Sort what there is, if all lines were noted that were added. Raises RunError."""
        self._file.close()
        if whole and (entries := _known(self._path, self._order, lambda: True)) is not None:
            _write(self._path, self._order, entries)


def _beside(file: Path) -> Path:
    return file.with_suffix(".index")


def _head(order: int, size: int, changed: int, count: int) -> bytes:
    return array("Q", (_FORMAT, order, size, changed, count)).tobytes()


def _known(file: Path, order: int, is_written: Callable[[], bool]) -> memoryview | None:
    """Return the entries of the index of a file, sorted; `None` if it cannot be used."""
    try:
        read = read_input(_beside(file))
    except OSError:
        return None
    words = memoryview(read[: len(read) // _WORD * _WORD]).cast("Q")
    if len(words) < _HEAD or words[1] != order or not _is_of(file, words, len(words) - _HEAD, is_written):
        return None
    entries = words[_HEAD : len(words) - (len(words) - _HEAD) % 2]
    return entries if words[2] else memoryview(_sorted(entries))


def _is_of(file: Path, head: memoryview, size: int, is_written: Callable[[], bool]) -> bool:
    """Return whether an index with this head and so many numbers after it is that of a file as it is."""
    if head[0] != _FORMAT:
        return False
    if not head[2]:
        return is_written()
    try:
        status = file.stat()
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns, size) == (head[2], head[3], 2 * head[4])


def _scanned(file: Path, entry: Entry) -> array[int]:
    """Make the entries of a file, sorted. Raises RunError."""
    entries, start = array("Q"), 0
    for size, found in read_lines(file, lambda line: (len(line), entry(line))):
        if found is not None:
            entries.append(found >> 1)
            entries.append(start << 1 | found & 1)
        start += size
    return _sorted(memoryview(entries))


def _sorted(entries: memoryview) -> array[int]:
    """Return entries by rising rank; those of one rank stay in their order."""
    ranks, starts = array("Q", entries[::2]), entries[1::2]
    parts = [
        array("L", sorted(range(first, min(first + _TOGETHER, len(ranks))), key=ranks.__getitem__))
        for first in range(0, len(ranks), _TOGETHER)
    ]
    found = array("Q")
    for place in heapq.merge(*parts, key=ranks.__getitem__) if len(parts) > 1 else chain(*parts):
        found.append(ranks[place])
        found.append(starts[place])
    return found


def _write(file: Path, order: int, entries: array[int] | memoryview) -> None:
    with explained(file):
        status = file.stat()
    with replacing(_beside(file), sync_name=False) as index:
        index.write(_head(order, status.st_size, status.st_mtime_ns, len(entries) // 2))
        index.write(entries)
