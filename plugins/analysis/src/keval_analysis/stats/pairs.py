"""Arms that are held against each other, by which measure, and which effects are judged together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import attrs

from keval.records.scores import Scale, Scorer
from keval_analysis.findings.effects import Arm, Family
from keval_analysis.stats.score_sums import SampleValues

if TYPE_CHECKING:  # NumPy takes a tenth of a second to import
    from keval_analysis.stats.looking import Looking

Kind: TypeAlias = Literal["condition", "agent", "run"]


def agent_pairs(agents: Sequence[str]) -> list[tuple[str, str]]:
    """Return which agents are compared: each with the first, and the other two of three with each other.

    Where the first is what somebody's own agents are to beat, which of two is better is the next question. More agents
    have too many pairs for a family.
    """
    pairs = [(agent, agents[0]) for agent in agents[1:]]
    return [*pairs, (agents[2], agents[1])] if len(agents) == 3 else pairs


@attrs.frozen(eq=False)
class ArmValues:
    """What one scorer found in one arm, by sample, and how many trials of a sample have no score due to a failure.

    `without` counts trials that the scorer gave no value, without failing: they are lost if the other arm has a value
    for the sample, which can be scored then. `neutral` counts trials whose score is neutral and left out. `compliant`
    has the compliant trials alone; it is `None` where the condition requires no use of tools. `without_lost` is the
    same arm without the trials that count as the worst score; `None` if none do.
    """

    arm: Arm
    values: SampleValues
    lost: Counter[int] = attrs.field(factory=Counter)
    without: Counter[int] = attrs.field(factory=Counter)
    neutral: Counter[int] = attrs.field(factory=Counter)
    compliant: SampleValues | None = None
    without_lost: ArmValues | None = None


@attrs.frozen(eq=False)
class Measure:
    """How values are compared: by whom they were scored, on which scale, and which samples share a source.

    `clusters` has a number for each sample, or is `None` if every sample is a source of its own. `span` is the largest
    difference that there can be, and `has_ratio` says that ratios are of interest as well.
    """

    scorer: Scorer
    scale: Scale
    clusters: Sequence[int] | None
    span: float = attrs.field()
    has_ratio: bool = False

    @span.default
    def _width(self) -> float:
        return self.scale.high - self.scale.low


@attrs.frozen(eq=False)
class Pair:
    """An arm and the one that it is compared with, by one scorer."""

    kind: Kind
    measure: Measure
    arm: ArmValues
    against: ArmValues


@attrs.frozen
class Families:
    """How effects are judged together: which metrics are `primary`, none if the config names none.

    An effect of a run that is `unfinished` has no verdict yet. `looking` is how the run was looked at before its end.
    Effects of the kinds `beside` are exploratory on every metric, as a family that had them as well would see less.
    """

    primary: frozenset[str] = frozenset()
    unfinished: bool = False
    looking: Looking | None = None
    beside: frozenset[Kind] = frozenset()

    def of(self, metric: str) -> Family:
        """Return the family of a metric among the effects of one kind."""
        if not self.primary:
            return "all"
        return "primary" if metric in self.primary else "exploratory"

    def told(self, kind: Kind, metric: str) -> Family:
        """Return what an effect is to a reader: one that the run is to decide, or an exploratory one."""
        return "exploratory" if kind in self.beside else self.of(metric)
