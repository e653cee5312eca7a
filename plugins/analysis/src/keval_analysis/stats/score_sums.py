"""The scores of one scorer in one arm, kept as sums per sample.

Repetitions of a sample are not independent observations. They are averaged first, so that repeating a question does
not make an error smaller.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import compress
from operator import add, truediv
from sys import intern

import attrs

from keval.records.manifest import ScorerEntry
from keval.records.scores import Scale, ScoreLine
from keval_analysis.failure_tally import FailureTally
from keval_analysis.stats.variance import Graded, apart


@attrs.define
class Sums:
    """Counts and sums of values in numbered slots, such as those of one sample each.

    `squares` are the sums of squares of values less the mean of their slot. They and `passed` are there when they are
    needed: a second value in a slot, and a value that passes.
    """

    counts: array[int] = attrs.field(factory=lambda: array("I"))
    sums: array[float] = attrs.field(factory=lambda: array("d"))
    squares: array[float] | None = None
    passed: array[int] | None = None

    def add(self, slot: int, value: float, *, passed: bool = False) -> None:
        """Add a value to a slot."""
        if (lacking := slot + 1 - len(self.counts)) > 0:
            self.counts.extend([0] * lacking)
            for each in (self.sums, self.squares):
                if each is not None:
                    each.extend([0.0] * lacking)
            if self.passed is not None:
                self.passed.extend([0] * lacking)
        if count := self.counts[slot]:
            if self.squares is None:
                self.squares = array("d", bytes(8 * len(self.counts)))
            self.squares[slot] += apart(count, self.sums[slot] / count, 1, value)
        self.counts[slot] += 1
        self.sums[slot] += value
        if passed:
            if self.passed is None:
                # Zeros; an unsigned int has 4 bytes wherever CPython runs.
                self.passed = array("I", bytes(4 * len(self.counts)))
            self.passed[slot] += 1

    def mean(self) -> float | None:
        """Return the mean over the slots that have values, of the mean of each; `None` if none has."""
        slots = len(self.counts) - self.counts.count(0)
        means = (total / count for total, count in zip(self.sums, self.counts, strict=True) if count)
        return math.fsum(means) / slots if slots else None

    def values(self) -> SampleValues:
        """Return what the slots hold, if each is of a sample; it holds until further values are added."""
        samples: Sequence[int] = range(len(self.counts))
        counts, sums, squares, passed = self.counts, self.sums, self.squares, self.passed
        # Without gaps, the arrays are handed out as they are and not copied.
        if 0 in counts:
            samples, sums = array("I", compress(samples, counts)), array("d", compress(sums, counts))
            squares = squares and array("d", compress(squares, counts))
            passed = passed and array("I", compress(passed, counts))
            counts = array("I", filter(None, counts))
        means = sums if squares is None else array("d", map(truediv, sums, counts))
        return SampleValues(samples, means, counts, sums, squares, passed)


@attrs.frozen(eq=False)
class SampleValues:
    """What a scorer found in one arm, in arrays with one entry for each sample that has a value.

    `samples` are the samples' numbers, rising. A sample has a value for each of `counts` trials: `means` is their mean
    and `sums` their sum. Where a judge graded an answer more than once, its trial's value is the mean of the gradings,
    which `graded` has.
    """

    samples: Sequence[int]
    means: array[float]
    counts: array[int]
    sums: array[float]
    _squares: array[float] | None = None
    _passed: array[int] | None = None
    _graded: Graded | None = None

    @property
    def squares(self) -> array[float]:
        """The sum of the squares of each sample's values less their mean."""
        return array("d", bytes(8 * len(self.counts))) if self._squares is None else self._squares

    @property
    def passed(self) -> array[int]:
        """How many values of each sample pass the threshold."""
        return array("I", bytes(4 * len(self.counts))) if self._passed is None else self._passed

    def of(self, samples: Container[int]) -> SampleValues:
        """Return the values of some samples."""
        chosen = [sample in samples for sample in self.samples]
        return SampleValues(
            array("q", compress(self.samples, chosen)),
            array("d", compress(self.means, chosen)),
            array("I", compress(self.counts, chosen)),
            array("d", compress(self.sums, chosen)),
        )

    @property
    def graded(self) -> Graded:
        """The gradings behind the values."""
        none = array("d", bytes(8 * len(self.counts)))
        return self._graded or Graded(self.counts, self.counts, self.counts, self.sums, none, self.squares)


def with_worst(found: SampleValues, lost: Mapping[int, int], scale: Scale) -> SampleValues:
    """Return values with so many more of each sample, which are the worst of the scale."""
    worst = scale.low if scale.better == "higher" else scale.high
    columns = zip(found.counts, found.sums, found.squares, found.passed, strict=True)
    had = dict(zip(found.samples, columns, strict=True))
    kept = sorted({*had, *lost})
    sums, squares, passes = Sums(), array("d"), array("I")
    for sample in kept:
        count, total, square, passed = had.get(sample, (0, 0.0, 0.0, 0))
        more = lost.get(sample, 0)
        sums.counts.append(count + more)
        sums.sums.append(total + more * worst)
        squares.append(square + (apart(count, total / count, more, worst) if count else 0.0))
        passes.append(passed)
    sums.squares, sums.passed = squares, passes
    # The slots are places in `kept`, and not numbers of samples.
    return attrs.evolve(sums.values(), samples=array("q", kept))


def passes(entry: ScorerEntry) -> Callable[[float], bool]:
    """Return the test whether a value is as good as the scorer's threshold, or better."""
    threshold = entry.pass_threshold
    if threshold is None:
        return lambda value: False
    if entry.scale.better == "lower":
        return lambda value: value <= threshold + 1e-9
    # A mean of 0.75s may come out a hair below 0.75.
    return lambda value: value >= threshold - 1e-9


@attrs.define
class _TrialCounts:
    """How many trials of each sample are so; those that may be added twice are kept by their ids."""

    _counts: Counter[int] = attrs.field(factory=Counter)
    _named: dict[str, int] = attrs.field(factory=dict)

    def add(self, sample: int, trial: str | None) -> None:
        if trial is None:
            self._counts[sample] += 1
        else:
            self._named[trial] = sample

    def without(self, trials: Container[str]) -> Counter[int]:
        return self._counts + Counter(sample for trial, sample in self._named.items() if trial not in trials)


class Cell:
    """Takes the scores of one scorer in one arm, in any order."""

    def __init__(self, entry: ScorerEntry, *, count_neutral: bool) -> None:
        self.scored = self.neutral = self.unscored = self.failed = 0
        self.failures = FailureTally()
        self._count_neutral = count_neutral
        self._passes = passes(entry)
        self._samples = Sums()
        self._lost, self._left_out, self._without = _TrialCounts(), _TrialCounts(), _TrialCounts()
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
            lost = self._without if line.failure is None else self._lost
            lost.add(sample, None if self._trials is None else line.trial)
            return
        self.neutral += neutral
        self.scored += not neutral
        if neutral and not self._count_neutral:
            self._left_out.add(sample, None if self._trials is None else line.trial)
            return
        if self._trials is None:
            self._samples.add(sample, value, passed=self._passes(value))
            return
        # All scorers have the same ids: interned, each is one string.
        trial = self._trials.setdefault(intern(line.trial), len(self._trials))
        if trial == len(self._sample_of):
            self._sample_of.append(sample)
        self._gradings.add(trial, value)

    def without_value(self) -> Iterator[Counter[int]]:
        """Yield three counts of answered trials without a value, by sample.

        They are of those that lack it because the scorer failed, of those for which it did not fail, and of those in
        which there was nothing to judge.
        """
        return (each.without(self._trials or ()) for each in (self._lost, self._without, self._left_out))

    def values(self) -> SampleValues:
        """Return what was found, by sample."""
        if self._trials is None:
            return self._samples.values()
        trials = Sums()
        graded: dict[int, list[float]] = {}
        # Every trial has a grading, so that nothing is left out and the places are those of `_sample_of`.
        gradings, squares = self._gradings, self._gradings.values().squares
        for sample, *of_trial in zip(self._sample_of, gradings.counts, gradings.sums, squares, strict=True):
            m, total, square = of_trial
            trials.add(sample, total / m, passed=self._passes(total / m))
            sums = graded.setdefault(sample, [0, 0, 0.0, 0.0, 0.0])
            between = apart(sums[0], sums[2] / sums[0], m, total / m) if sums[0] else 0.0
            sums[:] = map(add, sums, (m, m * m, total, square, between))
        found = trials.values()
        columns = [*zip(*(graded[sample] for sample in found.samples), strict=True)] or [()] * 5
        return attrs.evolve(found, graded=Graded(found.counts, *columns))
