"""What people said of answers, and how far judges agree with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
from markupsafe import Markup

from keval.plugin import JudgeAgreementWithPeople, Report, Review
from keval_viewer.report_page.rendering import render

_MOST_NOTES = 200
_MOST_PEOPLE = 8
"""People whose own agreement with a judge the page shows."""
_SHADES = 3


@attrs.frozen
class _Cell:
    """A cell of a confusion matrix; `shade` is from 0 for no pairs to 3 for the most."""

    count: int
    shade: int
    same: bool


def reviews(report: Report) -> Markup:
    """Render what people said of answers; nothing if nobody said anything.

    It is read from the run's reviews as they are now, unlike the rest of the report's summary.
    """
    texts = report.reviews
    found = texts.found if texts else None
    notes = [each for each in report.run.reviews() if each.note] if found and found.notes else []
    return render(
        "reviews.html",
        found=found,
        reviewed=texts.reviewed if texts else "",
        warnings=texts.warnings if texts else [],
        heads=texts.heads if texts else (),
        cells=texts.cells if texts else None,
        plain=texts.rubric if texts else None,
        matrices=[(each, [*_matrix(each)]) for each in found.judges] if found else [],
        names=report.names,
        most_people=_MOST_PEOPLE,
        rubrics=list(dict.fromkeys(each.metric for arm in found.arms for each in arm.levels)) if found else [],
        notes=_latest(notes),
        left_out=max(0, len(notes) - _MOST_NOTES),
    )


def _latest(notes: Sequence[Review]) -> Sequence[Review]:
    return notes[::-1][:_MOST_NOTES]


def _matrix(found: JudgeAgreementWithPeople) -> Iterator[tuple[int, Sequence[_Cell]]]:
    """Yield the rows of a confusion matrix, each with the level that people gave."""
    most = max(max(row) for row in found.confusion)
    for place, (level, row) in enumerate(zip(found.levels, found.confusion, strict=True)):
        yield level, [_Cell(count, -(-count * _SHADES // most), place == other) for other, count in enumerate(row)]
