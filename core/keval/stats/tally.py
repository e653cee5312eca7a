"""Tallies: what happened to an arm's trials, and what judging them took."""

from __future__ import annotations

from collections import Counter

import attrs

from keval.records import Trial, Usage
from keval.scores import Judgement
from keval.stats.estimate import Means

__all__ = ["ComplianceTally", "JudgingTally", "Tally"]

_SHORTFALLS = ("no_tool_use", "no_tool_success")
"""The kinds of failure by which an answer is discarded that did not make the use of tools that was required."""


@attrs.define
class ComplianceTally:
    """How an arm's trials made the use of tools that its condition requires."""

    answered: int = 0
    complied_first: int = 0
    complied: int = 0
    discarded: int = 0

    def add(self, trial: Trial) -> None:
        shortfalls = sum(attempt.failure.kind in _SHORTFALLS for attempt in trial.attempts)
        self.discarded += shortfalls
        # A trial that never got an answer says nothing of compliance.
        if shortfalls or trial.complied is not None:
            self.answered += 1
            self.complied += trial.complied is True
            self.complied_first += trial.complied is True and not shortfalls


@attrs.define
class JudgingTally:
    """What one judge's judgements of one arm took; of those that `told` of unverified claims, `flagged` had some."""

    judgements: int = 0
    told: int = 0
    flagged: int = 0
    rejected: int = 0
    retried: int = 0
    model_calls: int | None = None
    usage: Usage = attrs.field(factory=Usage)

    def add(self, judgement: Judgement) -> None:
        if judgement.model_calls == 0:  # nobody was asked
            return
        self.judgements += 1
        self.told += judgement.unverified_claims is not None
        self.flagged += bool(judgement.unverified_claims)
        self.rejected += len(judgement.rejected)
        self.retried += bool(judgement.attempts)
        if judgement.model_calls is not None:
            self.model_calls = (self.model_calls or 0) + judgement.model_calls
        self.usage = self.usage + judgement.usage


@attrs.define
class Tally:
    """What happened to one arm's trials; attempts that were given up have totals of their own."""

    trials: int = 0
    failed: int = 0
    retried: int = 0
    tool_calls: int | None = None
    model_calls: int | None = None
    usage: Usage = attrs.field(factory=Usage)
    model_calls_given_up: int = 0
    usage_given_up: Usage = attrs.field(factory=Usage)
    durations: Means = attrs.field(factory=Means)
    failures: Counter[str] = attrs.field(factory=Counter)
    compliance: ComplianceTally = attrs.field(factory=ComplianceTally)

    @property
    def answered(self) -> int:
        """How many trials did not fail."""
        return self.trials - self.failed

    def add(self, trial: Trial, sample: int) -> None:
        self.trials += 1
        self.retried += bool(trial.attempts)
        self.compliance.add(trial)
        if trial.failure:
            self.failed += 1
            self.failures[f"{trial.failure.stage}: {trial.failure.kind}"] += 1
        for attempt in trial.attempts:
            if attempt.transcript:
                self.model_calls_given_up += attempt.transcript.model_calls or 0
                self.usage_given_up = self.usage_given_up + attempt.transcript.usage
        if trial.transcript:
            listed, unlisted = len(trial.transcript.tool_calls), trial.transcript.unlisted_calls
            if listed or unlisted is not None:
                self.tool_calls = (self.tool_calls or 0) + listed + (unlisted or 0)
            if trial.transcript.model_calls is not None:
                self.model_calls = (self.model_calls or 0) + trial.transcript.model_calls
            self.usage = self.usage + trial.transcript.usage
            if trial.transcript.duration is not None and not trial.failure:
                self.durations.add(sample, trial.transcript.duration)
