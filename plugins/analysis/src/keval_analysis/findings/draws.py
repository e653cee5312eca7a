"""Draws: which answers of a run people are asked to label, chosen at random, so that labels speak for all answers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs
import orjson

from keval.records.trial import TrialKey
from keval.store.serialization import read_record
from keval_analysis.findings.added_lines import AddedLines
from keval_analysis.findings.effects import OfArm
from keval_analysis.findings.reviews import DrawnArm, Review, standing


@attrs.frozen
class DrawnAnswer:
    """An answer that was drawn: its trial, and its `answer_digest`."""

    trial: str
    answer: str
    sample: str
    agent: str
    condition: str
    repetition: int


@attrs.frozen
class DrawnFrom(OfArm):
    """What was drawn from in one arm: its `answers`, and at which of the judge's levels they lie (`none`: unscored)."""

    answers: int
    levels: Mapping[str, int] = attrs.field(factory=dict)


@attrs.frozen
class Draw:
    """Answers drawn at random at one time. A line of draws.jsonl.

    Of the questions that were answered and not drawn before, some are drawn, each with the same probability, and of
    each the answers of all arms in one random repetition. So, with `drawn` as those of this draw and of earlier ones,
    each of `questions` is among them with the same probability, and all answers that were drawn have the same weight.

    The draw is spread over the levels that the `judge` gave by the rubric `metric`; `digest` is that of the scorer, and
    `frame` what was drawn from. `samples` is the digest of the questions that the run had asked then.
    """

    id: str
    at: str
    seed: int
    metric: str
    judge: str | None
    digest: str
    samples: str
    questions: int
    drawn: int
    frame: tuple[DrawnFrom, ...]
    answers: tuple[DrawnAnswer, ...]


def draws_file(folder: Path) -> AddedLines[Draw]:
    """Return where the draws of a run are, by its folder; the file is missing until the first."""
    return AddedLines(folder / "draws.jsonl", read_draw)


def read_draw(line: bytes) -> Draw:
    """Read a line of draws.jsonl. Raises LookupError, TypeError or ValueError."""
    return read_record(Draw, orjson.loads(line))


def questions_digest(trials: Iterable[TrialKey]) -> str:
    """Return the digest of the questions that trials asked."""
    return hashlib.sha256(repr(sorted({key.sample for key in trials})).encode()).hexdigest()[:12]


def drawn_arms(draws: Sequence[Draw], reviews: Iterable[Review]) -> Iterator[DrawnArm]:
    """Yield for each arm what became of the answers that were drawn, by what people said of them."""
    reviewed: set[tuple[str, str]] = set()
    skipped: set[tuple[str, str]] = set()
    for review in standing(reviews):
        (skipped if review.kind == "skip" else reviewed).add((review.trial, review.answer))
    by_arm: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for each in (answer for draw in draws for answer in draw.answers):
        by_arm.setdefault((each.agent, each.condition), []).append((each.trial, each.answer))
    for arm, drawn in by_arm.items():
        # Who skipped an answer that somebody else reviewed leaves no gap.
        said, left = (len({*drawn} & which) for which in (reviewed, skipped - reviewed))
        yield DrawnArm(*arm, len(drawn), said, left)


@attrs.frozen
class Labels:
    """All that people said of answers of a run, line by line, and the draws from the questions that it has now."""

    reviews: Sequence[Review] = ()
    draws: Sequence[Draw] = ()

    def __bool__(self) -> bool:
        return bool(self.reviews or self.draws)
