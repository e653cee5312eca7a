"""A question with its answers as the page shows them: side by side, with the scores that there are so far."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import attrs

from keval import Run, ScoreLine
from keval.records.formats import number
from keval.records.manifest import ScorerEntry
from keval_report.words import display_names, with_units
from keval_viewer.play import Column, PlayedAnswer, Question
from keval_viewer.play_page.progress import Doing, Progress, Said, Step, steps_of
from keval_viewer.scores import Claim, band_of, judge_remarks

Scorer: TypeAlias = tuple[str, str | None]
"""A metric alone, or a rubric and the judge that grades by it."""

GradeState: TypeAlias = Literal["pending", "scored", "neutral", "unscored", "failed"]


@attrs.frozen
class Grade:
    """A score as it is shown. `share` is where it lies in its scale, from 0 to 1; `None` for a scale without an end.

    `differs` says that the columns' answers to the question have not all the same value.
    """

    name: str
    state: GradeState
    value: str = ""
    band: str = ""
    reason: str = ""
    share: float | None = None
    line: ScoreLine | None = None
    differs: bool = False

    @property
    def is_telling(self) -> bool:
        """Whether it says something of the answer, or may yet."""
        return self.state not in ("neutral", "unscored")


@attrs.frozen
class Cell:
    """What a column made of a question: its answer with the steps to it.

    `writes` says that the text is not at its end. `elapsed` is for how many seconds the column has been answering.
    `grades` tell something, and `others` do not, for any column. `earlier` are answers of the same column that it gave
    before it was asked again.
    """

    column: Column
    answer: PlayedAnswer | None = None
    steps: Sequence[Step] = ()
    text: str = ""
    writes: bool = False
    elapsed: float | None = None
    grades: Sequence[Grade] = ()
    others: Sequence[Grade] = ()
    claims: Sequence[Claim] = ()
    earlier: Sequence[Cell] = ()

    @property
    def state(self) -> str:
        """What became of the question here; `unasked` if the column was off or not level."""
        return self.answer.state if self.answer else "unasked"


@attrs.frozen
class Row:
    """A question with its answers."""

    question: Question
    run: Run
    cells: Sequence[Cell]


def row_of(question: Question, run: Run, columns: Iterable[Column], progress: Progress) -> Row:
    """Return a question as it is shown, with a cell for every column that was asked or is on.

    `progress` is that of the feed, for answers in flight.
    """
    entries = run.manifest.scorers
    names = display_names(entry.scorer for entry in entries)
    given: dict[str, list[PlayedAnswer]] = {}
    for answer in question.answers:
        given.setdefault(answer.column, []).append(answer)
    graded = {
        answer.trial: [*_grades(answer, entries, names)] for answer in question.answers if answer.record is not None
    }
    values: dict[str, set[str]] = {}
    telling: set[str] = set()
    for answers in given.values():
        # Of a column that was asked again, the last answer is the one that stands beside the others.
        for grade in graded.get(answers[-1].trial, ()):
            values.setdefault(grade.name, set()).add(grade.value)
            telling |= {grade.name} if grade.is_telling else set()
    differing = {name for name, found in values.items() if len(found) > 1}
    graded = {
        trial: [attrs.evolve(grade, differs=grade.name in differing) for grade in grades]
        for trial, grades in graded.items()
    }
    cells = []
    for column in columns:
        answers = given.get(column.id, [])
        if not answers and not column.is_on:
            continue
        shown = [_cell(column, answer, graded.get(answer.trial, ()), telling, progress) for answer in answers]
        last = shown[-1] if shown else Cell(column)
        cells.append(attrs.evolve(last, earlier=shown[:-1]))
    return Row(question, run, cells)


def _cell(column: Column, answer: PlayedAnswer, grades: Sequence[Grade], telling: set[str], progress: Progress) -> Cell:
    trial = answer.record
    if trial is None:
        writes = answer.state == "answering"
        doing = progress.of(answer.trial) if writes else Doing()
        steps, text = doing.steps, doing.writing
        # What was said last may be the answer, until another step follows.
        if not text and steps and isinstance(steps[-1], Said):
            text, steps = steps[-1].text, steps[:-1]
        elapsed = max(0.0, time.time() - doing.began) if doing.began else None
        return Cell(column, answer, steps, text, writes, elapsed)
    transcript = trial.transcript
    return Cell(
        column=column,
        answer=answer,
        steps=steps_of(transcript) if transcript else (),
        text=trial.output,
        grades=[grade for grade in grades if grade.name in telling],
        others=[grade for grade in grades if grade.name not in telling],
        claims=sorted({*judge_remarks(answer.scores).claims}),
    )


def _grades(answer: PlayedAnswer, entries: Iterable[ScorerEntry], names: Mapping[Scorer, str]) -> Iterator[Grade]:
    """Yield a grade for each scorer of the run, in the order of the config; those that are not there yet, too."""
    lines: dict[object, list[ScoreLine]] = {}
    for line in answer.scores:
        lines.setdefault(line.scorer, []).append(line)
    for entry in entries:
        name = with_units(names[entry.scorer], entry.scale)
        found = lines.get(entry.scorer, [])
        for line in found:
            number_of = line.judgement.repetition if line.judgement else 1
            yield _grade(f"{name}, {number_of}" if number_of > 1 else name, line, entry)
        if not found and answer.state == "scoring":
            yield Grade(name, "pending")


def _grade(name: str, line: ScoreLine, entry: ScorerEntry) -> Grade:
    score, scale = line.score, entry.scale
    if score.value is None:
        told = f"{line.failure.kind}: {line.failure.message}" if line.failure else score.reason
        return Grade(name, "failed" if line.failure else "unscored", "–", "", told, line=line)
    share = None
    if not math.isinf(scale.high):
        share = min(1.0, max(0.0, (score.value - scale.low) / (scale.high - scale.low)))
    state: GradeState = "neutral" if score.neutral else "scored"
    return Grade(name, state, number(score.value), band_of(score, scale), score.reason, share, line)
