"""Worth: quality beside what it costs, and which arms are on the Pareto front of the two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from keval.manifest import ScorerEntry
from keval.scores import Scale
from keval.stats.expenses import Expenses
from keval.summary import ArmScore

__all__ = ["Offer", "Worth", "with_worth", "worth"]


@attrs.frozen
class Offer:
    """What an arm offers: its mean by one scorer, and the US dollars and tokens that one of its answers costs."""

    mean: float | None
    usd: float | None = None
    tokens: float | None = None


@attrs.frozen
class Worth:
    """What an arm is worth; see `keval.summary.ArmScore`, which has the same fields."""

    per_usd: float | None = None
    per_1000_tokens: float | None = None
    pareto: bool | None = None


def worth(scale: Scale, offers: Sequence[Offer]) -> list[Worth]:
    """Return what each arm is worth by one scorer, in the order of the arms; `scale` is the scorer's.

    An arm is on the Pareto front if no other one dominates it: has at least as good a mean for at most as much, and is
    better in one of the two. Costs are compared in US dollars if each arm with a mean has some, else in tokens.
    """
    scored = [offer for offer in offers if offer.mean is not None]
    in_dollars = all(offer.usd for offer in scored)
    points = [_point(scale, offer, offer.usd if in_dollars else offer.tokens) for offer in offers]
    return [
        Worth(
            per_usd=_per(scale, offer.mean, offer.usd),
            per_1000_tokens=_per(scale, offer.mean, None if offer.tokens is None else offer.tokens / 1000),
            pareto=None if point is None else not any(_dominates(other, point) for other in points if other),
        )
        for offer, point in zip(offers, points, strict=True)
    ]


def with_worth(
    scores: Iterable[ArmScore], scorers: Iterable[ScorerEntry], expenses: Mapping[tuple[str, str], Expenses]
) -> tuple[ArmScore, ...]:
    """Return the scores of arms with what they are worth; `expenses` are by agent and condition."""
    rows = list(scores)
    costs = {arm: (found.mean("usd"), found.mean("tokens")) for arm, found in expenses.items()}
    for scorer in scorers:
        places = [place for place, row in enumerate(rows) if row.scorer == scorer.scorer]
        offers = [Offer(rows[place].mean, *costs[rows[place].agent, rows[place].condition]) for place in places]
        for place, found in zip(places, worth(scorer.scale, offers), strict=True):
            rows[place] = attrs.evolve(rows[place], **attrs.asdict(found))
    return tuple(rows)


def _point(scale: Scale, offer: Offer, cost: float | None) -> tuple[float, float] | None:
    """Return a mean, of which more is better, and its cost; `None` if one of them is unknown."""
    if offer.mean is None or cost is None:
        return None
    return (offer.mean if scale.better == "higher" else -offer.mean), cost


def _dominates(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one != other and one[0] >= other[0] and one[1] <= other[1]


def _per(scale: Scale, mean: float | None, cost: float | None) -> float | None:
    return (mean - scale.low) / cost if mean is not None and cost and scale.better == "higher" else None
