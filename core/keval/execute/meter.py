"""The meter: counts what a run uses up, and says whether its budget lets another trial or judgement begin."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection
from itertools import chain
from typing import Literal, TypeAlias

import attrs

from keval.config.evaluation import Budget
from keval.records import Transcript, Trial, Usage
from keval.scores import Judgement
from keval.store.run import Run

__all__ = ["Meter"]

_Kind: TypeAlias = Literal["trial", "judgement"]


@attrs.define(eq=False)
class Meter:
    """Counts the tokens and trials of a run against its budget.

    What is in flight is taken to cost as much as the largest of its kind so far, so the tokens of a run exceed its
    budget at most by what those in flight cost above that. What a model does not tell the tokens of counts as much as
    the largest, too. The answers of `prerecorded` agents, by label, cost nothing.
    """

    budget: Budget = attrs.field(factory=Budget)
    prerecorded: Collection[str] = ()
    tokens: int = attrs.field(default=0, init=False)
    trials: int = attrs.field(default=0, init=False)
    untold: int = attrs.field(default=0, init=False)
    _largest: Counter[_Kind] = attrs.field(factory=Counter, init=False)
    _in_flight: Counter[_Kind] = attrs.field(factory=Counter, init=False)
    _lacked: set[str] = attrs.field(factory=set, init=False)
    _changed: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)

    @classmethod
    def of(cls, run: Run, budget: Budget, prerecorded: Collection[str] = ()) -> Meter:
        """Return a meter that has counted what a run has so far. Raises RunError."""
        meter = cls(budget, prerecorded)
        if budget != Budget():
            for trial in chain(run.retried_trials(), run.trials()):
                meter._count_trial(trial)
            last: tuple[str, str | None, Judgement] | None = None
            for line in run.scores_file.read():
                # A judgement is repeated by each of its scores, which follow each other.
                if line.judgement is not None and (line.trial, line.judge, line.judgement) != last:
                    last = (line.trial, line.judge, line.judgement)
                    meter._count("judgement", _told(line.judgement.usage, line.judgement.model_calls))
        return meter

    def admits_trial(self) -> bool:
        """Return whether another trial may begin."""
        most = self.budget.trials
        return self._fits("trial") and (most is None or self.trials + self._in_flight["trial"] < most)

    def leave_out_trials(self) -> None:
        """Note that trials were left out, as the budget does not hold them."""
        self._lacked.add("trials" if self._fits("trial") else "tokens")

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
                self._lacked.add("tokens")
                return False
            self._changed.clear()
            await self._changed.wait()
        self._in_flight["judgement"] += 1
        return True

    def end_judgement(self, judgement: Judgement | None) -> None:
        """Count a judgement that was begun; `None` if it was ended before there was one."""
        self._in_flight["judgement"] -= 1
        if judgement is not None:
            self._count("judgement", _told(judgement.usage, judgement.model_calls))
        self._changed.set()

    def told(self) -> str:
        """Say what is used up, if anything was left out for it, or there was more of it; else an empty text."""
        tokens, trials = self.budget.tokens, self.budget.trials
        parts = []
        if tokens is not None and ("tokens" in self._lacked or self.tokens > tokens):
            over = f", {self.tokens - tokens:,} too many" if self.tokens > tokens else ""
            guessed = f", guessed for {self.untold} trials or judgements" if self.untold else ""
            parts.append(f"{self.tokens:,} of {tokens:,} tokens{over}{guessed}")
        if trials is not None and "trials" in self._lacked:
            parts.append(f"{self.trials:,} of {trials:,} trials")
        return f"budget used: {'; '.join(parts)} (--budget sets another)" if parts else ""

    def _fits(self, kind: _Kind) -> bool:
        most = self.budget.tokens
        if most is None:
            return True
        reserved = sum(self._largest[each] * count for each, count in self._in_flight.items())
        return self.tokens < most and self.tokens + reserved + self._largest[kind] <= most

    def _count_trial(self, trial: Trial) -> None:
        self.trials += 1
        if trial.agent in self.prerecorded:
            return
        transcripts = [trial.transcript, *(attempt.transcript for attempt in trial.attempts)]
        told = [_of_transcript(transcript) for transcript in transcripts if transcript is not None]
        known = [tokens for tokens in told if tokens is not None]
        self._count("trial", sum(known) if len(known) == len(told) else None, at_least=sum(known))

    def _count(self, kind: _Kind, tokens: int | None, at_least: int = 0) -> None:
        self.untold += tokens is None
        cost = max(at_least, self._largest[kind]) if tokens is None else tokens
        self.tokens += cost
        self._largest[kind] = max(self._largest[kind], cost)


def _of_transcript(transcript: Transcript) -> int | None:
    return _told(transcript.usage, transcript.model_calls)


def _told(usage: Usage, model_calls: int | None) -> int | None:
    if usage.input_tokens is None or usage.output_tokens is None:
        return None if model_calls != 0 else 0
    return usage.input_tokens + usage.output_tokens
