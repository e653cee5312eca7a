"""The questions of a run: a row each with its part of the heat map, which opens on the answers of all arms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
from markupsafe import Markup

from keval.plugin import OutlineQuestion, QuestionComparison, Report, Scorer, Tile, number, signed
from keval_viewer.report_page.answers import answers, lines_of
from keval_viewer.report_page.drawing import PITCH, tile_paths
from keval_viewer.report_page.rendering import anchor, embedded, render
from keval_viewer.report_page.slices import labels_of, metadata_keys

MOST_BYTES = 20_000_000
"""How much of transcripts a page holds."""
_AT_FIRST = 100
"""Rows that are elements from the beginning. The page's script makes the others as they are needed."""
_MOST_ASKED = 300
"""Characters of a question that its row shows; all of it is among its answers."""


@attrs.frozen
class Transcripts:
    """The answers that a page holds, by the index of their question, as data for a script element.

    `left_out` counts questions whose answers are not there, as the page would become too large.
    """

    held: Mapping[int, Markup]
    left_out: int


@attrs.frozen
class _Cells:
    """What a row shows of one comparison: the paths of its tiles by colour, their figures, and the largest changes."""

    paths: Mapping[str, str]
    figures: str
    worst: str
    best: str


@attrs.frozen
class _Row:
    anchor: str
    question: OutlineQuestion
    asked: str
    cells: Sequence[_Cells]
    notes: Sequence[str]


def ranked(report: Report, comparisons: Sequence[QuestionComparison]) -> list[int]:
    """Return the indexes of the questions, the worst first: failed trials, then what fell most in any comparison."""

    def badness(index: int) -> tuple[int, float]:
        falls = [tile.share for each in comparisons if (tile := each.worst(index)) is not None]
        return -report.outline.questions[index].failed, min(falls, default=math.inf)

    return sorted(range(len(report.outline.questions)), key=badness)


def transcripts(report: Report, most_bytes: int = MOST_BYTES) -> Transcripts:
    """Render the answers to the worst questions until a page holds enough of them. Raises RunError."""
    every = report.outline.questions
    chosen: list[int] = []
    expected = 0
    for index in ranked(report, report.comparisons):
        # What is rendered is longer than the texts in it, so no more than these can be needed.
        if chosen and expected + every[index].size > most_bytes:
            break
        chosen.append(index)
        expected += every[index].size
    scores = lines_of(report, (every[index] for index in chosen))
    held: dict[int, Markup] = {}
    size = 0
    for index in chosen:
        shown = embedded(str(answers(report, every[index], scores)))
        size += len(shown.encode("utf-8", "replace"))
        if size > most_bytes:
            break
        held[index] = shown
    return Transcripts(held, len(every) - len(held))


def questions(report: Report, kept: Transcripts | None = None) -> Markup:
    """Render the list of questions with its filters. With `kept`, the answers are embedded beside it.

    Without, whoever serves the fragment answers for each question when it is opened.
    """
    columns = {scorer: column for column, scorer in enumerate(_scorers(report))}
    order = ranked(report, report.comparisons[:1])  # the one that is shown first
    width = max(1, len(columns)) * PITCH
    rows = [
        render(
            "question.html",
            row=_row(report, index, columns),
            width=width,
            compared=report.comparisons[0].against is not None,
        )
        for index in order
    ]
    labels = metadata_keys(report.outline.questions)
    return render(
        "questions.html",
        comparisons=report.comparisons,
        columns=[report.names[scorer] for scorer in columns],
        first=rows[:_AT_FIRST],
        others=embedded([str(row) for row in rows[_AT_FIRST:]]),
        labels=labels,
        index=embedded([_entry(report, index, labels) for index in order]),
        kept=kept,
        total=len(rows),
    )


def _scorers(report: Report) -> list[Scorer]:
    """Return the scorers that the heat map has a column for, in the order of the run's metrics."""
    shown = {tile.scorer for each in report.comparisons for tiles in each.tiles.values() for tile in tiles}
    return [scorer for scorer in report.names if scorer in shown]


def _row(report: Report, index: int, columns: Mapping[Scorer, int]) -> _Row:
    question = report.outline.questions[index]
    asked = " ".join(question.asked.split())
    return _Row(
        anchor=anchor(question.id),
        question=question,
        asked=asked if len(asked) <= _MOST_ASKED else f"{asked[:_MOST_ASKED]} …",
        cells=[_cells(report, comparison, index, columns) for comparison in report.comparisons],
        notes=[*_notes(question)],
    )


def _cells(report: Report, comparison: QuestionComparison, index: int, columns: Mapping[Scorer, int]) -> _Cells:
    tiles = comparison.tiles.get(index, ())

    def told(tile: Tile | None) -> str:
        if tile is None:
            return ""
        return f"{report.names[tile.scorer]} {signed(tile.value) if comparison.against else number(tile.value)}"

    worse = comparison.worst(index) if comparison.against is None or comparison.got_worse(index) else None
    better = comparison.best(index) if comparison.got_better(index) else None
    return _Cells(tile_paths(tiles, columns), "\n".join(map(told, tiles)), told(worse), told(better))


def _notes(question: OutlineQuestion) -> Iterator[str]:
    if question.failed:
        yield f"{question.failed} failed"
    if question.unscored:
        yield f"{question.unscored} unscored"
    if question.claims:
        yield f"{question.claims} unverified claim{'' if question.claims == 1 else 's'}"


def _entry(report: Report, index: int, labels: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return what the page's script filters and sorts a question by; see page.js."""
    question = report.outline.questions[index]
    worst = [each.worst(index) for each in report.comparisons]
    return {
        "n": index,
        "id": question.id,
        "worst": [None if tile is None else round(tile.share, 4) for tile in worst],
        "worse": [each.got_worse(index) for each in report.comparisons],
        "better": [each.got_better(index) for each in report.comparisons],
        "failed": question.failed,
        "unscored": question.unscored,
        "claims": question.claims,
        "labels": {key: labels_of(question.metadata[key]) for key in labels if key in question.metadata},
    }
