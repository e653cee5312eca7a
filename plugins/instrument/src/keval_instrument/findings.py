"""What examinations find, figures with bounds and defects that a person mends, and the gradings they read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import attrs

from keval import Run, RunError
from keval.records.scores import Scorer


@attrs.frozen
class Figure:
    """One figure of an examination, such as the `detection` of a kind of damage by a scorer.

    `of` says what it is of, by what kind of thing that is: `{"scorer": "completeness by judge", "damage": "number"}`.
    `n` is how many samples or answers it is from, and `low` and `high` are its 95 % interval. Where there is no value,
    `reason` says why. `unit` is `share` (0 to 1), `points` of the scorer's scale, or `count`.
    """

    name: str
    of: Mapping[str, str]
    value: float | None
    n: int
    low: float | None = None
    high: float | None = None
    reason: str | None = None
    unit: str = "share"

    def __attrs_post_init__(self) -> None:
        if self.value is None and not self.reason:
            raise ValueError("a figure without a value needs a reason")

    @property
    def told(self) -> str:
        """The value as it is shown: a count without decimals."""
        from keval.records.formats import number  # the command line does not wait for it

        return f"{self.value:,.0f}" if self.value is not None and self.unit == "count" else number(self.value)


def share_figure(
    name: str, of: Mapping[str, str], samples: Mapping[str, bool], lacks: str, sources: Mapping[str, int] | None = None
) -> Figure:
    """Return the share of samples for which something is so; if there are none, what it `lacks` is the reason.

    Samples with the same number in `sources` are not independent.
    """
    from keval_analysis.stats.intervals import Values, mean_intervals  # the command line does not wait for them

    if not samples:
        return Figure(name, of, None, 0, reason=lacks)
    row = Values([*map(float, samples.values())], [sources[name] for name in samples] if sources else None, 0, 1)
    (interval,) = mean_intervals([row])
    ends = (None, None) if interval is None else (interval.low, interval.high)
    return Figure(name, of, row.estimate.mean, len(samples), *ends)


@attrs.frozen
class Defect:
    """Something wrong with the instrument: what, with what to do about it, and which sample it is in, if it is one."""

    problem: str
    sample: str | None = None


@attrs.frozen
class Examined:
    """What one examination found. Where it could not examine anything, `reason` says why, and there is nothing else."""

    examination: str
    figures: tuple[Figure, ...] = ()
    defects: tuple[Defect, ...] = ()
    reason: str | None = None


@attrs.frozen
class BoundResult:
    """Whether a bound is met, with the reason; `met` is `None` where its figure could not be examined this time."""

    bound: str
    met: bool | None
    reason: str


@attrs.frozen
class Checked:
    """All that a check found: of which evaluation, in which runs by name, and which bounds are met."""

    evaluation: str
    runs: Mapping[str, str]
    examined: tuple[Examined, ...]
    bounds: tuple[BoundResult, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no bound is broken, and checks tell solutions from nothing done."""
        wrong = any(each.examination == "verify" and each.defects for each in self.examined)
        return not wrong and all(bound.met is not False for bound in self.bounds)


FEWEST = 5
"""Questions from which on a figure is told of them."""


class AnswerKey(NamedTuple):
    """Which answer of a run: agent, condition, sample and repetition, which counts from 1."""

    agent: str
    condition: str
    sample: str
    repetition: int


Gradings: TypeAlias = Mapping[Scorer, Mapping[AnswerKey, list[float]]]
"""What each scorer gave each answer; several values where a judge graded it several times."""


def gradings_of(run: Run) -> Gradings:
    """Read the scores that count in means: a neutral one only if the config counts these. Raises RunError.

    What a metric says of an agent whatever that answers is left out. An answer is to a sample that the run has.
    """
    manifest, samples = run.manifest, {sample.id for sample in run.samples}
    found: dict[Scorer, dict[AnswerKey, list[float]]] = {
        entry.scorer: defaultdict(list) for entry in manifest.scorers if not entry.ratings
    }
    for line in run.scores():
        value = line.score.value
        counts = value is not None and (not line.score.neutral or manifest.neutral == "count")
        if value is not None and counts and line.scorer in found:
            answer = AnswerKey(line.agent, line.condition, line.sample, line.repetition)
            # The run may be of others, and later look-ups by sample and arm rely on this.
            if line.sample not in samples or {line.agent, line.condition} - {*manifest.agents, *manifest.conditions}:
                raise RunError(f"{run.path} is damaged: a score is of {line.trial!r:.100}, of which it has no sample")
            found[line.scorer][answer].append(value)
    return found


def scorer_name(scorer: Scorer) -> str:
    """Return a scorer's name in figures: a metric's, or a rubric's with its judge's."""
    metric, judge = scorer
    return metric if judge is None else f"{metric} by {judge}"


def sources_of(*runs: Run) -> Mapping[str, int]:
    """Return a number for each sample of runs; samples with the same one share a source: they are not independent."""
    numbers, found = dict[str, int](), dict[str, int]()
    for run in runs:
        key = run.manifest.dataset.cluster_key
        for sample in run.samples:
            source = None if key is None else sample.metadata.get(key)
            name = f"sample {sample.id}" if source is None else f"source {source}"
            found.setdefault(sample.id, numbers.setdefault(name, len(numbers)))
    return found
