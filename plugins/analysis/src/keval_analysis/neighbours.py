"""What is beside a trial: other trials of its arm, and of its sample; found by ranks, as a run may have a million."""

from __future__ import annotations

import attrs

from keval.records.trial import TrialKey
from keval.store.run import Run


@attrs.frozen
class Beside:
    """The trials before and after one in the order of the dataset, its place from 0, and `of` how many it is one."""

    previous: TrialKey | None
    following: TrialKey | None
    place: int
    of: int


def beside(run: Run, key: TrialKey) -> Beside:
    """Return what is beside a trial of a run, among those of its arm and repetition. Raises RunError."""
    ranking, index = run.ranking, run.known_trials.index
    arms, stride = _steps(run)
    rank = ranking.rank(key.sample, key.condition, key.agent, key.repetition)
    places = index.between(key.repetition * stride, (key.repetition + 1) * stride)
    alike = [each for each in index.ranks[places.start : places.stop] if each % arms == rank % arms]
    place = alike.index(rank)
    previous = ranking.key(alike[place - 1]) if place else None
    following = ranking.key(alike[place + 1]) if place + 1 < len(alike) else None
    return Beside(previous, following, place, len(alike))


def trials_of(run: Run, sample: str) -> list[TrialKey]:
    """Return the trials of a sample, in the order of the run's. Raises RunError."""
    ranking, index = run.ranking, run.known_trials.index
    arms, stride = _steps(run)
    if sample not in ranking.samples.positions or not len(index.ranks):
        return []
    firsts = range(ranking.samples.positions[sample] * arms, index.ranks[-1] + 1, stride)
    places = (place for first in firsts for place in index.between(first, first + arms))
    return [ranking.key(index.ranks[place]) for place in places]


def _steps(run: Run) -> tuple[int, int]:
    """Return how far the ranks of an arm's trials of neighbouring samples are apart, and those of its repetitions."""
    # As `Ranking` counts, which has one place more of each for what the run does not have.
    arms = (len(run.ranking.conditions) + 1) * (len(run.ranking.agents) + 1)
    return arms, arms * (len(run.ranking.samples) + 1)
