"""The questions of a run with their part of the heat map, the answers of all arms, and what people said of answers."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import attrs
from markupsafe import Markup

from keval import Trial
from keval.records.formats import number, signed
from keval.records.scores import Scorer
from keval_analysis.question_comparisons import QuestionComparison, Tile
from keval_analysis.readings import review_findings
from keval_report import reviews as people
from keval_report.report import Report
from keval_report.words import show_command
from keval_viewer.report_page.effects import scale_data
from keval_viewer.report_page.rendering import PITCH, embedded, embedded_items, parts, render, rounded, tile_paths
from keval_viewer.report_page.slices import labels_of, metadata_keys
from keval_viewer.scores import JudgeRemarks, Shown, judge_remarks, shown_scores

MOST_BYTES = 20_000_000
"""How much of transcripts a page holds."""
_AT_FIRST = 12
"""Rows that are elements from the beginning. The page's script makes the others as they are needed."""
_MOST_ASKED = 300
"""Characters of a question that its row shows; all of it is among its answers."""
_MOST_NOTES = 200
_MOST_PEOPLE = 8
"""People whose own agreement with a judge the page shows."""


@attrs.frozen
class Transcripts:
    """The answers that a page holds, by the index of their question, as data for a script element in UTF-8.

    `left_out` counts questions whose answers are not there, as the page would become too large.
    """

    held: Mapping[int, bytes]
    left_out: int

    def scripts(self) -> Iterator[tuple[int, Markup]]:
        """Yield each question that has answers with the content of its script element."""
        # Encoded, they take half of the memory.
        return ((index, Markup(data.decode())) for index, data in self.held.items())  # noqa: S704


@attrs.frozen
class _Cells:
    """What a row shows of one comparison: the paths of its tiles by colour, their figures, and the largest changes."""

    paths: Mapping[str, str]
    figures: str
    worst: str
    best: str


def ranked(report: Report, comparisons: Sequence[QuestionComparison]) -> list[int]:
    """Return the indexes of the questions, the worst first: failed trials, then what fell most in any comparison."""

    def badness(index: int) -> tuple[int, float]:
        falls = [tile.share for each in comparisons if (tile := each.worst(index)) is not None]
        return -report.outline.questions[index].failed, min(falls, default=math.inf)

    return sorted(range(len(report.outline.questions)), key=badness)


def transcripts(report: Report, most_bytes: int = MOST_BYTES) -> Transcripts:
    """Render the answers to the worst questions until a page holds enough of them. Raises RunError."""
    every = report.outline.questions
    held: dict[int, bytes] = {}
    expected = size = 0
    for index in ranked(report, report.comparisons):
        # What is rendered is longer than the texts in it, so no more than these can be needed.
        expected += every[index].size
        if held and expected > most_bytes:
            break
        shown = embedded(str(answers(report, index))).encode("utf-8", "replace")
        size += len(shown)
        if size > most_bytes:
            break
        held[index] = shown
    return Transcripts(held, len(every) - len(held))


def questions(report: Report) -> Markup:
    """Render the table of questions with its filters. Whoever serves it answers for each question when it is opened."""
    return Markup("".join(question_parts(report)))  # noqa: S704


def question_parts(report: Report, kept: Transcripts | None = None) -> Iterator[Markup]:
    """Yield the table of questions in parts. With `kept`, the answers are embedded beside it."""
    shown = {tile.scorer for each in report.comparisons for tiles in each.tiles.values() for tile in tiles}
    # The heat map has a column for each scorer of a tile, in the order of the run's metrics.
    columns = {scorer: column for column, scorer in enumerate(each for each in report.names if each in shown)}
    total = len(report.outline.questions)
    width = max(1, len(columns)) * PITCH
    figures = [*_figures(report, columns)]
    rows = (
        render(
            "question.html",
            question=question,
            most_asked=_MOST_ASKED,
            cells=[_cells(report, comparison, index, columns) for comparison in report.comparisons],
            figures=figures,
            width=width,
            compared=report.comparisons[0].against is not None,
        )
        for index, question in enumerate(report.outline.questions)
    )
    labels = metadata_keys(report.outline.questions)
    places: dict[object, int] = {arm: place for place, arm in enumerate(report.arms)}
    # The figures that are shown first are those of a primary metric, of what a judge grades, or of the first metric.
    wanted = report.summary.primary or [metric for metric, judge in columns if judge is not None]
    chosen = next((place for scorer, place in columns.items() if scorer[0] in wanted), 0)
    return parts(
        "questions.html",
        comparisons=report.comparisons,
        columns=[report.names[scorer] for scorer in columns],
        figures=figures,
        chosen=chosen,
        width=width,
        compared=embedded(
            {
                "arms": [[places.get(each.arm), places.get(each.against)] for each in report.comparisons],
                "metrics": [{"name": report.names[each], **scale_data(report.scales[each])} for each in columns],
            }
        ),
        first=[*islice(rows, _AT_FIRST)],
        others=embedded_items(map(str, rows)),
        labels=labels,
        index=embedded_items(_entries(report, labels, [*columns])),
        kept=kept,
        total=total,
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


def _entries(
    report: Report, labels: Mapping[str, Sequence[str]], scorers: Sequence[Scorer]
) -> Iterator[dict[str, Any]]:
    """Yield what the page's script filters and sorts each question by; see page.js."""
    outline = report.outline
    means = [[outline.values.get(arm, {}).get(scorer, {}) for arm in report.arms] for scorer in scorers]
    spreads = [outline.spreads.get(scorer, {}) for scorer in scorers]
    for index, question in enumerate(outline.questions):
        worst = [each.worst(index) for each in report.comparisons]
        yield {
            "n": index,
            "id": question.id,
            "worst": [None if tile is None else round(tile.share, 4) for tile in worst],
            "worse": [each.got_worse(index) for each in report.comparisons],
            "better": [each.got_better(index) for each in report.comparisons],
            "scores": [[rounded(of_arm.get(index)) for of_arm in of_scorer] for of_scorer in means],
            "spreads": [rounded(of_scorer.get(index)) for of_scorer in spreads],
            "failed": question.failed,
            "unscored": question.unscored,
            "claims": question.claims,
            "labels": {key: labels_of(question.metadata[key]) for key in labels if key in question.metadata},
        }


def _figures(report: Report, scorers: Collection[Scorer]) -> Iterator[tuple[str, str]]:
    """Yield the columns of figures that the table has, each with what it shows."""
    if scorers:
        yield "score", "the mean of the arm that is compared"
    if any(report.outline.spreads.get(scorer) for scorer in scorers):
        yield "spread", "the standard deviation over all trials of a question, of every arm"
    if scorers and report.comparisons[0].against is not None:
        yield "effect", "the difference to the other arm"


@attrs.frozen
class _Answer:
    """A trial as it is shown, with its scores and what judges told beside them."""

    trial: Trial
    scores: Sequence[Shown]
    remarks: JudgeRemarks


def answers(report: Report, index: int) -> Markup:
    """Render the answers of all arms to a question, given by its index. Raises RunError."""
    question, run = report.outline.questions[index], report.run
    by_arm: dict[tuple[str, str], list[_Answer]] = {}
    for trial in sorted(map(run.trial, question.trials), key=lambda trial: trial.repetition):
        lines = run.scores_of(trial.id)
        shown = _Answer(trial, shown_scores(run, lines), judge_remarks(lines))
        by_arm.setdefault((trial.agent, trial.condition), []).append(shown)
    arms = [(place, arm, by_arm[arm]) for place, arm in enumerate(report.arms) if arm in by_arm]
    return render(
        "answers.html",
        run=run,
        sample=run.sample(question.id),
        arms=arms,
        means=[*_means(report, index, [arm for _, arm, _ in arms])],
        show_command=show_command,
    )


def _means(report: Report, index: int, arms: Sequence[tuple[str, str]]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield a row of the table of scores: the metric, and the mean of each arm over its repetitions."""
    values = report.outline.values
    for scorer, name in report.names.items():
        row = [values.get(arm, {}).get(scorer, {}).get(index) for arm in arms]
        if any(value is not None for value in row):
            unit = report.scales[scorer].unit
            yield f"{name} ({unit})" if unit else name, [number(value) for value in row]


def reviews(report: Report) -> Markup:
    """Render what people said of answers; nothing if nobody said anything.

    It is read from the run's reviews as they are now, unlike the rest of the report's summary.
    """
    found = review_findings(report.run)
    if found is None:
        return Markup()
    notes = [each for each in report.run.reviews() if each.note] if found.notes else []
    return render(
        "reviews.html",
        found=found,
        people=people,
        most_people=_MOST_PEOPLE,
        rubrics=[*dict.fromkeys(each.metric for arm in found.arms for each in arm.levels)],
        notes=notes[::-1][:_MOST_NOTES],
        left_out=max(0, len(notes) - _MOST_NOTES),
    )
