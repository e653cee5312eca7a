"""Slices: the same differences for parts of the questions, by the metadata of the samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
import numpy as np
from markupsafe import Markup

from keval import Scale
from keval.records.scores import Scorer
from keval_analysis.outline import OutlineQuestion
from keval_analysis.question_comparisons import QuestionComparison
from keval_analysis.stats.intervals import Values, mean_intervals
from keval_analysis.stats.paired import Differences, paired_effects
from keval_report.report import Report
from keval_viewer.report_page.rendering import render

MOST_SLICES = 12
"""Values of a key up to which it makes slices."""
_MOST_LABELS = 40
"""Values of a key up to which questions can be filtered by it."""


@attrs.frozen
class _Slice:
    """The mean over the questions of a slice, with its 95 % interval, if they are enough for one."""

    n: int
    mean: float
    low: float | None
    high: float | None


_Row: TypeAlias = tuple[str, Sequence[_Slice | None]]
"""One metric in every slice of a key."""
_Table: TypeAlias = tuple[QuestionComparison, Sequence[_Row]]
"""One comparison in the slices of one key."""


@attrs.frozen
class _Key:
    """The slices of one key of metadata; `others` compare agents."""

    name: str
    slices: Sequence[tuple[str, int]]
    tables: Sequence[_Table]
    others: Sequence[_Table]


def labels_of(value: Any) -> list[str]:
    """Return the slices that a value of metadata puts a sample in: each item of a list is one; a mapping is none."""
    if isinstance(value, list | tuple):
        return list(dict.fromkeys(label for item in value if not isinstance(item, list) for label in labels_of(item)))
    if isinstance(value, Mapping) or value is None:
        return []
    return [str(value).lower() if isinstance(value, bool) else str(value)]


def metadata_keys(questions: Sequence[OutlineQuestion], most: int = _MOST_LABELS) -> dict[str, list[str]]:
    """Return the keys of metadata that divide the questions, each with its values in order: 2 to `most` of them."""
    found: dict[str, dict[str, None]] = {}
    for question in questions:
        for key, value in question.metadata.items():
            found.setdefault(str(key), {}).update(dict.fromkeys(labels_of(value)))
    return {key: sorted(values) for key, values in found.items() if 2 <= len(values) <= most}


def slices(report: Report) -> Markup:
    """Render each comparison within the slices of each key of metadata, every slice with an interval of its own."""
    questions = report.outline.questions
    dividing = metadata_keys(questions, MOST_SLICES)
    every = {str(key) for question in questions for key in question.metadata}
    return render(
        "slices.html",
        keys=[_key(report, key, values) for key, values in dividing.items()],
        left_out=sorted(every - dividing.keys()),
        most=MOST_SLICES,
    )


def _key(report: Report, key: str, values: Sequence[str]) -> _Key:
    members: dict[str, list[int]] = {value: [] for value in values}
    for number, question in enumerate(report.outline.questions):
        for label in labels_of(question.metadata.get(key)):
            members[label].append(number)
    tables: list[_Table] = []
    others: list[_Table] = []
    for comparison in (each for each in report.comparisons if not each.ablation):
        if rows := [*_rows(report, comparison, [*members.values()])]:
            between_agents = comparison.against is not None and comparison.arm[0] != comparison.against[0]
            (others if between_agents else tables).append((comparison, rows))
    return _Key(key, [(value, len(found)) for value, found in members.items()], tables, others)


def _rows(report: Report, comparison: QuestionComparison, members: Sequence[Sequence[int]]) -> Iterator[_Row]:
    """Yield a row for each metric that differs for any question."""
    values: dict[Scorer, dict[int, float]] = {}
    sources = _sources(report)
    for number, tiles in comparison.tiles.items():
        for tile in tiles:
            values.setdefault(tile.scorer, {})[number] = tile.value
    for scorer, name in report.names.items():
        found = values.get(scorer, {})
        if any(found.values()):
            cells = [[number for number in slice_ if number in found] for slice_ in members]
            filled = [([found[n] for n in cell], [sources[n] for n in cell]) for cell in cells if cell]
            told = iter(_slices(filled, report.scales[scorer], paired=comparison.against is not None))
            yield name, [next(told) if cell else None for cell in cells]


def _sources(report: Report) -> list[int]:
    """Return a number for the source of each question; one that shares none has a number of its own."""
    key = report.run.manifest.dataset.cluster_key
    known: dict[str, int] = {}
    found = []
    for number, question in enumerate(report.outline.questions):
        source = question.metadata.get(key) if key is not None else None
        # Below zero, where no number of a source is.
        found.append(-1 - number if source is None else known.setdefault(str(source), len(known)))
    return found


def _slices(cells: Sequence[tuple[Sequence[float], Sequence[int]]], scale: Scale, *, paired: bool) -> Iterator[_Slice]:
    """Estimate mean differences, or the means of an arm, each from one value and source per question."""
    found = [
        (np.array(values), np.array(sources, np.int64) if len({*sources}) < len(sources) else None)
        for values, sources in cells
    ]
    if paired:
        for each in paired_effects([Differences(*row, scale.high - scale.low) for row in found]):
            yield _Slice(each.n, each.difference or 0.0, each.low, each.high)
        return
    intervals = mean_intervals([Values(*row, scale.low, scale.high) for row in found])
    for (values, _), ends in zip(found, intervals, strict=True):
        yield _Slice(len(values), float(np.mean(values)), ends.low if ends else None, ends.high if ends else None)
