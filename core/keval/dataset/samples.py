"""Samples by position and by id, read when they are needed, because a dataset may be larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import overload

from keval.records import Sample

__all__ = ["Samples"]

_KEPT = 256
"""How many samples stay in memory; the trials of one sample follow each other."""


class Samples(Sequence[Sample]):
    """A sequence of samples whose `ids` are known. `read` returns one by its position; the latest ones are cached."""

    def __init__(self, ids: Sequence[str], read: Callable[[int], Sample]) -> None:
        self.ids = ids
        self._read = lru_cache(_KEPT)(read)

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> Samples:
        """Return a sequence of samples that are already in memory."""
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
        """Return only those at these positions."""
        return Samples([self.ids[position] for position in positions], lambda index: self._read(positions[index]))

    def named(self, id: str) -> Sample:
        """Return the sample of that id. Raises KeyError."""
        return self._read(self._positions[id])

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.ids)}
