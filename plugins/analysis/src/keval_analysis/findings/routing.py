"""Routing: how well agents chose skills and tools, by what samples expect of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from keval_analysis.findings.effects import OfArm


@attrs.frozen
class Share:
    """A share of so many `trials`, over `n` samples, with its 95 % interval, for which samples are independent."""

    rate: float
    ci_low: float | None
    ci_high: float | None
    trials: int
    n: int


@attrs.frozen
class Routing(OfArm):
    """How well the trials of one arm chose a skill to read (`reads`) or a tool to call (`calls`).

    `recall` is the share of the trials that should choose it that did, and `precision` the share of those that chose it
    that should; `None` where there are no such trials. Of `unknown` trials nobody can tell. `chosen` is a row of the
    confusion table: what was chosen in how many of the trials that should choose this one, with an empty name for
    nothing. An empty `name` stands for nothing, too: it is the row of the trials that should choose none of some.
    """

    kind: Literal["reads", "calls"]
    name: str
    recall: Share | None
    precision: Share | None
    unknown: int
    chosen: Mapping[str, int]
