"""What the scorers of a run gave, answer by answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from keval import Run, RunError
from keval.records.scores import Scorer

FEWEST = 5
"""Questions from which on a figure is told of them."""


class Answer(NamedTuple):
    """Which answer of a run: agent, condition, sample and repetition, which counts from 1."""

    agent: str
    condition: str
    sample: str
    repetition: int


Gradings: TypeAlias = Mapping[Scorer, Mapping[Answer, list[float]]]
"""What each scorer gave each answer; several values where a judge graded it several times."""


def gradings_of(run: Run) -> Gradings:
    """Read the scores that count in means: a neutral one only if the config counts these. Raises RunError.

    What a metric says of an agent whatever that answers is left out. An answer is to a sample that the run has.
    """
    manifest, samples = run.manifest, {sample.id for sample in run.samples}
    found: dict[Scorer, dict[Answer, list[float]]] = {
        entry.scorer: defaultdict(list) for entry in manifest.scorers if not entry.ratings
    }
    for line in run.scores():
        value = line.score.value
        counts = value is not None and (not line.score.neutral or manifest.neutral == "count")
        if value is not None and counts and line.scorer in found:
            answer = Answer(line.agent, line.condition, line.sample, line.repetition)
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
