"""The key `until` of a config."""

from __future__ import annotations

import attrs
from attrs.validators import ge, gt, le, optional


@attrs.frozen
class Until:
    """When a run may end before all questions are asked: its intervals then hold at every look.

    `effect` is written as in gates. The run ends when the effect is `decided`, or when its 95 % interval is at most as
    wide as `width`, in points of the scale. By default the effect is looked at after every question; with `looks`, so
    many times, after equal numbers of questions, by bounds of O'Brien and Fleming.
    """

    effect: str
    decided: bool = False
    width: float | None = attrs.field(default=None, validator=optional(gt(0)))
    looks: int | None = attrs.field(default=None, validator=optional([ge(2), le(20)]))

    def __attrs_post_init__(self) -> None:
        if self.decided == (self.width is not None):
            raise ValueError("'until' takes `decided: true` or `width`, and not both")
