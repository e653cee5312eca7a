"""The effects of a report in blocks: sure ones and losses first, and what needs no row of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar

import attrs

from keval.records.formats import number, percent, short_number
from keval_analysis.findings.effects import Effect
from keval_analysis.findings.formats import expense, expense_interval, percent_interval, times_as_much
from keval_analysis.findings.reviews import CorrectedEffect
from keval_analysis.findings.summary import ArmScore, ScorerScale, Summary
from keval_report import claims as say
from keval_report.claims import Claim, Level, Statement, least_seen, said
from keval_report.run_claims import COSTS, SAVES, TAKES
from keval_report.totals import lost_scores
from keval_report.words import display_names, one_line, with_units

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

_MOST_OPEN = 3
"""Rows of a first report for what it cannot tell, where a block has nothing that is decided."""


@attrs.frozen
class Block:
    """Claims with one heading.

    `remarks` are what shares a line: a heading and what it is true of. `labelled` says that there are several labels,
    so that the title does not say which one a claim is for, and `about` what labels name: an `agent`, a `condition`,
    an `arm` of both, or the part that an arm is `without`. At the level `first` it has rows for what is decided, and
    says the rest in lines.
    """

    title: str
    claims: tuple[Claim, ...]
    remarks: tuple[tuple[str, str], ...]
    labelled: bool
    about: Literal["agent", "arm", "condition", "without"] = "agent"
    level: Level = "explained"


def blocks(summary: Summary, level: Level = "explained") -> tuple[Block, ...]:
    """Return the blocks of a run: each condition against the baseline, then agents against each other."""
    conditions = grouped((e for e in summary.effects if e.kind == "condition"), lambda effect: effect.condition)
    agents = grouped((e for e in summary.effects if e.kind == "agent"), lambda e: (e.agent, e.against.agent))
    of_conditions = (_of_one(summary, effects, level) for effects in conditions.values())
    return (
        *(_with_win_rates(block, summary, *pair) for block, *pair in of_conditions),
        *(_of_one(summary, effects, level)[0] for effects in agents.values()),
    )


def _of_one(summary: Summary, effects: Sequence[Effect], level: Level) -> tuple[Block, str, str]:
    """Return the block of one condition by agents, or of one agent by conditions, its name, and that of the other."""
    kind = effects[0].kind
    within: Literal["agent", "condition"] = "condition" if kind == "agent" else "agent"
    name, against = getattr(effects[0], kind), getattr(effects[0].against, kind)
    under = {getattr(effect, within) for effect in effects}
    several = len({entry.agent for entry in summary.trials} if kind == "condition" else under) > 1
    alone = f", {one_line(min(under))}" if len(under) == 1 and (several or kind == "agent") else ""
    labelled = summary.reviews.corrected if summary.reviews else ()
    arms = {summary.run: summary.arms}
    claims = claims_of(effects, summary.scorers, arms, lambda effect: str(getattr(effect, within)), labelled)
    same = (kind, name, against)
    spent = [e for e in summary.expenses if (e.kind, getattr(e, kind), getattr(e.against, kind)) == same]
    costs = ((one_line(getattr(each, within)) if several else "", each) for each in spent)
    block = with_costs(block_of(f"{one_line(name)} against {one_line(against)}{alone}", claims, level), costs)
    return attrs.evolve(block, about=within), name, against


def _with_win_rates(block: Block, summary: Summary, of_block: str, baseline: str) -> Block:
    """Return a block with how often the answers of its condition were preferred, or those of the baseline to them."""
    told: list[tuple[str, str]] = []
    names = display_names(each.scorer for each in summary.scorers)
    compared = ((each, (each.condition, each.against)) for each in summary.win_rates)
    rates = [each for each, pair in compared if pair[0] == of_block or pair == (baseline, of_block)]
    arms = grouped(rates, lambda each: (each.scorer, each.condition, each.against))
    for (scorer, condition, against), of in arms.items():
        whose = f" of {one_line(condition)}" if condition == baseline else ""
        over = "" if against == baseline else f" over {one_line(against)}"
        parts = []
        for each in of:
            share = f"{percent(each.rate)} {percent_interval(each.ci_low, each.ci_high)}".rstrip()
            label = f"{one_line(each.agent)} " if block.labelled else ""
            parts.append(f"{label}{share}, {each.wins:,} won, {each.ties:,} tied, {each.losses:,} lost, n={each.n}")
        told.append((f"win rate{whose}{over}, {names[scorer]}", "; ".join(parts)))
    return attrs.evolve(block, remarks=(*block.remarks, *told))


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
    corrected: Iterable[CorrectedEffect] = (),
) -> list[Claim]:
    """Return effects as claims. `arms` has the scores of each run that they are of, by the run's id."""
    by_labels = {(each.agent, each.condition, each.against, each.scorer): each for each in corrected}
    scales = {entry.scorer: entry.scale for entry in scorers}
    names = display_names(scales)
    known = {(run, entry.agent, entry.condition, entry.scorer): entry for run, of in arms.items() for entry in of}

    def claim(effect: Effect) -> Claim:
        against, scale = effect.against, scales[effect.scorer]
        sides = ((effect.run, effect.agent, effect.condition), (against.run, against.agent, against.condition))
        of = [entry for run, *arm in sides if run and (entry := known.get((run, arm[0], arm[1], effect.scorer)))]
        name = with_units(names[effect.scorer], scale)
        found = by_labels.get((effect.agent, effect.condition, against, effect.scorer))
        return Claim(effect, name, one_line(label(effect)), scale, lost_scores(of), any(entry.n for entry in of), found)

    return [claim(effect) for effect in effects]


def block_of(title: str, claims: Sequence[Claim], level: Level = "explained") -> Block:
    """Return a block whose claims have rows if they say something at a level, and share lines if they do not."""
    several = len({claim.label for claim in claims}) > 1
    scored = _sorted([claim for claim in claims if claim.scored])
    rows = [claim for claim in scored if _heading(claim, "explained") is None]
    if level == "first":
        # What has an interval comes first, as it says more.
        undecided = sorted(rows, key=lambda claim: claim.effect.ci_low is None)
        rows = [claim for claim in rows if claim.level == level] or undecided[:_MOST_OPEN]
    # By identity: claims hold mappings, so that they have no hash.
    chosen = set(map(id, rows))
    shared: dict[tuple[int, Statement[Claim], str], list[Claim]] = {}
    for claim in claims:
        # At first, what has a row without a verdict is told with the others of its reason, too.
        if claim.scored and (id(claim) not in chosen or (level == "first" and claim.is_open)):
            shared.setdefault(_heading(claim, level) or (-1, say.CANNOT_TELL, say.CANNOT_TELL.says), []).append(claim)
    if len(equal := [heading for heading in shared if heading[1] is say.UNCHANGED]) > 1:
        # Of different numbers of questions: they share a line, in which each has its number.
        shared[equal[0][0], say.UNCHANGED, _EQUAL] = [claim for heading in equal for claim in shared.pop(heading)]
    headings = sorted(shared, key=lambda heading: (heading[0], heading[2]))
    remarks = [_remark(*heading[1:], shared[heading], claims, several) for heading in headings]
    for statement, told in (
        (say.RESTS_ON_OTHERS, _nothing),
        (say.NEUTRAL_BOUNDS, lambda claim: claim.neutral_bounds),
        (say.DROPPED, lambda claim: str(claim.effect.dropped)),
    ):
        if level == statement.level and (some := [claim for claim in rows if statement.holds(claim)]):
            remarks.append((statement.says, _listed(some, claims, several, told)))
    if kept := [claim for claim in rows if claim.without_lost]:
        remarks.append((say.WITHOUT_LOST.says, _listed(kept, claims, several, lambda claim: claim.without_lost)))
    return Block(title, tuple(rows), tuple(remarks), several, level=level)


_SHARED: Mapping[Level, Sequence[Statement[Claim]]] = {
    "first": (
        *(say.MORE_QUESTIONS, say.AMONG_MANY, say.FEW_QUESTIONS, say.ONE_SOURCE, say.SMALLER, say.HANGS_ON_LOST),
        *(say.NO_DIFFERENCE, say.UNCHANGED, say.NOT_SHARED),
    ),
    "explained": (say.NO_DIFFERENCE, say.UNCHANGED, say.COULD_SEE, say.NOTHING_SHARED),
}
"""What claims without a row share a line for, at each level; what tells least comes last."""
_EQUAL = say.UNCHANGED.says.format(questions="all questions")


def _heading(claim: Claim, level: Level) -> tuple[int, Statement[Claim], str] | None:
    """Return the statement that a claim shares a line for with others, if it needs no row, and what it says.

    Before them comes the place of the line.
    """
    if say.JUDGE_COULD_DECIDE.holds(claim):
        return None
    # Where nothing is shared, and what is too small to see, says more of a claim than the reasons beside it.
    for place, statement in reversed([*enumerate(_SHARED[level])]):
        if statement.holds(claim):
            return place, statement, said(statement, claim)
    return None


def _remark(
    statement: Statement[Claim], heading: str, group: Sequence[Claim], every: Sequence[Claim], several: bool
) -> tuple[str, str]:
    """Return a line of claims, each with the figure that its heading is about."""
    if statement is say.COULD_SEE and len(seen := set(map(least_seen, group))) == 1:
        return f"{heading} {seen.pop()} or more", _listed(group, every, several)
    if heading == _EQUAL:
        return heading, _listed(group, every, several, lambda claim: f"{claim.effect.n:,}")
    spans = {name: _span(statement, claims) for name, claims in grouped(group, _name).items()}
    told = least_seen if statement is say.COULD_SEE else (lambda claim: spans[claim.name])
    return heading, _listed(group, every, several, told)


def _span(statement: Statement[Claim], claims: Sequence[Claim]) -> str:
    """Return the figure that a statement is about, from the least to the most of some claims; empty if it has none."""
    if statement is say.SMALLER:
        seen = sorted(claims, key=lambda claim: claim.effect.mde or 0.0)
        return " to ".join(dict.fromkeys((least_seen(seen[0]), least_seen(seen[-1]))))
    if statement is say.FEW_QUESTIONS:
        counts = [(claim.effect.n, claim.effect.n) for claim in claims]
    elif statement is say.MORE_QUESTIONS:
        counts = [claim.needed for claim in claims if claim.needed is not None]
    else:
        return ""
    ends = zip((min, max), zip(*counts, strict=True), strict=True)
    return " to ".join(dict.fromkeys(f"{pick(end):,}" for pick, end in ends))


def _name(claim: Claim) -> str:
    return claim.name


def _nothing(claim: Claim) -> str:
    return ""


def _listed(
    group: Sequence[Claim], every: Sequence[Claim], several: bool, told: Callable[[Claim], str] = _nothing
) -> str:
    """Return the names of metrics, each with its values and the labels that it is meant for, unless that is all.

    Metrics with one value, or none, that are meant for the same labels share them.
    """
    whole = Counter(claim.name for claim in every)
    parts: dict[str, list[str]] = {}
    for name, claims in grouped(group, _name).items():
        if len(values := dict.fromkeys(map(told, claims))) > 1:
            parts.setdefault("", []).append(f"{name} {', '.join(f'{told(each)} ({each.label})' for each in claims)}")
        else:
            of = f" ({', '.join(claim.label for claim in claims)})" if several and len(claims) < whole[name] else ""
            parts.setdefault(of, []).append(f"{name} {next(iter(values))}".rstrip())
    # A part with commas of its own needs another sign between it and the next.
    gap = "; " if any(", " in part for part in parts.get("", ())) else ", "
    lists = [gap.join(names) + of for of, names in sorted(parts.items(), key=lambda item: item[0] != "")]
    return "; ".join(lists)


def _sorted(claims: Sequence[Claim]) -> list[Claim]:
    """Return claims with those about one metric together.

    Primary metrics come first, then those with a loss, then by certainty and size.
    """

    def rank(claim: Claim) -> int:
        return 0 if say.WORSE.holds(claim) else 1 if say.BETTER.holds(claim) else 2

    def order(group: Sequence[Claim]) -> tuple[bool, int, float]:
        first = min(map(rank, group))
        return say.EXPLORATORY.holds(group[0]), first, -max(claim.size for claim in group if rank(claim) == first)

    return [claim for group in sorted(grouped(claims, _name).values(), key=order) for claim in group]


PROPERTIES = "properties of agents, which no answer changes"
"""The heading of what metrics say of agents whatever they answer."""


def property_rows(summary: Summary) -> Iterator[tuple[str, str, str, str]]:
    """Yield what metrics say of agents whatever they answer: metric, agent, value, and how the metric comes to it."""
    names = display_names(entry.scorer for entry in summary.scorers)
    for each in summary.properties:
        yield names[each.scorer], one_line(each.agent), number(each.value), one_line(each.derivation or "")


def with_costs(block: Block, expenses: Iterable[tuple[str, Effect]]) -> Block:
    """Return a block with what an answer takes more, each effect with the label that it is told for, or none.

    At the level `first` it says only what is sure.
    """
    by_label: dict[str, list[str]] = {}
    explained = block.level == "explained"
    for label, effect in expenses:
        told = []
        if effect.difference and (explained or COSTS.holds(effect) or SAVES.holds(effect)):
            told.append(expense(effect.metric, effect.difference, signs=True))
            if explained:
                told[0] = f"{told[0]} {expense_interval(effect.metric, effect.ci_low, effect.ci_high)}".rstrip()
        if effect.ratio is not None and (explained or TAKES.holds(effect)):
            if told:
                told[0] += f" (× {short_number(effect.ratio.value, 2)})"
            if explained or not told:
                told.append(times_as_much(effect.metric, effect.ratio))
        if told:
            by_label.setdefault(label, []).extend(told)
    if not by_label:
        return block
    every = "; ".join(f"{label} {', '.join(amounts)}".lstrip() for label, amounts in by_label.items())
    return attrs.evolve(block, remarks=(*block.remarks, (f"cost of an answer ({say.EXPLORATORY.says})", every)))
