"""What the report claims: effects in blocks, sure ones and losses first, and what needs no row of its own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar

import attrs

from keval.records.effects import SMALL_SHARE, Effect
from keval.records.scores import Scale, Scorer, named_band
from keval.records.summary import ArmScore, ScorerScale, Summary
from keval.report.totals import lost_scores
from keval.report.words import EXPENSE_UNITS, display_names, number, one_line, signed, with_units

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

_RANKS = {"worse": 0, "better": 1}
_BY_NO_CONDITION = "not decided by a condition"
_DUST = 1e-9
"""Less than this is rounding: means of equal scores may differ by as much."""
_NOTHING = "no question has a score in both arms"
_DROPPED = "questions left out, because only one arm has a score for them"
_UNSEEN = "no difference seen; this run could have seen"
_BY_AGENT = "by the agent alone, the same on every question"
_DECIMALS = {"seconds": 2, "tokens": 0, "usd": 4, "tool_calls": 1}
"""How many decimals an expense is told with."""


@attrs.frozen
class Claim:
    """An effect with all that its row shows: the metric's name, the label of what it is for, and its scale.

    `lost` tells in words which scores of the two arms are lost, `scored` whether any of them has a score.
    """

    effect: Effect
    name: str
    label: str
    scale: Scale
    lost: str = ""
    scored: bool = True

    @property
    def size(self) -> float:
        """The difference as a share of the scale, or of the larger mean where the scale has no end."""
        effect = self.effect
        if effect.difference is None:
            return 0.0
        if not math.isinf(self.scale.high):
            return abs(effect.difference) / (self.scale.high - self.scale.low)
        largest = max(abs(effect.mean or 0.0), abs(effect.against_mean or 0.0))
        return abs(effect.difference) / largest if largest else 0.0

    @property
    def band(self) -> str | None:
        """The name of the band that the arm's mean is in, if the other arm's is in another one."""
        mean, against = self.effect.mean, self.effect.against_mean
        if mean is None or against is None:
            return None
        now = named_band(self.scale.bands, mean)
        return now if now != named_band(self.scale.bands, against) else None

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0, and the p that is adjusted to the number of effects undoes that."""
        effect = self.effect
        if effect.verdict != "unclear" or effect.p_adjusted is None or effect.ci_low is None or effect.ci_high is None:
            return False
        return effect.ci_low > 0 or effect.ci_high < 0

    @property
    def needed(self) -> int | None:
        """How many questions would decide a claim that is undecided; `None` if that is no more than it has."""
        effect = self.effect
        undecided = effect.verdict == "unclear" and effect.needed is not None and effect.needed > effect.n
        return effect.needed if undecided else None


@attrs.frozen
class Block:
    """Claims with one heading.

    `remarks` are what shares a line: a heading and what it is true of. `labelled` says that there are several labels,
    so that the title does not say which one a claim is for, and `about` what labels name: an `agent`, a `condition`, or
    the tool that an arm is `without`.
    """

    title: str
    claims: tuple[Claim, ...]
    remarks: tuple[tuple[str, str], ...]
    labelled: bool
    about: Literal["agent", "condition", "without"] = "agent"


def blocks(summary: Summary) -> tuple[Block, ...]:
    """Return the blocks of a run: each condition against the baseline, then each agent against the first."""
    conditions = grouped((e for e in summary.effects if e.kind == "condition"), lambda effect: effect.condition)
    agents = grouped((e for e in summary.effects if e.kind == "agent"), lambda effect: effect.agent)
    listed = list(dict.fromkeys(entry.agent for entry in summary.trials))
    fixed, arms = _fixed(summary.arms), {summary.run: summary.arms}
    found = []
    for condition, effects in conditions.items():
        claims = claims_of(effects, summary.scorers, arms, lambda effect: effect.agent)
        title = f"{one_line(condition)} against {one_line(effects[0].against.condition)}"
        alone = f", {one_line(effects[0].agent)}" if len(listed) > 1 and len({e.agent for e in effects}) == 1 else ""
        block = block_of(title + alone, claims, dict.fromkeys(fixed, _BY_NO_CONDITION))
        spent = [each for each in summary.expenses if each.kind == "condition" and each.condition == condition]
        found.append(attrs.evolve(block, remarks=(*block.remarks, *costs(spent, several=len(listed) > 1))))
    for agent, effects in agents.items():
        claims = claims_of(effects, summary.scorers, arms, lambda effect: effect.condition)
        under = {effect.condition for effect in effects}
        alone = f", {one_line(effects[0].condition)}" if len(under) == 1 else ""
        title = f"{one_line(agent)} against {one_line(effects[0].against.agent)}{alone}"
        block = block_of(title, claims, dict.fromkeys(fixed, _BY_AGENT))
        found.append(attrs.evolve(block, about="condition"))
    return tuple(found)


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return items by a key of theirs, in the order in which each key comes first."""
    found: dict[K, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def claims_of(
    effects: Iterable[Effect],
    scorers: Iterable[ScorerScale],
    arms: Mapping[str, Sequence[ArmScore]],
    label: Callable[[Effect], str],
) -> list[Claim]:
    """Return effects as claims. `arms` has the scores of each run that they are of, by the run's id."""
    scales = {entry.scorer: entry.scale for entry in scorers}
    names = display_names(scales)
    known = {(run, entry.agent, entry.condition, entry.scorer): entry for run, of in arms.items() for entry in of}

    def claim(effect: Effect) -> Claim:
        against, scale = effect.against, scales[effect.scorer]
        sides = ((effect.run, effect.agent, effect.condition), (against.run, against.agent, against.condition))
        of = [entry for run, *arm in sides if run and (entry := known.get((run, arm[0], arm[1], effect.scorer)))]
        name = with_units(names[effect.scorer], scale)
        return Claim(effect, name, one_line(label(effect)), scale, lost_scores(of), any(entry.n for entry in of))

    return [claim(effect) for effect in effects]


def block_of(title: str, claims: Sequence[Claim], fixed: Mapping[Scorer, str]) -> Block:
    """Return a block whose claims have rows if they say something, and share lines if they do not.

    `fixed` has the headings of the lines for metrics that what differs cannot change.
    """
    several = len({claim.label for claim in claims}) > 1
    rows: list[Claim] = []
    shared: dict[str, list[Claim]] = {}
    small: list[Claim] = []
    for claim in claims:
        heading = fixed.get(claim.effect.scorer) or _heading(claim)
        if not claim.scored:
            continue
        if heading:
            shared.setdefault(heading, []).append(claim)
        elif claim.effect.verdict == "unclear" and claim.effect.mde is not None and claim.size < SMALL_SHARE:
            small.append(claim)
        else:
            rows.append(claim)
    shared = dict(sorted(shared.items(), key=lambda item: item[0] == _NOTHING))
    told = {_BY_AGENT: _means}
    remarks = [(heading, _listed(group, claims, several, told.get(heading))) for heading, group in shared.items()]
    if len(seen := {_could_see(claim) for claim in small}) == 1:
        heading = f"{_UNSEEN} {seen.pop()} or more"
        remarks.append((heading, _listed(small, claims, several)))
    elif small:
        remarks.append((f"{_UNSEEN} as much or more", _listed(small, claims, several, _could_see)))
    if dropped := [claim for claim in rows if claim.effect.dropped]:
        remarks.append((_DROPPED, _listed(dropped, claims, several, lambda claim: str(claim.effect.dropped))))
    return Block(title, tuple(_sorted(rows)), tuple(remarks), several)


def _heading(claim: Claim) -> str | None:
    """Return the heading of the line that a claim shares with others, if it is not about an undecided difference."""
    effect, scale = claim.effect, claim.scale
    if effect.difference is None:
        return _NOTHING
    if effect.verdict == "same":
        unit = f" {scale.unit}" if scale.unit else ""
        return f"no difference as large as {SMALL_SHARE * (scale.high - scale.low):.2g}{unit}"
    if abs(effect.difference) < _DUST and (effect.n == 1 or (effect.stderr is not None and effect.stderr < _DUST)):
        return "no difference on any question"
    return None


def _name(claim: Claim) -> str:
    return claim.name


def _could_see(claim: Claim) -> str:
    unit = f" {claim.scale.unit}" if claim.scale.unit else ""
    return f"{number(claim.effect.mde or 0.0)}{unit}"


def _listed(
    group: Sequence[Claim], every: Sequence[Claim], several: bool, told: Callable[[Claim], str] | None = None
) -> str:
    """Return the names of metrics, each with its values and the labels that it is meant for, unless that is all."""
    whole = Counter(claim.name for claim in every)
    parts = []
    for name, claims in grouped(group, _name).items():
        values = dict.fromkeys(told(claim) for claim in claims) if told else {}
        if told is None or len(values) == 1:
            of = f" ({', '.join(claim.label for claim in claims)})" if several and len(claims) < whole[name] else ""
            parts.append(f"{name} {next(iter(values), '')}".rstrip() + of)
        else:
            parts.append(f"{name} {', '.join(f'{told(claim)} ({claim.label})' for claim in claims)}")
    return "; ".join(parts) if any(", " in part for part in parts) else ", ".join(parts)


def _means(claim: Claim) -> str:
    effect = claim.effect
    if effect.mean is None or effect.against_mean is None:
        return ""
    if effect.mean == effect.against_mean:
        return number(effect.mean)
    return f"{number(effect.against_mean)} → {number(effect.mean)}"


def _sorted(claims: Sequence[Claim]) -> list[Claim]:
    """Return claims with those about one metric together: metrics with a loss first, then by certainty and size."""

    def order(group: Sequence[Claim]) -> tuple[int, float]:
        rank = min(_RANKS.get(claim.effect.verdict, 2) for claim in group)
        return rank, -max(claim.size for claim in group if _RANKS.get(claim.effect.verdict, 2) == rank)

    return [claim for group in sorted(grouped(claims, _name).values(), key=order) for claim in group]


def _fixed(arms: Iterable[ArmScore]) -> frozenset[Scorer]:
    """Return the metrics that each agent has one value of on every question under all conditions, not all the same."""
    by_scorer: dict[Scorer, dict[str, list[ArmScore]]] = {}
    for arm in arms:
        by_scorer.setdefault(arm.scorer, {}).setdefault(arm.agent, []).append(arm)

    def constant(found: Sequence[ArmScore]) -> bool:
        known = [arm.mean for arm in found if arm.mean is not None and arm.n > 1 and (arm.stderr or 0.0) < _DUST]
        return len(known) == len(found) > 1 and max(known) - min(known) < _DUST

    return frozenset(
        scorer
        for scorer, agents in by_scorer.items()
        if all(map(constant, agents.values()))
        and len({round(found[0].mean or 0.0, 9) for found in agents.values()}) > 1
    )


def costs(expenses: Iterable[Effect], *, several: bool) -> Iterator[tuple[str, str]]:
    """Yield as a remark what a trial costs more, where that is known; with the names of agents if there are several."""
    by_agent: dict[str, list[str]] = {}
    for effect in expenses:
        if effect.difference:
            places, unit = _DECIMALS[effect.metric], EXPENSE_UNITS[effect.metric]
            told = f"{signed(effect.difference, places)} {unit}"
            if effect.ci_low is not None and effect.ci_high is not None:
                told += f" [{signed(effect.ci_low, places)}, {signed(effect.ci_high, places)}]"
            by_agent.setdefault(effect.agent, []).append(told)
    if by_agent:
        whose = {agent: f"{one_line(agent)} " if several else "" for agent in by_agent}
        yield (
            "change in cost per trial",
            "; ".join(f"{whose[agent]}{', '.join(told)}" for agent, told in by_agent.items()),
        )
