"""Parts: what was added to a growing file, as objects whose names give their order and their range of bytes.

The parts of `trials.jsonl` are under `trials.jsonl.parts/`. A name is `GENERATION-ORIGIN-BEGIN-END`. A file that was
replaced here begins another generation, at byte 0; one that goes on where the plain object ends begins its generation
there. So the file is the plain object up to the origin of the newest generation whose first part is there, and then the
parts of that generation, up to the first gap. `GENERATION-whole` says that the plain object is the file by now.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

import attrs

FOLDER = ".parts"
_NAME = re.compile(r"(\d+)-(\d+)-(\d+)-(\d+)")
_WHOLE = re.compile(r"(\d+)-whole")


@attrs.frozen(order=True)
class Part:
    """One part of a file: bytes `begin` to `end`."""

    generation: int
    origin: int
    begin: int
    end: int

    @property
    def name(self) -> str:
        """The name of the object."""
        return f"{self.generation:04d}-{self.origin:012d}-{self.begin:012d}-{self.end:012d}"


@attrs.frozen
class Parts:
    """The parts of a file that count, in their order; none if the plain object is the file."""

    parts: Sequence[Part] = ()
    newest: int = 0

    @classmethod
    def of(cls, names: Iterable[str], base_size: int) -> Parts:
        """Choose the parts that count by the names of all, beside a plain object of so many bytes, 0 without one."""
        names = [*names]
        whole = max((int(match[1]) for name in names if (match := _WHOLE.fullmatch(name))), default=0)
        found = sorted(Part(*map(int, match.groups())) for name in names if (match := _NAME.fullmatch(name)))
        newest = max([whole, *(part.generation for part in found)])
        for generation, parts in groupby(reversed(found), lambda part: part.generation):
            chain = _chain([*parts][::-1])
            if generation > whole and chain and chain[0].begin == chain[0].origin <= max(base_size, 0):
                return cls(chain, newest)
        return cls((), newest)


def _chain(parts: Sequence[Part]) -> list[Part]:
    """Return the parts up to the first gap."""
    chain: list[Part] = []
    for part in parts:
        if chain and part.begin != chain[-1].end:
            break
        chain.append(part)
    return chain


def whole_name(generation: int) -> str:
    """Return the name of the object that says that the plain object is the file."""
    return f"{generation:04d}-whole"
