"""Quality beside what it costs: the expenses of an arm, and which arms are on the Pareto front."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence

import attrs

from keval.records.manifest import ScorerEntry
from keval.records.scores import Scale
from keval.records.transcript import Transcript
from keval_analysis.findings.effects import EXPENSES, Expense
from keval_analysis.findings.summary import ArmScore
from keval_analysis.stats.score_sums import SampleValues, Sums


@attrs.define
class Expenses:
    """Sums of what answers took, per sample; samples are numbered from 0.

    They are those of the attempts that were answered: how often a trial had to be repeated is told apart. `durations`
    are the seconds of each of these attempts.
    """

    durations: array[float] = attrs.field(factory=lambda: array("d"), init=False)
    _sums: dict[Expense, Sums] = attrs.field(factory=lambda: {name: Sums() for name in EXPENSES}, init=False)

    def add(self, sample: int, transcript: Transcript, usd: float | None) -> None:
        """Add the transcript of an answer that cost so many US dollars (`None`: unknown)."""
        if transcript.duration is not None:
            self.durations.append(transcript.duration)
            self._sums["seconds"].add(sample, transcript.duration)
        # Without a model call nobody reports tokens, and there are none.
        tokens = 0 if transcript.model_calls == 0 else transcript.usage.total
        if tokens is not None:
            self._sums["tokens"].add(sample, tokens)
        if usd is not None:
            self._sums["usd"].add(sample, usd)
        if transcript.unlisted_calls is not None:
            self._sums["tool_calls"].add(sample, len(transcript.own_calls) + transcript.unlisted_calls)

    def values(self, name: Expense) -> SampleValues:
        """Return what is known, by sample."""
        return self._sums[name].values()

    def mean(self, name: Expense) -> float | None:
        """Return the mean over samples; `None` if nothing is known."""
        return self._sums[name].mean()


@attrs.frozen
class QualityAndCost:
    """What an arm offers: its mean by one scorer, and the US dollars and tokens that one of its answers costs."""

    mean: float | None
    usd: float | None = None
    tokens: float | None = None


@attrs.frozen
class CostEffectiveness:
    """What an arm is worth; see `keval_analysis.findings.summary.ArmScore`, which has the same fields."""

    per_usd: float | None = None
    per_1000_tokens: float | None = None
    pareto: bool | None = None


def cost_effectiveness(scale: Scale, offers: Sequence[QualityAndCost]) -> list[CostEffectiveness]:
    """Return what each arm is worth by one scorer, in the order of the arms; `scale` is the scorer's.

    An arm is on the Pareto front if no other one dominates it: has at least as good a mean for at most as much, and is
    better in one of the two. Costs are compared in US dollars if each arm with a mean has some, else in tokens.
    """
    scored = [offer for offer in offers if offer.mean is not None]
    # Dollars of some arms cannot be held against tokens of others.
    in_dollars = all(offer.usd for offer in scored)
    points = [_point(scale, offer, offer.usd if in_dollars else offer.tokens) for offer in offers]
    return [
        CostEffectiveness(
            per_usd=_per(scale, offer.mean, offer.usd),
            per_1000_tokens=_per(scale, offer.mean, None if offer.tokens is None else offer.tokens / 1000),
            pareto=None if point is None else not any(_dominates(other, point) for other in points),
        )
        for offer, point in zip(offers, points, strict=True)
    ]


def with_cost_effectiveness(
    scores: Iterable[ArmScore], scorers: Iterable[ScorerEntry], expenses: Mapping[tuple[str, str], Expenses]
) -> tuple[ArmScore, ...]:
    """Return the scores of arms with what they are worth; `expenses` are by agent and condition."""
    rows = list(scores)
    costs = {arm: (found.mean("usd"), found.mean("tokens")) for arm, found in expenses.items()}
    for scorer in scorers:
        places = [place for place, row in enumerate(rows) if row.scorer == scorer.scorer]
        offers = [
            QualityAndCost(rows[place].mean, *costs[rows[place].agent, rows[place].condition]) for place in places
        ]
        for place, found in zip(places, cost_effectiveness(scorer.scale, offers), strict=True):
            rows[place] = attrs.evolve(rows[place], **attrs.asdict(found))
    return tuple(rows)


def _point(scale: Scale, offer: QualityAndCost, cost: float | None) -> tuple[float, float] | None:
    """Return a mean, of which more is better, and its cost; `None` if one of them is unknown."""
    if offer.mean is None or cost is None:
        return None
    return (offer.mean if scale.better == "higher" else -offer.mean), cost


def _dominates(one: tuple[float, float] | None, other: tuple[float, float]) -> bool:
    # Arms with the same mean and cost do not dominate each other.
    return one is not None and one != other and one[0] >= other[0] and one[1] <= other[1]


def _per(scale: Scale, mean: float | None, cost: float | None) -> float | None:
    return (mean - scale.low) / cost if mean is not None and cost and scale.better == "higher" else None
