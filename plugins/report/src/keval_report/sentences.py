"""What a run found, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from keval.records.formats import counted, number, signed
from keval.records.scores import Scale, Scorer
from keval_analysis.findings.effects import Effect, better_share
from keval_analysis.findings.formats import EXPENSE_UNITS, expense, interval_of, times_as_much
from keval_analysis.findings.summary import Summary
from keval_report import claims as say
from keval_report.blocks import grouped
from keval_report.claims import Claim
from keval_report.contrasts import contrast_sentences
from keval_report.origin import replay_sentences
from keval_report.run_claims import COSTS, HOLDS, SAVES, TAKES, interim_words, looks_words
from keval_report.totals import remark_sentences
from keval_report.words import display_names, joined, shortened

_MOST = 3
"""Metrics that one sentence names; the others are counted."""


def sentences(summary: Summary) -> list[str]:
    """Tell what a run found, of what its answers are, and what was lost."""
    return [*replay_sentences(summary.replay), *findings(summary), *remark_sentences(summary), *_trials(summary)]


def findings(summary: Summary) -> list[str]:
    """Tell what a run found: per condition what got better, what got worse, what it costs, and what stays open.

    Losses are never left out. Nothing is said of better or worse in a run that is unfinished.
    """
    told = _Told(summary)
    # Effects by what is compared: a condition with the baseline, or an agent with another.
    conditions = grouped((e for e in summary.effects if e.kind == "condition"), lambda e: e.condition)
    agents = grouped((e for e in summary.effects if e.kind == "agent"), lambda e: (e.agent, e.condition, e.against))
    found = [f"{_capital(interim_words(summary))}."] if summary.unfinished and summary.effects else []
    if HOLDS.holds(summary) and summary.effects:
        ended = summary.looking.ended if summary.looking is not None else None
        found.append(f"{_capital('; '.join(filter(None, (ended, looks_words(summary)))))}.")
    found += [sentence for group in conditions.values() for sentence in told.effects(group)]
    found += [] if summary.unfinished else contrast_sentences(summary)
    found += told.agents(agents.values())
    return found if summary.effects else [*found, *told.arms()]


class _Told:
    """Says effects of one summary: knows its scorers' names and scales, and which labels need to be said."""

    def __init__(self, summary: Summary) -> None:
        self._summary = summary
        self._names = display_names(entry.scorer for entry in summary.scorers)
        self._scales: Mapping[Scorer, Scale] = {entry.scorer: entry.scale for entry in summary.scorers}
        self._agents = {arm.agent for arm in summary.trials} | {effect.agent for effect in summary.effects}

    def effects(self, group: Sequence[Effect]) -> Iterator[str]:
        """Yield the sentences about one condition."""
        every = [self._claim(effect) for effect in group]
        decisive = [claim for claim in every if not say.EXPLORATORY.holds(claim)]
        explored = [claim for claim in every if say.EXPLORATORY.holds(claim)]
        condition = group[0].condition
        between = f"With {condition} against {group[0].against.condition}"
        for mark, claims in (("", decisive), (f"{_capital(say.EXPLORATORY.says)}: ", explored)):
            if better := self._grouped(claim for claim in claims if say.BETTER.holds(claim)):
                yield mark + say.IMPROVES.says.format(subject=f"{condition} improves", metrics=self._list(better))
            for losses in self._grouped(claim for claim in claims if say.WORSE.holds(claim)).values():
                told = {"metric": _capital(losses[0].name), "changed": f"got worse with {condition}"}
                yield mark + say.GOT_WORSE.says.format(**told, amounts=", ".join(map(self._loss, losses)))
        without = (say.ONE_QUESTION, say.NO_INTERVAL, say.TOO_EARLY)
        if few := self._grouped(claim for claim in every if any(each.holds(claim) for each in without)):
            yield say.TOO_FEW.says.format(between=between, metrics=self._list(few))
        if all(say.NOTHING_SHARED.holds(claim) for claim in every):
            yield say.INCOMPARABLE.says.format(between=between)
        if so_far := self._grouped(claim for claim in every if say.INTERIM.holds(claim)):
            yield say.SO_FAR.says.format(between=between, metrics=self._so_far(so_far))
        yield from (f"{_capital(say.EXPLORATORY.says)}: {told}" for told in self._costs(condition))
        undecided = [claim for claim in decisive if say.CANNOT_TELL.holds(claim)]
        # Of small ones, a sentence tells only if there is nothing larger to tell of.
        large = [claim for claim in undecided if not say.COULD_SEE.holds(claim)]
        sure = any(say.BETTER.holds(claim) or say.WORSE.holds(claim) for claim in decisive)
        if told_open := large or ([] if sure else undecided):
            metrics = self._open(self._grouped(told_open))
            yield say.NOT_DECIDED.says.format(whether=f"whether {condition} changes", metrics=metrics)
        same = [claim for claim in decisive if say.NO_DIFFERENCE.holds(claim)]
        for margin, claims in grouped(same, lambda claim: claim.margin).items():
            yield say.EQUIVALENT.says.format(between=between, margin=margin, metrics=self._names_of(claims))
        flat = [claim for claim in every if say.UNCHANGED.holds(claim)]
        if flat and len(flat) == len([claim for claim in every if not say.NOTHING_SHARED.holds(claim)]):
            yield say.NOT_CHANGED.says.format(between=between, metrics=self._names_of(flat), questions=_span(flat))

    def _claim(self, effect: Effect) -> Claim:
        return Claim(effect, self._names[effect.scorer], "", self._scales[effect.scorer])

    def agents(self, groups: Iterable[Sequence[Effect]]) -> Iterator[str]:
        """Yield what agents are surely better and worse in than another, in one sentence where conditions agree."""
        under: dict[tuple[str, str, str], list[str]] = {}
        for group in groups:
            claims = [self._claim(effect) for effect in group]
            if not any(say.INTERIM.holds(claim) for claim in claims):
                key = (group[0].agent, group[0].against.agent, self._traits(claims))
                under.setdefault(key, []).append(group[0].condition)
        for (agent, against, traits), conditions in under.items():
            statement = say.IS_THAN if traits else say.NO_CLEAR_DIFFERENCE
            yield statement.says.format(agent=agent, against=against, traits=traits, where=", ".join(conditions))

    def _traits(self, claims: Sequence[Claim]) -> str:
        """Return in what an agent is better and worse; an empty text if nothing is sure."""
        parts = []
        for statement in (say.BETTER, say.WORSE):
            metrics = self._grouped(claim for claim in claims if statement.holds(claim))
            if traits := [_trait(claim) for found in metrics.values() for claim in found]:
                parts.append(f"{statement.says} in {joined(traits)}")
        return " and ".join(parts)

    def arms(self) -> Iterator[str]:
        """Yield the means of a run in which nothing is compared."""
        properties = {each.scorer for each in self._summary.properties}
        for (agent, condition), group in groupby(self._summary.arms, key=lambda arm: (arm.agent, arm.condition)):
            known = [arm for arm in group if arm.mean is not None and arm.scorer not in properties]
            means = [f"{self._names[arm.scorer]} {number(arm.mean)} ({counted(arm.n, 'question')})" for arm in known]
            if means:
                yield f"{agent} with {condition}: {joined(shortened(means, _MOST))}."

    def _grouped(self, claims: Iterable[Claim]) -> dict[Scorer, list[Claim]]:
        """Return claims by scorer, the largest for its scale first."""

        def size(claim: Claim) -> float:
            return abs(better_share(claim.effect.difference or 0.0, claim.scale) or 0.0)

        found = grouped(claims, lambda claim: claim.effect.scorer)
        return dict(sorted(found.items(), key=lambda item: -max(map(size, item[1]))))

    def _list(self, metrics: Mapping[Scorer, Sequence[Claim]]) -> str:
        """Return by how much metrics changed, and on how many questions if these are few."""
        every = [claim for claims in metrics.values() for claim in claims]
        parts = [f"{claims[0].name} by {', '.join(map(self._gain, claims))}" for claims in metrics.values()]
        on = f", on {_span(every)}" if any(claim.effect.n < say.FEW for claim in every) else ""
        return "; ".join(shortened(parts, _MOST, "metric")) + on

    def _so_far(self, metrics: Mapping[Scorer, Sequence[Claim]]) -> str:
        def told(claim: Claim) -> str:
            return f"{self._gain(claim)} {interval_of(claim.effect)}".rstrip()

        parts = [f"{claims[0].name} {', '.join(map(told, claims))}" for claims in metrics.values()]
        return "; ".join(shortened(parts, _MOST, "metric"))

    def _gain(self, claim: Claim) -> str:
        return f"{signed(claim.effect.difference)}{claim.unit}{_in_brackets(self._agent(claim.effect))}"

    def _loss(self, claim: Claim) -> str:
        notes = [*self._agent(claim.effect), counted(claim.effect.n, "question")]
        return f"{number(abs(claim.effect.difference or 0.0))}{claim.unit}{_in_brackets(notes)}"

    def _agent(self, effect: Effect) -> list[str]:
        return [effect.agent] if effect.kind == "condition" and len(self._agents) > 1 else []

    def _open(self, metrics: Mapping[Scorer, Sequence[Claim]]) -> str:
        parts = []
        for claims in metrics.values():
            of_some = claims[0].effect.kind == "condition" and len(claims) < len(self._agents)
            notes = [claim.effect.agent for claim in claims] if of_some else []
            # Of several agents, the range is from the least to the most that any of them needs.
            needed = [claim.needed for claim in claims if claim.needed is not None and say.NEEDED.holds(claim)]
            if needed:
                ends = zip(*needed, strict=True)
                most = (pick(end) for pick, end in zip((min, max), ends, strict=True))
                notes.append(say.NEEDED.says.format(*most, margin=claims[0].margin))
            parts.append(f"{claims[0].name}{_in_brackets(notes)}")
        return joined(shortened(parts, _MOST, "metric"), last="or")

    def _names_of(self, claims: Sequence[Claim]) -> str:
        return joined(shortened([found[0].name for found in self._grouped(claims).values()], _MOST))

    def _costs(self, condition: str) -> Iterator[str]:
        """Yield what a condition costs more, what it saves, and how many times as much it takes."""
        if self._summary.unfinished:
            return
        alike = [e for e in self._summary.expenses if (e.kind, e.condition) == ("condition", condition)]
        for statement in (COSTS, SAVES):
            amounts = [
                _amount([abs(effect.difference or 0.0) for effect in found], name)
                for name in EXPENSE_UNITS
                if (found := [each for each in alike if each.metric == name and statement.holds(each)])
            ]
            if amounts:
                yield statement.says.format(who=condition, amounts=joined(amounts))
        ratios = [
            f"{times_as_much(each.metric, each.ratio)}{_in_brackets(self._agent(each))}"
            for name in EXPENSE_UNITS
            for each in alike
            if each.metric == name and each.ratio is not None and TAKES.holds(each)
        ]
        if ratios:
            yield TAKES.says.format(who=condition, ratios=joined(ratios))


def _trait(claim: Claim) -> str:
    mark = f", {say.EXPLORATORY.says}" if say.EXPLORATORY.holds(claim) else ""
    return f"{claim.name} ({signed(claim.effect.difference)}{claim.unit}{mark})"


def _span(claims: Iterable[Claim]) -> str:
    """Return on how many questions effects are: from the fewest to the most."""
    counts = sorted({claim.effect.n for claim in claims})
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


def _in_brackets(notes: Sequence[str]) -> str:
    return f" ({', '.join(notes)})" if notes else ""
