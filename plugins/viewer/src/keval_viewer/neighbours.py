"""Neighbours: the trials and samples that a page leads on to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import attrs

from keval import Run
from keval.plugin import TrialKey

__all__ = ["Around", "around", "repetitions_of", "trials_of"]

Arm: TypeAlias = tuple[str, str]


@attrs.frozen
class Around:
    """What is around a trial: the same arm's trials of the samples before and after it, and other arms' of this one.

    `place` counts from 1 over the samples that the arm answered in this repetition, of which there are `of`.
    """

    previous: TrialKey | None
    following: TrialKey | None
    place: int
    of: int
    arms: Sequence[TrialKey]
    repetitions: Sequence[TrialKey]


def around(run: Run, key: TrialKey) -> Around:
    """Return what is around a trial, in the order of the dataset. Raises RunError."""
    order = {name: place for place, name in enumerate(run.samples.ids)}
    alike = [each for each in run.known_trials if _arm(each) == _arm(key) and each.repetition == key.repetition]
    alike.sort(key=lambda each: order.get(each.sample, len(order)))
    place = alike.index(key)
    of_sample = trials_of(run, key.sample)
    return Around(
        previous=alike[place - 1] if place else None,
        following=alike[place + 1] if place + 1 < len(alike) else None,
        place=place + 1,
        of=len(alike),
        arms=[each for each in of_sample if each.repetition == key.repetition],
        repetitions=[each for each in of_sample if _arm(each) == _arm(key)],
    )


def trials_of(run: Run, sample: str) -> list[TrialKey]:
    """Return the trials of a sample: agent by agent, condition by condition, repetition by repetition."""
    arms = [(agent, condition) for agent in run.manifest.agents for condition in run.manifest.conditions]
    order = {arm: place for place, arm in enumerate(arms)}
    found = [each for each in run.known_trials if each.sample == sample]
    return sorted(found, key=lambda each: (order.get(_arm(each), len(order)), each.repetition))


def repetitions_of(keys: Sequence[TrialKey]) -> Mapping[int, Mapping[Arm, TrialKey]]:
    """Return trials by repetition and arm."""
    found: dict[int, dict[Arm, TrialKey]] = {}
    for key in keys:
        found.setdefault(key.repetition, {})[_arm(key)] = key
    return dict(sorted(found.items()))


def _arm(key: TrialKey) -> Arm:
    return key.agent, key.condition
