"""The budget of a run: what it uses up is counted, and decides whether another trial or judgement may begin."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal, TypeAlias

import attrs

from keval.config.evaluation import Budget
from keval.records.manifest import Manifest, Rates
from keval.records.models import dollars
from keval.records.scores import Judgement
from keval.records.transcript import Transcript
from keval.records.trial import Trial
from keval.store.run import Run

Kind: TypeAlias = Literal["trial", "judgement"]


@attrs.define(eq=False)
class ResourceBudget:
    """Counts one resource, in whole units, against the `most` that a budget allows; `None` if it allows any amount.

    What is in flight, and what nobody told, is taken to cost as much as the largest of its kind so far. `untold` counts
    the latter. `lacked` says that something was left out for lack of this resource.
    """

    most: int | None
    used: int = 0
    untold: int = 0
    lacked: bool = False
    _largest: Counter[Kind] = attrs.field(factory=Counter, init=False)

    @property
    def excess(self) -> int:
        """How much more was used than the budget allows."""
        return 0 if self.most is None else max(0, self.used - self.most)

    def fits(self, kind: Kind, in_flight: Mapping[Kind, int]) -> bool:
        """Return whether another trial or judgement may begin beside those in flight."""
        if self.most is None:
            return True
        reserved = sum(self._largest[each] * count for each, count in in_flight.items())
        return self.used < self.most and self.used + reserved + self._largest[kind] <= self.most

    def count(self, kind: Kind, amount: int | None, at_least: int = 0) -> None:
        """Count what a trial or judgement used; `None` if that is unknown, and then at least so much."""
        self.untold += amount is None
        used = max(at_least, self._largest[kind]) if amount is None else amount
        self.used += used
        self._largest[kind] = max(self._largest[kind], used)


_Used: TypeAlias = tuple[int | None, int | None]
"""Tokens, and billionths of a US dollar: as whole numbers, sums of either are exact."""

_BILLIONTHS = 10**9


@attrs.define(eq=False)
class RunBudget:
    """Counts the tokens, the US dollars and the trials of a run against its budget.

    What is in flight is taken to cost as much as the largest of its kind so far, so a run exceeds its budget at most by
    what those in flight cost above that. What a model does not tell the tokens of counts as much as the largest, too.
    The answers of `prerecorded` agents, by label, cost nothing.
    """

    limits: Budget = attrs.field(factory=Budget)
    rates: Rates = attrs.field(factory=Rates)
    prerecorded: Collection[str] = ()
    trials: int = attrs.field(default=0, init=False)
    _tokens: ResourceBudget = attrs.field(init=False)
    _usd: ResourceBudget = attrs.field(init=False)
    _lacks_trials: bool = attrs.field(default=False, init=False)
    _in_flight: Counter[Kind] = attrs.field(factory=Counter, init=False)
    _changed: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        self._tokens = ResourceBudget(self.limits.tokens)
        self._usd = ResourceBudget(_billionths(self.limits.usd))

    @classmethod
    def of(cls, run: Run, budget: Budget, manifest: Manifest) -> RunBudget:
        """Return a budget that has counted what a run has so far. Raises RunError."""
        run_budget = cls(budget)
        run_budget.price(manifest)
        if budget != Budget():
            for trial in chain(run.retried_trials(), run.trials_as_finished()):
                run_budget._count_trial(trial)
            last: tuple[str, str | None, Judgement] | None = None
            for line in run.scores_file.read():
                # A judgement is repeated by each of its scores, which follow each other.
                if line.judge is None or line.judgement is None:
                    continue
                if (line.trial, line.judge, line.judgement) != last:
                    last = (line.trial, line.judge, line.judgement)
                    run_budget._count_judgement(line.judge, line.judgement)
        return run_budget

    def price(self, manifest: Manifest) -> None:
        """Count from now on by the prices and the recorded agents that a manifest has."""
        self.rates = Rates.of(manifest)
        self.prerecorded = [label for label, entry in manifest.agents.items() if entry.recording]

    def admits_trial(self) -> bool:
        """Return whether another trial may begin."""
        most = self.limits.trials
        return self._fits("trial") and (most is None or self.trials + self._in_flight["trial"] < most)

    def leave_out_trials(self) -> None:
        """Note that trials were left out, as the budget does not hold them."""
        if self._fits("trial"):
            self._lacks_trials = True
        else:
            self._note_lack("trial")

    def begin_trial(self) -> None:
        """Note that a trial begins."""
        self._in_flight["trial"] += 1

    def end_trial(self, trial: Trial) -> None:
        """Count a trial that was begun, with the attempts that were discarded."""
        self._in_flight["trial"] -= 1
        self._count_trial(trial)

    async def begin_judgement(self) -> bool:
        """Begin a judgement if the budget allows it, else wait for those in flight; returns whether it has begun."""
        while not self._fits("judgement"):
            if not self._in_flight["judgement"]:
                self._note_lack("judgement")
                return False
            self._changed.clear()
            await self._changed.wait()
        self._in_flight["judgement"] += 1
        return True

    def end_judgement(self, judge: str, judgement: Judgement | None) -> None:
        """Count a judgement that was begun; `None` if it was ended before there was one."""
        self._in_flight["judgement"] -= 1
        if judgement is not None:
            self._count_judgement(judge, judgement)
        self._changed.set()

    def told(self) -> str:
        """Say what is used up, if anything was left out for it, or there was more of it; else an empty text."""
        parts = [*_said(self._tokens, "{:,}".format, " tokens", "many"), *_said(self._usd, _shown_usd, "", "much")]
        if self.limits.trials is not None and self._lacks_trials:
            begun = self.trials + self._in_flight["trial"]
            parts.append(f"{begun:,} of {self.limits.trials:,} trials")
        return f"budget used: {'; '.join(parts)} (--budget sets another)" if parts else ""

    @property
    def _resources(self) -> Sequence[ResourceBudget]:
        return (self._tokens, self._usd)

    def _fits(self, kind: Kind) -> bool:
        return all(resource.fits(kind, self._in_flight) for resource in self._resources)

    def _note_lack(self, kind: Kind) -> None:
        for resource in self._resources:
            resource.lacked = resource.lacked or not resource.fits(kind, self._in_flight)

    def _count_trial(self, trial: Trial) -> None:
        self.trials += 1
        if trial.agent in self.prerecorded:
            return
        transcripts = [trial.transcript, *(attempt.transcript for attempt in trial.attempts)]
        self._count("trial", [self._used(trial.agent, each) for each in transcripts if each is not None])

    def _count_judgement(self, judge: str, judgement: Judgement) -> None:
        self._count("judgement", [(_tokens(judgement), _billionths(self.rates.judgement(judge, judgement)))])

    def _used(self, agent: str, transcript: Transcript) -> _Used:
        return _tokens(transcript), _billionths(self.rates.attempt(agent, transcript))

    def _count(self, kind: Kind, attempts: Sequence[_Used]) -> None:
        """Count all attempts at a trial or judgement. If one is unknown, the others are the least that it used."""
        for resource, amounts in zip(
            self._resources, zip(*attempts, strict=True) if attempts else ((), ()), strict=True
        ):
            known = [amount for amount in amounts if amount is not None]
            resource.count(kind, sum(known) if len(known) == len(amounts) else None, at_least=sum(known))


def _tokens(asked: Transcript | Judgement) -> int | None:
    return 0 if asked.model_calls == 0 else asked.usage.total


def _billionths(usd: float | None) -> int | None:
    return None if usd is None else round(usd * _BILLIONTHS)


def _shown_usd(billionths: int) -> str:
    return dollars(billionths / _BILLIONTHS)


def _said(resource: ResourceBudget, shown: Callable[[int], str], unit: str, too: str) -> Iterator[str]:
    if resource.most is not None and (resource.lacked or resource.excess):
        over = f", {shown(resource.excess)} too {too}" if resource.excess else ""
        guessed = f", guessed for {resource.untold} trials or judgements" if resource.untold else ""
        yield f"{shown(resource.used)} of {shown(resource.most)}{unit}{over}{guessed}"
