"""Neighbours: the trials and samples that a page leads on to, in the order of the dataset or of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import attrs

from keval import Run
from keval.records.trial import TrialKey
from keval_analysis.neighbours import trials_of
from keval_analysis.question_comparisons import Tile
from keval_report.report import Report

Arm: TypeAlias = tuple[str, str]
_ANY = ""
"""In place of a metric: of each sample the one that fell most."""


def by_arm(run: Run, sample: str) -> list[TrialKey]:
    """Return the trials of a sample: agent by agent, condition by condition, repetition by repetition."""
    arms = [(agent, condition) for agent in run.manifest.agents for condition in run.manifest.conditions]
    return sorted(trials_of(run, sample), key=lambda each: (arms.index((each.agent, each.condition)), each.repetition))


def repetitions_of(keys: Sequence[TrialKey]) -> Mapping[int, Mapping[Arm, TrialKey]]:
    """Return trials by repetition and arm."""
    found: dict[int, dict[Arm, TrialKey]] = {}
    for key in keys:
        found.setdefault(key.repetition, {})[key.agent, key.condition] = key
    return dict(sorted(found.items()))


@attrs.frozen
class Choice:
    """What samples are ranked by: a comparison by its place in the report, and a metric by its name.

    `comparison` is `None` for the order of the dataset, and `metric` empty for whatever fell most.
    """

    comparison: int | None = None
    metric: str = _ANY


@attrs.frozen
class Ranked:
    """Where a sample stands: its neighbours, its place from 1 `of` how many, and by how much it differs.

    `told` is the metric and the difference, `None` where nothing of this sample can be compared; `share` is positive
    where it is for the better.
    """

    choice: Choice
    previous: str | None
    following: str | None
    place: int
    of: int
    told: tuple[str, float] | None = None
    share: float = 0.0


def choices_of(report: Report) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names of the comparisons and of the metrics by which samples can be ranked."""
    compared = [each.label for each in report.comparisons if each.against is not None]
    return compared, [*report.names.values()]


def ranked(report: Report, sample: str, choice: Choice) -> Ranked:
    """Return where a sample stands by a choice. What cannot be compared comes last, in the order of the dataset.

    Raises ValueError: nobody was asked this sample, as far as the report knows.
    """
    questions = report.outline.questions
    found: dict[int, Tile] = {}
    if choice.comparison is None:
        order = [*range(len(questions))]
    else:
        comparison = [each for each in report.comparisons if each.against is not None][choice.comparison]
        for number in range(len(questions)):
            tiles = comparison.tiles.get(number, ())
            named = [tile for tile in tiles if report.names[tile.scorer] == choice.metric]
            tile = named[0] if named else comparison.worst(number) if choice.metric == _ANY else None
            if tile is not None:
                found[number] = tile
        order = sorted(found, key=lambda number: (found[number].share, number))
        order += [number for number in range(len(questions)) if number not in found]
    placed = in_order([questions[number].id for number in order], sample, choice)
    tile = found.get(order[placed.place - 1])
    if tile is None:
        return placed
    return attrs.evolve(placed, told=(report.names[tile.scorer], tile.value), share=tile.share)


def in_order(names: Sequence[str], sample: str, choice: Choice) -> Ranked:
    """Return where a sample stands in this order. Raises ValueError: it is not there."""
    place = names.index(sample)
    previous, following = (names[at] if 0 <= at < len(names) else None for at in (place - 1, place + 1))
    return Ranked(choice, previous, following, place + 1, len(names))
