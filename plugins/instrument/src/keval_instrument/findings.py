"""What examinations find: figures, which bounds are set for, and defects, which a person mends."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen
class Figure:
    """One figure of an examination, such as the `detection` of a kind of damage by a scorer.

    `of` says what it is of, by what kind of thing that is: `{"scorer": "completeness by judge", "damage": "number"}`.
    `n` is how many samples or answers it is from, and `low` and `high` are its 95 % interval. Where there is no value,
    `reason` says why. `unit` is `share` (0 to 1), `points` of the scorer's scale, or `count`.
    """

    name: str
    of: Mapping[str, str]
    value: float | None
    n: int
    low: float | None = None
    high: float | None = None
    reason: str | None = None
    unit: str = "share"

    def __attrs_post_init__(self) -> None:
        if self.value is None and not self.reason:
            raise ValueError("a figure without a value needs a reason")


@attrs.frozen
class Defect:
    """Something wrong with the instrument: what, with what to do about it, and which sample it is in, if it is one."""

    problem: str
    sample: str | None = None


@attrs.frozen
class Examined:
    """What one examination found. Where it could not examine anything, `reason` says why, and there is nothing else."""

    examination: str
    figures: tuple[Figure, ...] = ()
    defects: tuple[Defect, ...] = ()
    reason: str | None = None
