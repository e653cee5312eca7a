"""The scores of one scorer in one arm, kept as sums per sample.

Repetitions of a sample are not independent observations. They are averaged first, so that repeating a question does
not make an error smaller.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable
from itertools import compress
from operator import add, truediv
from sys import intern

import attrs

from keval.analysis.stats.variance import Graded
from keval.records.manifest import ScorerEntry
from keval.records.scores import ScoreLine
from keval.records.trial import FailureTally


@attrs.define
class Sums:
    """Counts, sums and sums of squares of values in numbered slots, such as those of one sample each."""

    counts: array[int] = attrs.field(factory=lambda: array("I"))
    sums: array[float] = attrs.field(factory=lambda: array("d"))
    squares: array[float] = attrs.field(factory=lambda: array("d"))
    passed: array[int] = attrs.field(factory=lambda: array("I"))

    def add(self, slot: int, value: float, *, passed: bool = False) -> None:
        """Add a value to a slot."""
        if (lacking := slot + 1 - len(self.counts)) > 0:
            self.counts.extend([0] * lacking)
            self.sums.extend([0.0] * lacking)
            self.squares.extend([0.0] * lacking)
            self.passed.extend([0] * lacking)
        self.counts[slot] += 1
        self.sums[slot] += value
        self.squares[slot] += value * value
        self.passed[slot] += passed

    def by_slot(self) -> dict[int, float]:
        """Return the mean of each slot that has values."""
        return {
            slot: total / count for slot, (total, count) in enumerate(zip(self.sums, self.counts, strict=True)) if count
        }

    def mean(self) -> float | None:
        """Return the mean over the slots that have values, of the mean of each; `None` if none has."""
        slots = len(self.counts) - self.counts.count(0)
        means = (total / count for total, count in zip(self.sums, self.counts, strict=True) if count)
        return math.fsum(means) / slots if slots else None

    def values(self) -> SampleValues:
        """Return what the slots hold, if each is of a sample."""
        counts = array("q", filter(None, self.counts))
        sums, squares = (array("d", compress(each, self.counts)) for each in (self.sums, self.squares))
        return SampleValues(
            samples=array("q", compress(range(len(self.counts)), self.counts)),
            means=array("d", map(truediv, sums, counts)),
            counts=counts,
            squares=squares,
            passed=array("q", compress(self.passed, self.counts)),
            graded=Graded(counts, counts, counts, sums, squares, squares),
        )


@attrs.frozen(eq=False)
class SampleValues:
    """What a scorer found in one arm, in arrays with one entry for each sample that has a value.

    `samples` are the samples' numbers, rising. A sample has a value for each of `counts` trials: `means` is their mean,
    `squares` the sum of their squares, and `passed` how many pass the threshold. Where a judge graded an answer more
    than once, its trial's value is the mean of the gradings, which `graded` has.
    """

    samples: array[int]
    means: array[float]
    counts: array[int]
    squares: array[float]
    passed: array[int]
    graded: Graded


def passes(entry: ScorerEntry) -> Callable[[float], bool]:
    """Return the test whether a value is as good as the scorer's threshold, or better."""
    threshold = entry.pass_threshold
    if threshold is None:
        return lambda value: False
    if entry.scale.better == "lower":
        return lambda value: value <= threshold + 1e-9
    # A mean of 0.75s may come out a hair below 0.75.
    return lambda value: value >= threshold - 1e-9


class Cell:
    """Takes the scores of one scorer in one arm, in any order."""

    def __init__(self, entry: ScorerEntry, *, count_neutral: bool) -> None:
        self.scored = self.neutral = self.unscored = self.failed = 0
        self.failures = FailureTally()
        self._count_neutral = count_neutral
        self._passes = passes(entry)
        self._samples = Sums()
        self._lost: dict[str, int] = {}
        self._left_out: dict[str, int] = {}
        # Trials by their id, if a judge grades more than once: a trial counts once.
        self._trials: dict[str, int] | None = {} if entry.repetitions > 1 else None
        self._sample_of = array("L")
        self._gradings = Sums()

    def add(self, line: ScoreLine, sample: int) -> None:
        """Take a score of a sample, which is given by its number."""
        value, neutral = line.score.value, line.score.neutral
        if value is None:
            self.unscored += 1
            if line.failure is not None:
                self.failed += 1
                self.failures.add(line.failure.kind, line.failure.message)
                self._lost[line.trial] = sample
            return
        self.neutral += neutral
        self.scored += not neutral
        if neutral and not self._count_neutral:
            self._left_out[line.trial] = sample
            return
        if self._trials is None:
            self._samples.add(sample, value, passed=self._passes(value))
            return
        trial = self._trials.setdefault(intern(line.trial), len(self._trials))
        if trial == len(self._sample_of):
            self._sample_of.append(sample)
        self._gradings.add(trial, value)

    def lost(self) -> Counter[int]:
        """Return by sample how many trials were answered and have no value, because the scorer failed."""
        return Counter(sample for trial, sample in self._lost.items() if trial not in (self._trials or ()))

    def left_out(self) -> Counter[int]:
        """Return by sample how many trials have no value because there was nothing to judge."""
        return Counter(sample for trial, sample in self._left_out.items() if trial not in (self._trials or ()))

    def values(self) -> SampleValues:
        """Return what was found, by sample."""
        if self._trials is None:
            return self._samples.values()
        trials = Sums()
        graded: dict[int, list[float]] = {}
        gradings = self._gradings
        for sample, *of_trial in zip(self._sample_of, gradings.counts, gradings.sums, gradings.squares, strict=True):
            m, total, squares = of_trial
            trials.add(sample, total / m, passed=self._passes(total / m))
            sums = graded.setdefault(sample, [0, 0, 0.0, 0.0, 0.0])
            sums[:] = map(add, sums, (m, m * m, total, squares, total * total / m))
        found = trials.values()
        columns = [*zip(*(graded[sample] for sample in found.samples), strict=True)] or [()] * 5
        return attrs.evolve(found, graded=Graded(found.counts, *columns))
