"""A statement of a report, with the condition under which it may be printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Literal, TypeAlias, TypeVar

import attrs

About = TypeVar("About")

Level: TypeAlias = Literal["first", "explained"]
"""How much a report says: what one decides by, or everything, with the sentences that explain it."""


@attrs.frozen
class Statement(Generic[About]):
    """A sentence, or a part of one, with `{}` for what it is about, and the condition under which it may be printed.

    `when` has the condition in words, and `holds` tests it. A short report says it only if its `level` is `first`.
    """

    says: str
    when: str
    holds: Callable[[About], bool]
    level: Level = "explained"
