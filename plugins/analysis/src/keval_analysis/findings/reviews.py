"""Reviews: what people say of answers, and how far judges and people agree."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

import attrs
import orjson

from keval.records.scores import Scored
from keval.records.trial import Trial
from keval.store.serialization import read_record
from keval_analysis.findings.effects import Arm, OfArm

Chosen: TypeAlias = Literal["draw", "all", "random"]

LONGEST_NAME = 80
LONGEST_NOTE = 10_000
"""Characters of a reviewer's name, and of a note."""


def _name(review: Review, attribute: attrs.Attribute[str], value: str) -> None:
    if not value.strip() or len(value) > LONGEST_NAME or not value.isprintable():
        raise ValueError(f"a reviewer has a name of at most {LONGEST_NAME} characters on one line, got {value!r:.100}")


def _brief(review: Review, attribute: attrs.Attribute[str | None], value: str | None) -> None:
    if value is not None and not 0 < len(value) <= LONGEST_NOTE:
        raise ValueError(f"a note has 1 to {LONGEST_NOTE:,} characters, got {len(value):,}")


@attrs.frozen
class Review:
    """One thing that a person said of one answer: a level of a rubric, or a note. A line of reviews.jsonl.

    `answer` is the `answer_digest` of what was reviewed, and `at` the ISO time in UTC. `kind` says which of `level`,
    `note` and `skip` the review is; if that is `None`, the reviewer withdraws what they said. A level is of the rubric
    named `metric`, whose digest in the manifest is `rubric`. Who skips an answer cannot say what it is worth.

    `blind` says that the reviewer was shown neither agent, condition and scores, nor what others said. `chosen` says
    how the reviewer came to the answer: through a draw of `keval review --sample`, all of them, or some at random;
    `None` if that is unknown.
    """

    trial: str
    answer: str
    reviewer: str = attrs.field(validator=_name)
    at: str
    kind: Literal["level", "note", "skip"] = attrs.field(validator=attrs.validators.in_(("level", "note", "skip")))
    level: int | None = None
    metric: str | None = None
    rubric: str | None = None
    note: str | None = attrs.field(default=None, validator=_brief)
    skip: bool | None = attrs.field(default=None, validator=attrs.validators.in_((True, None)))
    blind: bool = False
    chosen: Chosen | None = None

    def __attrs_post_init__(self) -> None:
        if (self.kind == "level") != (self.rubric is not None):
            raise ValueError("a level, and nothing else, is of a rubric")

    @property
    def key(self) -> tuple[str, str, str, str, str | None]:
        """What a later review with the same key replaces: who said something of which answer, and on what."""
        return self.reviewer, self.trial, self.answer, self.kind, self.rubric

    @property
    def said(self) -> Any:
        """The level, note or skip; `None` if it is withdrawn."""
        return getattr(self, self.kind)


def standing(reviews: Iterable[Review]) -> list[Review]:
    """Return the reviews that are neither replaced by a later one nor withdrawn, in their order."""
    last: dict[tuple[str, str, str, str, str | None], Review] = {}
    for review in reviews:
        # Taken out first, so that a review stands at the place of the last word.
        last.pop(review.key, None)
        last[review.key] = review
    return [review for review in last.values() if review.said is not None]


def read_review(line: bytes) -> Review:
    """Read a line of reviews.jsonl. Raises LookupError, TypeError or ValueError."""
    return read_record(Review, orjson.loads(line))


def answer_digest(trial: Trial) -> str:
    """Return the SHA-256 of an answer with what it answers: the conversation before, the question, and the output.

    A trial that is run again has the same digest only if it gives the same answer.
    """
    # This form is lasting: digests of it are in reviews.jsonl and draws.jsonl.
    said = [[message.role, message.text] for message in trial.history]
    return hashlib.sha256(json.dumps([said, trial.question, trial.output]).encode()).hexdigest()


@attrs.frozen
class RaterPair:
    """How far two raters agree: Cohen's kappa with quadratic weights over `n` answers, or the reason for none."""

    raters: tuple[str, str]
    n: int
    kappa: float | None
    reason: str | None


@attrs.frozen
class Rate:
    """A share of `n` answers with its 95 % interval, which is unknown for a single question."""

    n: int
    share: float
    ci_low: float | None
    ci_high: float | None


@attrs.frozen
class ArmBias(OfArm):
    """By how many points a judge's level lies above that of people in one arm, over `n` answers.

    Several people's levels of an answer are averaged, and so are the judge's gradings. Of a rubric with two levels,
    `sensitivity` is how often the judge gives the higher one where people do, and `specificity` how often the lower.
    """

    n: int
    bias: float
    ci_low: float | None
    ci_high: float | None
    sensitivity: Rate | None = None
    specificity: Rate | None = None


@attrs.frozen
class CorrectedEffect(Scored):
    """An effect by a judge, corrected by the `labels` that people gave to answers of the two arms.

    It is estimated by prediction-powered inference from the judge's levels of `n` questions, of which the share
    `tuning` is used, and from people's of the labelled answers. `pairs` is how many questions are labelled alike in
    both arms, `None` if they are not the same. `reason` says why there is no difference.

    `bias_difference` is by how much more the judge's level lies above people's in this arm than in the other.
    """

    metric: str
    judge: str
    agent: str
    condition: str
    against: Arm
    kind: Literal["condition", "agent", "run"]
    labels: int
    n: int = 0
    pairs: int | None = None
    difference: float | None = None
    stderr: float | None = None
    df: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    tuning: float | None = None
    bias_difference: float | None = None
    bias_low: float | None = None
    bias_high: float | None = None
    reason: str | None = None


@attrs.frozen
class JudgeAgreementWithPeople:
    """How far a judge agrees with people on one rubric, over answers that were drawn at random, or all.

    A pair is a person's level and one level of the judge's for the same answer: `pairs` of `n` answers to `questions`.
    `kappa` is Cohen's with quadratic weights, with its 95 % interval by questions; `alpha` is Krippendorff's for
    ordinal data; both are over all pairs, and `reason` says why there are none. `same` and `near` are the shares of
    pairs on the same level, and at most one level apart. `bias` is by how many points the judge's level lies above
    that of people, averaged over questions. `confusion` counts pairs by the place in `levels`: a row for each level of
    people, a column for each of the judge's. `people` has the kappa with each person, those with most answers first,
    if there are several. `arms` has the judge's bias in each arm, of blind labels alone.
    """

    metric: str
    judge: str
    n: int
    questions: int
    pairs: int
    kappa: float | None
    reason: str | None
    ci_low: float | None
    ci_high: float | None
    alpha: float | None
    same: float
    near: float
    bias: float
    bias_low: float | None
    bias_high: float | None
    levels: tuple[int, ...]
    confusion: tuple[tuple[int, ...], ...]
    people: tuple[RaterPair, ...] = ()
    arms: tuple[ArmBias, ...] = ()


@attrs.frozen
class PeopleAgreement:
    """How far people agree with each other on a rubric.

    `alpha` is Krippendorff's for ordinal data over the `n` answers that at least two people reviewed, and `reason` says
    why there is none. `pairs` has each two people who reviewed the same answers, two or more.
    """

    metric: str
    n: int
    alpha: float | None
    reason: str | None
    pairs: tuple[RaterPair, ...]


@attrs.frozen
class PeopleLevels:
    """The mean level that people gave by one rubric, over `n` answers."""

    metric: str
    n: int
    mean: float


@attrs.frozen
class ReviewedArm(OfArm):
    """What people said of one arm: `answers` that were reviewed, and levels by rubric."""

    answers: int
    levels: tuple[PeopleLevels, ...] = ()


@attrs.frozen
class ReviewerCount:
    """One person: how many answers they reviewed, and how many of these `blind`."""

    reviewer: str
    answers: int
    blind: int


@attrs.frozen
class DrawnArm(OfArm):
    """Of the answers of one arm that were `drawn`: how many people `reviewed`, and how many they only `skipped`."""

    drawn: int
    reviewed: int
    skipped: int


@attrs.frozen
class ReviewFindings:
    """What the reviews of a run come to.

    `answers` counts the answers that were reviewed, `reviews` each person's review of an answer, and `notes` the notes.
    `chosen` counts reviews by how the reviewer came to the answer, and `uncounted` those of them that no estimate of a
    judge counts, as they were not chosen at random. `outdated` counts what was said of answers that the
    run no longer has, because their trial was run again, and that counts for nothing. `drawn` is what became of the
    answers that were drawn at random, by arm. `corrected` has the effects by judges of whose arms people labelled
    answers.
    """

    answers: int
    reviews: int
    notes: int
    outdated: int
    reviewers: tuple[ReviewerCount, ...] = ()
    chosen: Mapping[str, int] = attrs.field(factory=dict)
    uncounted: Mapping[str, int] = attrs.field(factory=dict)
    judges: tuple[JudgeAgreementWithPeople, ...] = ()
    people: tuple[PeopleAgreement, ...] = ()
    arms: tuple[ReviewedArm, ...] = ()
    drawn: tuple[DrawnArm, ...] = ()
    corrected: tuple[CorrectedEffect, ...] = ()

    @property
    def blind(self) -> int:
        """How many of the reviews were blind."""
        return sum(each.blind for each in self.reviewers)
