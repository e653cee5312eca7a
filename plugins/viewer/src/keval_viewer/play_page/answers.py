"""A question with its answers as the page shows them: side by side, with the scores that there are so far."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs

from keval import Run
from keval.records.formats import number
from keval_report.words import display_names, with_units
from keval_viewer.play import Column, PlayedAnswer, Question
from keval_viewer.play_page.progress import Doing, Progress, Said, Step, steps_of
from keval_viewer.scores import Claim, Shown, judge_remarks, shown_scores

Scorer: TypeAlias = tuple[str, str | None]
"""A metric alone, or a rubric and the judge that grades by it."""


@attrs.frozen
class Grade:
    """A score as it is shown; `None` while it is not there yet.

    `differs` says that the columns' answers to the question have not all the same value.
    """

    name: str
    shown: Shown | None = None
    differs: bool = False

    @property
    def value(self) -> str:
        """The value in figures."""
        return number(self.shown.line.score.value) if self.shown else "…"

    @property
    def is_telling(self) -> bool:
        """Whether it says something of the answer, or may yet."""
        line = self.shown.line if self.shown else None
        return line is None or line.failure is not None or (line.score.value is not None and not line.score.neutral)


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
    names = display_names(entry.scorer for entry in run.manifest.scorers)
    given: dict[str, list[PlayedAnswer]] = {}
    for answer in question.answers:
        given.setdefault(answer.column, []).append(answer)
    graded = {answer.trial: [*_grades(answer, run, names)] for answer in question.answers if answer.record is not None}
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


def _grades(answer: PlayedAnswer, run: Run, names: Mapping[Scorer, str]) -> Iterator[Grade]:
    """Yield a grade for each scorer of the run, in the order of the config; those that are not there yet, too."""
    shown = shown_scores(run, answer.scores)
    for entry in run.manifest.scorers:
        found = [each for each in shown if each.line.scorer == entry.scorer]
        yield from (Grade(with_units(each.name, entry.scale), each) for each in found)
        if not found and answer.state == "scoring":
            yield Grade(with_units(names[entry.scorer], entry.scale))
