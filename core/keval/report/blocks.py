"""The effects of a report in blocks: sure ones and losses first, and what needs no row of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar

import attrs

from keval.findings.effects import Effect
from keval.findings.summary import ArmScore, ScorerScale, Summary
from keval.report.claims import (
    BETTER,
    COULD_SEE,
    DROPPED,
    NEUTRAL_BOUNDS,
    NO_DIFFERENCE,
    NOTHING_SHARED,
    RESTS_ON_OTHERS,
    UNCHANGED,
    WORSE,
    Claim,
    least_seen,
)
from keval.report.totals import lost_scores
from keval.report.words import EXPENSE_UNITS, display_names, number, one_line, signed, with_units

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

_DECIMALS = {"seconds": 2, "tokens": 0, "usd": 4, "tool_calls": 1}
"""How many decimals an expense is told with."""


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
    arms = {summary.run: summary.arms}
    found = []
    for condition, effects in conditions.items():
        claims = claims_of(effects, summary.scorers, arms, lambda effect: effect.agent)
        title = f"{one_line(condition)} against {one_line(effects[0].against.condition)}"
        alone = f", {one_line(effects[0].agent)}" if len(listed) > 1 and len({e.agent for e in effects}) == 1 else ""
        block = block_of(title + alone, claims)
        spent = [each for each in summary.expenses if each.kind == "condition" and each.condition == condition]
        found.append(attrs.evolve(block, remarks=(*block.remarks, *costs(spent, several=len(listed) > 1))))
    for agent, effects in agents.items():
        claims = claims_of(effects, summary.scorers, arms, lambda effect: effect.condition)
        under = {effect.condition for effect in effects}
        alone = f", {one_line(effects[0].condition)}" if len(under) == 1 else ""
        title = f"{one_line(agent)} against {one_line(effects[0].against.agent)}{alone}"
        block = block_of(title, claims)
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


def block_of(title: str, claims: Sequence[Claim]) -> Block:
    """Return a block whose claims have rows if they say something, and share lines if they do not."""
    several = len({claim.label for claim in claims}) > 1
    rows: list[Claim] = []
    shared: dict[str, list[Claim]] = {}
    for claim in claims:
        if not claim.scored:
            continue
        if heading := _heading(claim):
            shared.setdefault(heading, []).append(claim)
        else:
            rows.append(claim)
    # What tells least comes last.
    shared = dict(sorted(shared.items(), key=lambda item: item[0] in (COULD_SEE.says, NOTHING_SHARED.says)))
    remarks = []
    for heading, group in shared.items():
        seen = {least_seen(claim) for claim in group} if heading == COULD_SEE.says else set()
        if len(seen) == 1:
            remarks.append((f"{heading} {seen.pop()} or more", _listed(group, claims, several)))
        else:
            remarks.append((heading, _listed(group, claims, several, least_seen if seen else None)))
    for statement, told in ((RESTS_ON_OTHERS, None), (NEUTRAL_BOUNDS, _neutral), (DROPPED, _dropped)):
        if some := [claim for claim in rows if statement.holds(claim)]:
            remarks.append((statement.says, _listed(some, claims, several, told)))
    return Block(title, tuple(_sorted(rows)), tuple(remarks), several)


def _heading(claim: Claim) -> str | None:
    """Return the heading of the line that a claim shares with others, if it needs no row."""
    unit = f" {claim.scale.unit}" if claim.scale.unit else ""
    for statement in (NOTHING_SHARED, UNCHANGED, NO_DIFFERENCE, COULD_SEE):
        if statement.holds(claim):
            return statement.says.format(f"{claim.margin:.2g}{unit}")
    return None


def _name(claim: Claim) -> str:
    return claim.name


def _neutral(claim: Claim) -> str:
    return claim.neutral_bounds


def _dropped(claim: Claim) -> str:
    return str(claim.effect.dropped)


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


def _sorted(claims: Sequence[Claim]) -> list[Claim]:
    """Return claims with those about one metric together.

    Primary metrics come first, then those with a loss, then by certainty and size.
    """

    def rank(claim: Claim) -> int:
        return 0 if WORSE.holds(claim) else 1 if BETTER.holds(claim) else 2

    def order(group: Sequence[Claim]) -> tuple[bool, int, float]:
        first = min(map(rank, group))
        return group[0].exploratory, first, -max(claim.size for claim in group if rank(claim) == first)

    return [claim for group in sorted(grouped(claims, _name).values(), key=order) for claim in group]


PROPERTIES = "properties of agents, which no answer changes"
"""The heading of what metrics say of agents whatever they answer."""


def property_rows(summary: Summary) -> Iterator[tuple[str, str, str, str]]:
    """Yield what metrics say of agents whatever they answer: metric, agent, value, and how the metric comes to it."""
    names = display_names(entry.scorer for entry in summary.scorers)
    for each in summary.properties:
        yield names[each.scorer], one_line(each.agent), number(each.value), one_line(each.derivation or "")


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
