"""Scores as pages show them: what each scorer gave an answer and why, and what it read in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import attrs

from keval import Run, Scale, Score, ScoreLine
from keval.records.scores import Judgement, named_band
from keval_report.marks import Mark, marks_of
from keval_report.words import display_names

_WORST_FIRST = ("bad", "good", "neutral")


@attrs.frozen
class Shown:
    """A score: what it is called, its unit and band, and where it is between the worst and the best of its scale.

    `share` is in percent, `None` for a scale without an end and without a value. `marks` are what its metric read in
    the answer. `key` names it in a URL.
    """

    key: str
    name: str
    unit: str
    band: str
    share: float | None
    line: ScoreLine
    marks: Sequence[Mark]

    @property
    def details(self) -> Mapping[str, Any]:
        """What else the scorer told, without the marks."""
        return {name: value for name, value in self.line.score.details.items() if name != "marks"}


class Claim(NamedTuple):
    """What a judge could not verify, or a reply that was no judgement."""

    judge: str
    text: str


@attrs.frozen
class JudgeRemarks:
    """What judges told beside their scores: claims that they could not verify, and replies that were rejected."""

    claims: Sequence[Claim]
    rejected: Sequence[Claim]
    judgements: Sequence[tuple[str, Judgement]]


def shown_scores(run: Run, lines: Iterable[ScoreLine], answer: str | None = None) -> list[Shown]:
    """Return the scores of an answer as they are shown; with their marks, if the text of the `answer` is given."""
    entries = {entry.scorer: entry.scale for entry in run.manifest.scorers}
    names = display_names(entries)
    found = []
    for line in lines:
        name = names.get(line.scorer, line.metric)
        key = line.metric if line.judge is None else f"{line.metric} {line.judge}"
        # Several gradings of one answer have the same scorer; only their number tells them apart.
        if line.judgement is not None and line.judgement.repetition > 1:
            name, key = (f"{each}, {line.judgement.repetition}" for each in (name, key))
        value, scale = line.score.value, entries.get(line.scorer)
        unit = scale.unit if scale is not None else ""
        marks = marks_of(line.score, answer) if answer is not None else ()
        found.append(Shown(key, name, unit, band_of(line.score, scale), _share(value, scale), line, marks))
    return found


def judge_remarks(lines: Iterable[ScoreLine]) -> JudgeRemarks:
    """Return what judges told, each judgement once, as all of its scores have it."""
    judgements = [*{(line.judge or "", line.judgement): None for line in lines if line.judgement is not None}]
    return JudgeRemarks(
        [Claim(judge, text) for judge, each in judgements for text in each.unverified_claims or ()],
        [Claim(judge, text) for judge, each in judgements for text in each.rejected],
        judgements,
    )


def band_of(score: Score, scale: Scale | None) -> str:
    """Return the name of the band that a score is in, empty without bands; or that it is neutral, or unscored."""
    value = score.value
    if value is None or score.neutral:
        return "unscored" if value is None else "neutral"
    return (named_band(scale.bands, value) or "") if scale is not None else ""


def _share(value: float | None, scale: Scale | None) -> float | None:
    if value is None or scale is None or scale.high == float("inf"):
        return None
    share = min(1.0, max(0.0, (value - scale.low) / (scale.high - scale.low)))
    return round(100 * (1 - share if scale.better == "lower" else share), 1)


@attrs.frozen
class Piece:
    """A piece of an answer, and the marks that are on all of it."""

    text: str
    marks: Sequence[Mark] = ()

    @property
    def kind(self) -> str:
        """Of what kind its marks are; of several, the worst."""
        return min((mark.kind for mark in self.marks), key=_WORST_FIRST.index, default="")

    @property
    def told(self) -> str:
        """As what it was read."""
        return "; ".join(dict.fromkeys(mark.label for mark in self.marks))


def pieces_of(text: str, marks: Sequence[Mark]) -> list[Piece]:
    """Cut a text where marks begin and end, which may overlap. The marks are inside the text, by their beginnings."""
    borders = sorted({0, len(text), *(mark.start for mark in marks), *(mark.end for mark in marks)})
    pieces: list[Piece] = []
    waiting, open_ = list(reversed(marks)), list[Mark]()
    for begin, end in pairwise(borders):
        while waiting and waiting[-1].start <= begin:
            open_.append(waiting.pop())
        open_ = [mark for mark in open_ if mark.end > begin]
        pieces.append(Piece(text[begin:end], tuple(open_)))
    return pieces


def spans_of(text: str, marks: Sequence[Mark]) -> list[Piece]:
    """Return what was marked of a text, in its order: each piece once, with all marks from its beginning to its end."""
    found: dict[tuple[int, int], list[Mark]] = {}
    for mark in marks:
        found.setdefault((mark.start, mark.end), []).append(mark)
    return [Piece(text[start:end], tuple(each)) for (start, end), each in found.items()]
