"""What a run found, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from keval.records.formats import counted, number, signed
from keval.records.scores import Scale, Scorer
from keval_analysis.findings.effects import Effect, better_share
from keval_analysis.findings.formats import EXPENSE_UNITS, expense, interval_of, times_as_much
from keval_analysis.findings.summary import Summary
from keval_report.blocks import grouped
from keval_report.claims import (
    BETTER,
    CANNOT_TELL,
    COULD_SEE,
    EQUIVALENT,
    EXPLORATORY,
    FEW,
    GOT_WORSE,
    IMPROVES,
    INCOMPARABLE,
    INTERIM,
    IS_THAN,
    NEEDED,
    NO_CLEAR_DIFFERENCE,
    NO_DIFFERENCE,
    NO_INTERVAL,
    NOT_CHANGED,
    NOT_DECIDED,
    NOTHING_SHARED,
    ONE_QUESTION,
    SO_FAR,
    TOO_EARLY,
    TOO_FEW,
    UNCHANGED,
    WORSE,
    Claim,
)
from keval_report.contrasts import contrast_sentences
from keval_report.origin import replay_sentences
from keval_report.run_claims import COSTS, HOLDS, SAVES, TAKES, interim_words, looks_words
from keval_report.totals import remark_sentences
from keval_report.words import display_names, joined

_MOST = 3
"""Metrics that one sentence names; the others are counted."""


def sentences(summary: Summary) -> list[str]:
    """Tell what a run found, of what its answers are, and what was lost."""
    return [
        *replay_sentences(summary.replay),
        *findings(summary),
        *remark_sentences(summary),
        *_trials(summary),
    ]


def findings(summary: Summary) -> list[str]:
    """Tell what a run found: per condition what got better, what got worse, what it costs, and what stays open.

    Losses are never left out. Nothing is said of better or worse in a run that is unfinished.
    """
    told = _Told(summary)
    groups = [*_compared(summary.effects)]
    found = [f"{_capital(interim_words(summary))}."] if summary.unfinished and summary.effects else []
    if HOLDS.holds(summary) and summary.effects:
        ended = summary.looking.ended if summary.looking is not None else None
        found.append(f"{_capital('; '.join(filter(None, (ended, looks_words(summary)))))}.")
    found += [sentence for group in groups if group[0].kind != "agent" for sentence in told.effects(group)]
    found += [] if summary.unfinished else contrast_sentences(summary)
    found += told.agents([group for group in groups if group[0].kind == "agent"])
    return found if summary.effects else [*found, *told.arms()]


def _compared(effects: Iterable[Effect]) -> Iterator[list[Effect]]:
    """Yield effects by what is compared: a condition with the baseline, or an agent with the first."""

    def key(effect: Effect) -> tuple[str, str, str]:
        if effect.kind == "condition":
            return effect.kind, effect.condition, effect.against.condition
        return effect.kind, f"{effect.agent}\0{effect.condition}", f"{effect.against.agent}\0{effect.against.run or ''}"

    yield from grouped(effects, key).values()


class _Told:
    """Says effects of one summary: knows its scorers' names and scales, and which labels need to be said."""

    def __init__(self, summary: Summary) -> None:
        self._summary = summary
        self._names = display_names(entry.scorer for entry in summary.scorers)
        self._scales: Mapping[Scorer, Scale] = {entry.scorer: entry.scale for entry in summary.scorers}
        self._agents = {arm.agent for arm in summary.trials} | {effect.agent for effect in summary.effects}

    def effects(self, group: Sequence[Effect]) -> Iterator[str]:
        """Yield the sentences about one condition, or one arm of another run."""
        every = [self._claim(effect) for effect in group]
        decisive = [claim for claim in every if not EXPLORATORY.holds(claim)]
        first = group[0]
        better, worse = (self._grouped(claim for claim in decisive if each.holds(claim)) for each in (BETTER, WORSE))
        if better:
            yield IMPROVES.says.format(subject=_subject(first), metrics=f"{self._list(better)}{_on(better)}")
        for claims in worse.values():
            yield self._loss_of(claims)
        explored = [claim for claim in every if EXPLORATORY.holds(claim)]
        if gains := self._grouped(claim for claim in explored if BETTER.holds(claim)):
            told = IMPROVES.says.format(subject=_subject(first), metrics=f"{self._list(gains)}{_on(gains)}")
            yield f"{_capital(EXPLORATORY.says)}: {told}"
        for claims in self._grouped(claim for claim in explored if WORSE.holds(claim)).values():
            yield f"{_capital(EXPLORATORY.says)}: {self._loss_of(claims)}"
        without = (ONE_QUESTION, NO_INTERVAL, TOO_EARLY)
        few = self._grouped(claim for claim in every if any(each.holds(claim) for each in without))
        if few:
            yield TOO_FEW.says.format(between=_capital(_between(first)), metrics=f"{self._list(few)}{_on(few)}")
        if all(NOTHING_SHARED.holds(claim) for claim in every):
            yield INCOMPARABLE.says.format(between=_capital(_between(first)))
        if so_far := self._grouped(claim for claim in every if INTERIM.holds(claim)):
            yield SO_FAR.says.format(between=_capital(_between(first)), metrics=self._so_far(so_far))
        yield from (f"{_capital(EXPLORATORY.says)}: {told}" for told in self._costs(first))
        undecided = [claim for claim in decisive if CANNOT_TELL.holds(claim)]
        # Of small ones, a sentence tells only if there is nothing larger to tell of.
        large = [claim for claim in undecided if not COULD_SEE.holds(claim)]
        if told_open := large or ([] if better or worse else undecided):
            yield NOT_DECIDED.says.format(whether=_whether(first), metrics=self._open(self._grouped(told_open)))
        same = [claim for claim in decisive if NO_DIFFERENCE.holds(claim)]
        for margin, claims in grouped(same, lambda claim: claim.margin).items():
            metrics = joined(self._few(self._grouped(claims)))
            yield EQUIVALENT.says.format(between=_capital(_between(first)), margin=margin, metrics=metrics)
        flat = [claim for claim in every if UNCHANGED.holds(claim)]
        if flat and len(flat) == len([claim for claim in every if not NOTHING_SHARED.holds(claim)]):
            unmoved = self._grouped(flat)
            yield NOT_CHANGED.says.format(
                between=_capital(_between(first)), metrics=joined(self._few(unmoved)), questions=_span(unmoved)
            )

    def _loss_of(self, claims: Sequence[Claim]) -> str:
        effects = [claim.effect for claim in claims]
        return GOT_WORSE.says.format(
            metric=_capital(self._names[effects[0].scorer]),
            changed=_worse(effects[0]),
            amounts=", ".join(map(self._loss, effects)),
        )

    def _claim(self, effect: Effect) -> Claim:
        return Claim(effect, self._names[effect.scorer], "", self._scales[effect.scorer])

    def _so_far(self, metrics: Mapping[Scorer, Sequence[Claim]]) -> str:
        parts = [
            f"{self._names[scorer]} "
            + ", ".join(f"{self._gain(claim.effect)} {interval_of(claim.effect)}".rstrip() for claim in claims)
            for scorer, claims in [*metrics.items()][:_MOST]
        ]
        return "; ".join([*parts, *_more(len(metrics))])

    def agents(self, groups: Iterable[Sequence[Effect]]) -> Iterator[str]:
        """Yield what agents are surely better and worse in than the first, in one sentence where conditions agree."""
        under: dict[tuple[str, str, str], list[str]] = {}
        for group in groups:
            claims = [self._claim(effect) for effect in group]
            if not any(INTERIM.holds(claim) for claim in claims):
                key = (group[0].agent, group[0].against.agent, self._traits(claims))
                under.setdefault(key, []).append(group[0].condition)
        for (agent, against, traits), conditions in under.items():
            statement = IS_THAN if traits else NO_CLEAR_DIFFERENCE
            yield statement.says.format(agent=agent, against=against, traits=traits, where=", ".join(conditions))

    def _traits(self, claims: Sequence[Claim]) -> str:
        """Return in what an agent is better and worse; an empty text if nothing is sure."""
        parts = []
        for statement in (BETTER, WORSE):
            metrics = self._grouped(claim for claim in claims if statement.holds(claim))
            if traits := [self._trait(claim) for found in metrics.values() for claim in found]:
                parts.append(f"{statement.says} in {joined(traits)}")
        return " and ".join(parts)

    def arms(self) -> Iterator[str]:
        """Yield the means of a run in which nothing is compared."""
        properties = {each.scorer for each in self._summary.properties}
        for (agent, condition), group in groupby(self._summary.arms, key=lambda arm: (arm.agent, arm.condition)):
            known = [arm for arm in group if arm.mean is not None and arm.scorer not in properties]
            means = [
                f"{self._names[arm.scorer]} {number(arm.mean)} ({counted(arm.n, 'question')})" for arm in known[:_MOST]
            ]
            more = [f"{len(known) - _MOST} more"] if len(known) > _MOST else []
            if means:
                yield f"{agent} with {condition}: {joined([*means, *more])}."

    def _grouped(self, claims: Iterable[Claim]) -> dict[Scorer, list[Claim]]:
        """Return claims by scorer, the largest for its scale first."""
        found = grouped(claims, lambda claim: claim.effect.scorer)
        return dict(sorted(found.items(), key=lambda item: -max(map(_size, item[1]))))

    def _list(self, metrics: Mapping[Scorer, Sequence[Claim]]) -> str:
        parts = [
            f"{self._names[scorer]} by {', '.join(self._gain(claim.effect) for claim in claims)}"
            for scorer, claims in [*metrics.items()][:_MOST]
        ]
        return "; ".join([*parts, *_more(len(metrics))])

    def _gain(self, effect: Effect) -> str:
        return f"{signed(effect.difference)}{self._unit(effect)}{_in_brackets(self._agent(effect))}"

    def _loss(self, effect: Effect) -> str:
        notes = [*self._agent(effect), counted(effect.n, "question")]
        return f"{number(abs(effect.difference or 0.0))}{self._unit(effect)}{_in_brackets(notes)}"

    def _trait(self, claim: Claim) -> str:
        effect, mark = claim.effect, f", {EXPLORATORY.says}" if EXPLORATORY.holds(claim) else ""
        return f"{self._names[effect.scorer]} ({signed(effect.difference)}{self._unit(effect)}{mark})"

    def _agent(self, effect: Effect) -> list[str]:
        return [effect.agent] if effect.kind == "condition" and len(self._agents) > 1 else []

    def _unit(self, effect: Effect) -> str:
        unit = self._scales[effect.scorer].unit
        return f" {unit}" if unit else ""

    def _open(self, metrics: Mapping[Scorer, Sequence[Claim]]) -> str:
        parts = []
        for scorer, claims in [*metrics.items()][:_MOST]:
            effects = [claim.effect for claim in claims]
            of_some = effects[0].kind == "condition" and len(effects) < len(self._agents)
            notes = [effect.agent for effect in effects] if of_some else []
            # Of several agents, the range is from the least to the most that any of them needs.
            needed = [claim.needed for claim in claims if claim.needed is not None and NEEDED.holds(claim)]
            if needed:
                ends = zip(*needed, strict=True)
                most = (pick(end) for pick, end in zip((min, max), ends, strict=True))
                notes.append(NEEDED.says.format(*most, margin=claims[0].margin))
            parts.append(f"{self._names[scorer]}{_in_brackets(notes)}")
        return joined([*parts, *_more(len(metrics))], last="or")

    def _few(self, scorers: Iterable[Scorer]) -> list[str]:
        names = [self._names[scorer] for scorer in dict.fromkeys(scorers)]
        return [*names[:_MOST], f"{len(names) - _MOST} more"] if len(names) > _MOST else names

    def _costs(self, like: Effect) -> Iterator[str]:
        """Yield what the condition costs more, what it saves, and how many times as much it takes."""
        if self._summary.unfinished:
            return
        alike = [e for e in self._summary.expenses if (e.kind, e.condition) == (like.kind, like.condition)]
        for statement in (COSTS, SAVES):
            amounts = [
                _amount([abs(effect.difference or 0.0) for effect in found], name)
                for name in EXPENSE_UNITS
                if (found := [each for each in alike if each.metric == name and statement.holds(each)])
            ]
            if amounts:
                yield statement.says.format(who=like.condition, amounts=joined(amounts))
        ratios = [
            f"{times_as_much(each.metric, each.ratio)}{_in_brackets(self._agent(each))}"
            for name in EXPENSE_UNITS
            for each in alike
            if each.metric == name and each.ratio is not None and TAKES.holds(each)
        ]
        if ratios:
            yield TAKES.says.format(who=like.condition, ratios=joined(ratios))


def _size(claim: Claim) -> float:
    share = better_share(claim.effect.difference or 0.0, claim.scale)
    return abs(share) if share is not None else 0.0


def _subject(effect: Effect) -> str:
    """Return the beginning of a sentence on what got better."""
    if effect.kind == "condition":
        return f"{effect.condition} improves"
    return f"Since run {effect.against.run}, {effect.agent} with {effect.condition} improved:"


def _worse(effect: Effect) -> str:
    """Return the middle of a sentence on what got worse."""
    if effect.kind == "condition":
        return f"got worse with {effect.condition}"
    return f"got worse since run {effect.against.run}, for {effect.agent} with {effect.condition},"


def _between(effect: Effect) -> str:
    """Return what is compared."""
    if effect.kind == "condition":
        return f"with {effect.condition} against {effect.against.condition}"
    return f"since run {effect.against.run}, for {effect.agent} with {effect.condition}"


def _whether(effect: Effect) -> str:
    """Return the middle of a sentence on what stays open."""
    if effect.kind == "condition":
        return f"whether {effect.condition} changes"
    return f"whether {effect.agent} with {effect.condition} changed since run {effect.against.run} in"


def _on(metrics: Mapping[Scorer, Sequence[Claim]]) -> str:
    """Return on how many questions effects are, if these are few."""
    few = any(claim.effect.n < FEW for claims in metrics.values() for claim in claims)
    return f", on {_span(metrics)}" if few else ""


def _span(metrics: Mapping[Scorer, Sequence[Claim]]) -> str:
    """Return on how many questions effects are: from the fewest to the most."""
    counts = sorted({claim.effect.n for claims in metrics.values() for claim in claims})
    most = counted(counts[-1], "question")
    return most if len(counts) == 1 else f"{counts[0]:,} to {most}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _amount(sizes: Sequence[float], name: str) -> str:
    """Return an amount, or the span of several agents' amounts."""

    least, most = expense(name, min(sizes)), expense(name, max(sizes))
    return most if least == most else f"{least.removesuffix(f' {EXPENSE_UNITS[name]}')} to {most}"


def _trials(summary: Summary) -> Iterator[str]:
    """Yield what was lost: failed trials, and those that never ran."""
    done, failed = sum(arm.trials for arm in summary.trials), sum(arm.failed for arm in summary.trials)
    if failed:
        yield f"{failed:,} of {done:,} trials failed."
    if done < summary.planned:
        why = f": {summary.stopped}" if summary.stopped else ""
        yield f"{summary.planned - done:,} of {summary.planned:,} planned trials were not run{why}."


def _more(metrics: int) -> list[str]:
    """Return how many metrics are not named."""
    left = metrics - _MOST
    return [] if left < 1 else [counted(left, "more metric")]


def _in_brackets(notes: Sequence[str]) -> str:
    return f" ({', '.join(notes)})" if notes else ""
