"""Expenses: what the answers of an arm took, as one value per sample, so that arms can be compared by them."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import attrs

from keval.records import Transcript
from keval.stats.cells import SampleValues, Sums

__all__ = ["EXPENSES", "Expense", "Expenses"]

Expense: TypeAlias = Literal["seconds", "tokens", "usd", "tool_calls"]
EXPENSES: Sequence[Expense] = get_args(Expense)
"""What an answer takes: wall time, tokens of input and output, US dollars, and tool calls."""


@attrs.define
class Expenses:
    """Sums of what answers took, per sample; samples are numbered from 0.

    They are those of the attempts that were answered: how often a trial had to be repeated is told apart. `durations`
    are the seconds of each of these attempts.
    """

    durations: array[float] = attrs.field(factory=lambda: array("d"), init=False)
    _sums: dict[Expense, Sums] = attrs.field(factory=lambda: {name: Sums() for name in EXPENSES}, init=False)

    def add(self, sample: int, transcript: Transcript, usd: float | None) -> None:
        """Add the transcript of an answer that cost so many US dollars (`None`: unknown)."""
        if transcript.duration is not None:
            self.durations.append(transcript.duration)
            self._sums["seconds"].add(sample, transcript.duration)
        tokens = 0 if transcript.model_calls == 0 else transcript.usage.total
        if tokens is not None:
            self._sums["tokens"].add(sample, tokens)
        if usd is not None:
            self._sums["usd"].add(sample, usd)
        if transcript.unlisted_calls is not None:
            self._sums["tool_calls"].add(sample, len(transcript.own_calls) + transcript.unlisted_calls)

    def values(self, name: Expense) -> SampleValues:
        """Return what is known, by sample."""
        return self._sums[name].values()

    def by_sample(self, name: Expense) -> dict[int, float]:
        """Return the mean over each sample's repetitions, for the samples that it is known of."""
        return self._sums[name].by_slot()

    def mean(self, name: Expense) -> float | None:
        """Return the mean over samples; `None` if nothing is known."""
        values = self.by_sample(name).values()
        return math.fsum(values) / len(values) if values else None
