"""The budget of a run: what it uses up is counted, and decides whether another trial or judgement may begin."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from typing import TypeAlias

import attrs

from keval import Manifest, Run, Transcript, Trial
from keval.config.evaluation import Budget
from keval.records.manifest import Rates
from keval.records.models import Price, cost_of, dollars
from keval.records.scores import Judgement

_Told: TypeAlias = tuple[Transcript | Judgement, float | None]
Group: TypeAlias = tuple[str, ...]
"""What costs alike: trials of one agent and condition, or judgements of one judge; the first word says which."""
_TRIAL, _JUDGEMENT = "trial", "judgement"
_MARGIN = 32
"""How much more than the largest so far those in flight may cost, divided by how many are known: 33 times after one."""


@attrs.define(eq=False)
class ResourceBudget:
    """Counts one resource, in whole units, against the `most` that a budget allows; `None` if it allows any amount.

    What is in flight, and what nobody told, is taken to cost as much as the largest of its group so far. `bound` is the
    most that a trial may use of it, if trials have limits. `untold` counts what nobody told, and `impossible` is what a
    model told that cannot be. `lacked` says that something was left out for lack of this resource.
    """

    most: int | None
    bound: int | None = None
    used: int = 0
    untold: int = 0
    impossible: str | None = None
    lacked: bool = False
    _largest: dict[Group, int] = attrs.field(factory=dict, init=False)
    _known: Counter[Group] = attrs.field(factory=Counter, init=False)
    _is_told: bool = attrs.field(default=False, init=False)

    @property
    def excess(self) -> int:
        """How much more was used than the budget allows."""
        return 0 if self.most is None else max(0, self.used - self.most)

    @property
    def unknowable(self) -> str:
        """What a model told that cannot be, where nothing else says what a trial or judgement costs."""
        return "" if self._is_told else self.impossible or ""

    def fits(self, group: Group, in_flight: Counter[Group], *, careful: bool = True) -> bool:
        """Return whether another trial or judgement may begin beside those in flight.

        If it is `careful`, one of a group of which nothing is known is in flight at a time, and the fewer are known of
        a group, the more may those in flight turn out to cost, if there are several.
        """
        if self.most is None:
            return True
        if self.used >= self.most or self.unknowable:
            return False
        expected = self._expected(group)
        careful = careful and not self._is_bound(group)
        if careful and group not in self._largest and in_flight[group]:
            return False
        reserved = sum((self._expected(each) or 0) * count for each, count in in_flight.items())
        needed = reserved + (expected or 0)
        if careful and reserved:
            needed += needed * _MARGIN // max(1, self._known[group])
        return self.used + needed <= self.most

    def count(self, group: Group, amount: int | None, at_least: int = 0, *, typical: bool = True) -> None:
        """Count what a trial or judgement used; `None` if that is unknown, and then at least so much.

        One that is not `typical` says nothing of the others, if it used nothing.
        """
        self.untold += amount is None
        self._is_told = self._is_told or bool(amount)
        used = max(at_least, self._expected(group) or 0) if amount is None else amount
        self.used += used
        if not (used or typical):
            return
        self._largest[group] = max(self._largest.get(group, 0), used)
        self._known[group] += 1

    def _is_bound(self, group: Group) -> bool:
        return self.bound is not None and group[0] == _TRIAL

    def _expected(self, group: Group) -> int | None:
        """Return what is reserved for one of a group: by what is known of it, else by all others of its kind."""
        known = self._largest.get(group)
        if known is None:
            known = max((used for each, used in self._largest.items() if each[0] == group[0]), default=None)
        return max(self.bound or 0, known or 0) if self._is_bound(group) else known


_BILLIONTHS = 10**9
"""Of a US dollar: as whole numbers, sums are exact."""


@attrs.define(eq=False)
class RunBudget:
    """Counts the tokens, the US dollars and the trials of a run against its budget.

    No trial or judgement begins that would not fit, see `ResourceBudget`, so a run exceeds its budget at most by what
    those in flight cost above what was known by then. It is not `careful` where what does not fit yet cannot wait. The
    answers of `prerecorded` agents, by label, cost nothing. The entry point `budget` in the group `keval.meters`; see
    `keval.seams.use_meter`.
    """

    limits: Budget = attrs.field(factory=Budget)
    rates: Rates = attrs.field(factory=Rates)
    prerecorded: Collection[str] = ()
    careful: bool = True
    trials: int = attrs.field(default=0, init=False)
    _tokens: ResourceBudget = attrs.field(init=False)
    _usd: ResourceBudget = attrs.field(init=False)
    _limited: Sequence[ResourceBudget] = attrs.field(init=False)
    _lacks_trials: bool = attrs.field(default=False, init=False)
    _in_flight: Counter[Group] = attrs.field(factory=Counter, init=False)
    _changed: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        self._tokens = ResourceBudget(self.limits.tokens)
        self._usd = ResourceBudget(_billionths(self.limits.usd))
        self._limited = [each for each in (self._tokens, self._usd) if each.most is not None]

    @classmethod
    def of(cls, run: Run, budget: Budget, manifest: Manifest) -> RunBudget:
        """Return a budget that has counted what a run has so far. Raises RunError."""
        run_budget = cls(budget)
        run_budget.price(manifest)
        if budget != Budget():
            # Trials that were set aside to be run again have cost something, too.
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
        """Count from now on by the prices, the recorded agents and the limits of trials that a manifest has."""
        self.rates = Rates.of(manifest)
        self.prerecorded = [label for label, entry in manifest.agents.items() if entry.recording]
        limits = (manifest.config.get("execution") or {}).get("limits") or {}
        self._tokens.bound, self._usd.bound = limits.get("tokens"), _billionths(limits.get("cost"))

    def admits_trial(self, agent: str, condition: str) -> bool:
        """Return whether another trial may begin."""
        most = self.limits.trials
        return self._fits_trial(agent, condition) and (most is None or self.trials + self._trials_in_flight < most)

    def leave_out_trials(self, agent: str, condition: str) -> None:
        """Note that trials were left out, as the budget does not hold them."""
        if self._fits_trial(agent, condition):
            self._lacks_trials = True
        else:
            self._note_lack((_TRIAL, agent, condition))

    def begin_trial(self, agent: str, condition: str) -> None:
        """Note that a trial begins."""
        self._in_flight[_TRIAL, agent, condition] += 1

    def end_trial(self, trial: Trial) -> None:
        """Count a trial that was begun, with the attempts that were discarded."""
        self._in_flight[_TRIAL, trial.agent, trial.condition] -= 1
        self._count_trial(trial)

    async def begin_judgement(self, judge: str) -> bool:
        """Begin a judgement if the budget allows it, else wait for those in flight; returns whether it has begun."""
        group = (_JUDGEMENT, judge)
        while not self._fits(group):
            # Nothing is in flight whose end could leave it more.
            if not any(count for each, count in self._in_flight.items() if each[0] == _JUDGEMENT):
                self._note_lack(group)
                return False
            self._changed.clear()
            await self._changed.wait()
        self._in_flight[group] += 1
        return True

    def end_judgement(self, judge: str, judgement: Judgement | None) -> None:
        """Count a judgement that was begun; `None` if it was ended before there was one."""
        self._in_flight[_JUDGEMENT, judge] -= 1
        if judgement is not None:
            self._count_judgement(judge, judgement)
        self._changed.set()

    def told(self) -> str:
        """Say what is used up, if anything was left out for it, or there was more of it; else an empty text."""
        usd = _said(self._usd, lambda billionths: dollars(billionths / _BILLIONTHS), "", "much")
        parts = [*_said(self._tokens, "{:,}".format, " tokens", "many"), *usd]
        if self.limits.trials is not None and self._lacks_trials:
            begun = self.trials + self._trials_in_flight
            parts.append(f"{begun:,} of {self.limits.trials:,} trials")
        return f"budget used: {'; '.join(parts)} (--budget sets another)" if parts else ""

    @property
    def _trials_in_flight(self) -> int:
        return sum(count for group, count in self._in_flight.items() if group[0] == _TRIAL)

    def _fits_trial(self, agent: str, condition: str) -> bool:
        return agent in self.prerecorded or self._fits((_TRIAL, agent, condition))

    def _fits(self, group: Group) -> bool:
        if not self._limited:
            return True
        return all(resource.fits(group, self._in_flight, careful=self.careful) for resource in self._limited)

    def _note_lack(self, group: Group) -> None:
        for resource in self._limited:
            resource.lacked |= not resource.fits(group, self._in_flight, careful=self.careful)

    def _count_trial(self, trial: Trial) -> None:
        self.trials += 1
        # Without a budget of tokens or dollars, no trial pays for their sums.
        if not self._limited or trial.agent in self.prerecorded:
            return
        transcripts = [trial.transcript, *(attempt.transcript for attempt in trial.attempts)]
        rate, group = self.rates.attempt, (_TRIAL, trial.agent, trial.condition)
        told = [(each, rate(trial.agent, each)) for each in transcripts if each is not None]
        sampled = [exchange.sampled for each, _ in told for exchange in each.exchanges if exchange.sampled is not None]
        costs = [cost_of(self.rates.models.get(each.model), each.usage) for each in sampled]
        told += [(Transcript(usage=each.usage, model_calls=1), usd) for each, usd in zip(sampled, costs, strict=True)]
        self._count(group, told, self.rates.agents.get(trial.agent), typical=trial.failure is None)

    def _count_judgement(self, judge: str, judgement: Judgement) -> None:
        if self._limited:
            told = [(judgement, self.rates.judgement(judge, judgement))]
            self._count((_JUDGEMENT, judge), told, self.rates.judges.get(judge), typical=judgement.model_calls != 0)

    def _count(self, group: Group, told: Sequence[_Told], price: Price | None, *, typical: bool) -> None:
        """Count all attempts at a trial or judgement. If one is unknown, it used at least what is estimated."""
        tokens = [(0 if each.model_calls == 0 else each.usage.total, each.usage.least) for each, _ in told]
        costs = [(_billionths(usd), _billionths(price.at_least(each.usage)) if price else 0) for each, usd in told]
        impossible = next((each.usage.impossible for each, _ in told if each.usage.impossible), None)
        for resource, amounts in ((self._tokens, tokens), (self._usd, costs)):
            at_least = sum((least or 0) if amount is None else amount for amount, least in amounts)
            is_known = all(amount is not None for amount, _ in amounts)
            resource.count(group, at_least if is_known else None, at_least, typical=typical)
            resource.impossible = resource.impossible or impossible


def _billionths(usd: float | None) -> int | None:
    return None if usd is None else round(usd * _BILLIONTHS)


def _said(resource: ResourceBudget, shown: Callable[[int], str], unit: str, too: str) -> Iterator[str]:
    if resource.most is not None and (resource.lacked or resource.excess):
        over = f", {shown(resource.excess)} too {too}" if resource.excess else ""
        guessed = f", guessed for {resource.untold} trials or judgements" if resource.untold else ""
        wrong = resource.unknowable
        why = f", and the rest is unknown, as a model told what cannot be a count ({wrong})" if wrong else ""
        yield f"{shown(resource.used)} of {shown(resource.most)}{unit}{over}{guessed}{why}"
