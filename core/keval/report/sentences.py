"""What a run found, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from keval.records.effects import SMALL_SHARE, Effect, better_share, is_flat
from keval.records.scores import Scale, Scorer
from keval.records.summary import Summary
from keval.report.claims import grouped
from keval.report.contrasts import contrast_sentences
from keval.report.terminal.overview import replay_sentences
from keval.report.totals import dropped_sentences
from keval.report.words import EXPENSE_UNITS, counted, display_names, joined, number, signed

_MOST = 3
"""Metrics that one sentence names; the others are counted."""
_FEW = 10
"""Questions below which their number stands beside every figure."""


def sentences(summary: Summary) -> list[str]:
    """Tell what a run found: per condition what got better, what got worse, what it costs, and what stays open.

    Losses are never left out. Nothing is said of better or worse without an interval.
    """
    told = _Told(summary)
    groups = [*_compared(summary.effects)]
    found = [sentence for group in groups if group[0].kind != "agent" for sentence in told.effects(group)]
    found += contrast_sentences(summary)
    found += told.agents([group for group in groups if group[0].kind == "agent"])
    if not summary.effects:
        found += told.arms()
    return [*replay_sentences(summary.replay), *found, *dropped_sentences(summary), *_trials(summary)]


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
        known = [effect for effect in group if effect.difference is not None]
        differing = [effect for effect in known if not is_flat(effect)]
        small = [e for e in differing if e.verdict == "unclear" and self._size(e) < SMALL_SHARE]
        open_ones = [effect for effect in differing if effect not in small]
        by = {
            verdict: self._grouped(effect for effect in open_ones if effect.verdict == verdict)
            for verdict in ("better", "worse", "unclear", "same", "unknown")
        }
        first = group[0]
        if by["better"]:
            yield f"{_subject(first)} {self._list(by['better'])}{_on(by['better'])}."
        for scorer, effects in by["worse"].items():
            allowance = ", ".join(self._loss(effect) for effect in effects)
            yield f"{_capital(self._names[scorer])} {_worse(first)} by {allowance}."
        if by["unknown"]:
            listed = f"{self._list(by['unknown'])}{_on(by['unknown'])}"
            few = all(effect.n < 2 for effects in by["unknown"].values() for effect in effects)
            why = "too few questions for an interval" if few else "the interval is unknown"
            yield f"{_capital(_between(first))}: {listed}; {why}."
        if not known:
            why = "no comparison is possible, because no question has a score in both arms"
            yield f"{_capital(_between(first))}: {why}."
        yield from self._costs(first, "It" if by["better"] else first.condition)
        if by["unclear"]:
            yield f"This run does not decide {_whether(first)} {self._open(by['unclear'])}."
        if small and not any(by.values()):
            unseen = self._few(effect.scorer for effect in small)
            yield f"{_capital(_between(first))}: no difference found in {joined(unseen)}."
        flat = [effect for effect in known if is_flat(effect)]
        level = self._grouped(effect for effect in flat if effect.verdict == "same" and not differing)
        if same := [*by["same"], *level]:
            yield f"{_capital(_between(first))}: no difference that matters in {joined(self._few(same))}."
        if unmoved := self._grouped(effect for effect in flat if effect.verdict != "same" and not differing):
            yield f"{_capital(_between(first))}, {joined(self._few(unmoved))} did not change ({_span(unmoved)})."

    def agents(self, groups: Iterable[Sequence[Effect]]) -> Iterator[str]:
        """Yield what agents are surely better and worse in than the first, in one sentence where conditions agree."""
        under: dict[tuple[str, str, str], list[str]] = {}
        for first, *others in groups:
            key = (first.agent, first.against.agent, self._traits([first, *others]))
            under.setdefault(key, []).append(first.condition)
        for (agent, against, traits), conditions in under.items():
            where = f"({', '.join(conditions)})"
            yield (
                f"{agent} is {traits} than {against} {where}."
                if traits
                else f"No clear difference between {agent} and {against} {where}."
            )

    def _traits(self, group: Sequence[Effect]) -> str:
        """Return in what an agent is better and worse; an empty text if nothing is sure."""
        parts = []
        for verdict in ("better", "worse"):
            metrics = self._grouped(effect for effect in group if effect.verdict == verdict)
            if traits := [self._trait(effect) for effects in metrics.values() for effect in effects]:
                parts.append(f"{verdict} in {joined(traits)}")
        return " and ".join(parts)

    def arms(self) -> Iterator[str]:
        """Yield the means of a run in which nothing is compared."""
        for (agent, condition), group in groupby(self._summary.arms, key=lambda arm: (arm.agent, arm.condition)):
            known = [arm for arm in group if arm.mean is not None]
            means = [
                f"{self._names[arm.scorer]} {number(arm.mean)} ({counted(arm.n, 'question')})" for arm in known[:_MOST]
            ]
            more = [f"{len(known) - _MOST} more"] if len(known) > _MOST else []
            if means:
                yield f"{agent} with {condition}: {joined([*means, *more])}."

    def _grouped(self, effects: Iterable[Effect]) -> dict[Scorer, list[Effect]]:
        """Return effects by scorer, the largest for its scale first."""
        found = grouped(effects, lambda effect: effect.scorer)
        return dict(sorted(found.items(), key=lambda item: -max(map(self._size, item[1]))))

    def _size(self, effect: Effect) -> float:
        share = better_share(effect.difference or 0.0, self._scales[effect.scorer])
        return abs(share) if share is not None else 0.0

    def _list(self, metrics: Mapping[Scorer, Sequence[Effect]]) -> str:
        parts = [
            f"{self._names[scorer]} by {', '.join(map(self._gain, effects))}"
            for scorer, effects in [*metrics.items()][:_MOST]
        ]
        return "; ".join([*parts, *_more(len(metrics))])

    def _gain(self, effect: Effect) -> str:
        return f"{signed(effect.difference)}{self._unit(effect)}{_in_brackets(self._agent(effect))}"

    def _loss(self, effect: Effect) -> str:
        notes = [*self._agent(effect), counted(effect.n, "question")]
        return f"{number(abs(effect.difference or 0.0))}{self._unit(effect)}{_in_brackets(notes)}"

    def _trait(self, effect: Effect) -> str:
        return f"{self._names[effect.scorer]} ({signed(effect.difference)}{self._unit(effect)})"

    def _agent(self, effect: Effect) -> list[str]:
        return [effect.agent] if effect.kind == "condition" and len(self._agents) > 1 else []

    def _unit(self, effect: Effect) -> str:
        unit = self._scales[effect.scorer].unit
        return f" {unit}" if unit else ""

    def _open(self, metrics: Mapping[Scorer, Sequence[Effect]]) -> str:
        parts = []
        for scorer, effects in [*metrics.items()][:_MOST]:
            needed = max((effect.needed or 0) for effect in effects)
            would = needed > max(effect.n for effect in effects)
            notes = (
                [e.agent for e in effects]
                if effects[0].kind == "condition" and len(effects) < len(self._agents)
                else []
            )
            notes += [f"{needed:,} questions would"] if would else []
            parts.append(f"{self._names[scorer]}{_in_brackets(notes)}")
        return joined([*parts, *_more(len(metrics))], last="or")

    def _few(self, scorers: Iterable[Scorer]) -> list[str]:
        names = [self._names[scorer] for scorer in dict.fromkeys(scorers)]
        return [*names[:_MOST], f"{len(names) - _MOST} more"] if len(names) > _MOST else names

    def _costs(self, like: Effect, who: str) -> Iterator[str]:
        """Yield what the condition costs more, and what it saves, where the interval excludes 0; `who` names it."""
        more: list[str] = []
        less: list[str] = []
        for name in EXPENSE_UNITS:
            found = [
                e
                for e in self._summary.expenses
                if e.metric == name and e.kind == like.kind and e.condition == like.condition
                if e.difference is not None and e.ci_low is not None and e.ci_high is not None
                if e.ci_low > 0 or e.ci_high < 0
            ]
            for rising, costs in ((True, more), (False, less)):
                sizes = [abs(e.difference or 0.0) for e in found if ((e.difference or 0.0) > 0) == rising]
                if sizes:
                    costs.append(_amount(sizes, name))
        if more:
            yield f"{who} costs {joined(more)} more per answer."
        if less:
            yield f"{who} costs {joined(less)} less per answer."


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


def _on(metrics: Mapping[Scorer, Sequence[Effect]]) -> str:
    """Return on how many questions effects are, if these are few."""
    few = any(effect.n < _FEW for effects in metrics.values() for effect in effects)
    return f", on {_span(metrics)}" if few else ""


def _span(metrics: Mapping[Scorer, Sequence[Effect]]) -> str:
    """Return on how many questions effects are: from the fewest to the most."""
    counts = sorted({effect.n for effects in metrics.values() for effect in effects})
    most = counted(counts[-1], "question")
    return most if len(counts) == 1 else f"{counts[0]:,} to {most}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _amount(sizes: Sequence[float], name: str) -> str:
    """Return an amount, or the span of several agents' amounts."""

    def told(size: float) -> str:
        if name == "usd":
            return f"${size:.2g}"
        return f"{size:,.0f}" if size >= 10 else f"{size:.2g}"

    ends = list(dict.fromkeys([told(min(sizes)), told(max(sizes))]))
    return " to ".join(ends) if name == "usd" else f"{' to '.join(ends)} {EXPENSE_UNITS[name]}"


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
