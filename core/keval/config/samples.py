"""Samples by position, read from their file when they are asked for: a dataset may be larger than memory."""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import overload
from zlib import crc32

from keval.errors import ConfigError, Problem
from keval.records import Sample

__all__ = ["LineFile", "Samples"]

_KEPT = 256
"""Trials of one sample follow each other, so the latest samples are the next ones asked for."""


class Samples(Sequence[Sample]):
    """A sequence of samples whose `ids` are known; `read` gets one by its position. The latest few are kept."""

    def __init__(self, ids: Sequence[str], read: Callable[[int], Sample]) -> None:
        self.ids = ids
        self._read = lru_cache(_KEPT)(read)

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> Samples:
        """Samples that are in memory already."""
        held = tuple(samples)
        return cls([sample.id for sample in held], held.__getitem__)

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, position: int) -> Sample: ...
    @overload
    def __getitem__(self, position: slice) -> Samples: ...
    def __getitem__(self, position: int | slice) -> Sample | Samples:
        if isinstance(position, slice):
            return self.pick(range(len(self))[position])
        if not -len(self) <= position < len(self):
            raise IndexError(position)
        return self._read(position % len(self))

    def pick(self, positions: Sequence[int]) -> Samples:
        """Only those at these positions."""
        return Samples([self.ids[position] for position in positions], lambda index: self._read(positions[index]))

    def named(self, id: str) -> Sample:
        """The sample of that id. Raises KeyError."""
        return self._read(self._positions[id])

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.ids)}


class LineFile:
    """Lines of a file by the offsets at which they begin; the file stays open while this is used.

    `checks` are the lines' CRC-32, where it matters that they have not changed.
    """

    def __init__(self, path: Path, starts: array[int], checks: array[int] | None = None) -> None:
        self._starts = starts
        self._checks = checks
        self._path = path
        self._file = path.open("rb")
        weakref.finalize(self, self._file.close)

    def __getitem__(self, position: int) -> bytes:
        """Read a line. Raises ConfigError when it is not what it was."""
        self._file.seek(self._starts[position])
        line = self._file.readline()
        if self._checks is not None and crc32(line) != self._checks[position]:
            raise ConfigError([Problem(str(self._path), "the file has changed since it was checked; start again")])
        return line
