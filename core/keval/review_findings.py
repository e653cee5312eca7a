"""What the reviews of a run come to: how far judges agree with people, and people with each other."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from keval.scores import Scorer

__all__ = [
    "JudgeAgreementWithPeople",
    "PeopleAgreement",
    "PeopleLevels",
    "RaterPair",
    "ReviewFindings",
    "ReviewedArm",
    "ReviewerCount",
    "ThumbScores",
]


@attrs.frozen
class RaterPair:
    """How far two raters agree: Cohen's kappa with quadratic weights over `n` answers, or the reason for none."""

    raters: tuple[str, str]
    n: int
    kappa: float | None
    reason: str | None


@attrs.frozen
class JudgeAgreementWithPeople:
    """How far a judge agrees with people on one rubric.

    A pair is a person's level and one level of the judge's for the same answer: `pairs` of `n` answers to `questions`.
    `kappa` is Cohen's with quadratic weights, with its 95 % interval by questions; `alpha` is Krippendorff's for
    ordinal data; both are over all pairs, and `reason` says why there are none. `same` and `near` are the shares of
    pairs on the same level, and at most one level apart. `bias` is by how many points the judge's level lies above
    that of people, averaged over questions. `confusion` counts pairs by the place in `levels`: a row for each level of
    people, a column for each of the judge's. `people` has the kappa with each person, those with most answers first,
    if there are several.
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


@attrs.frozen
class PeopleAgreement:
    """How far people agree with each other: on a rubric, or on thumbs if `metric` is `None`.

    `alpha` is Krippendorff's for ordinal data over the `n` answers that at least two people reviewed, and `reason` says
    why there is none. `pairs` has each two people who reviewed the same answers, two or more.
    """

    metric: str | None
    n: int
    alpha: float | None
    reason: str | None
    pairs: tuple[RaterPair, ...]


@attrs.frozen
class ThumbScores:
    """What a metric or judge gave to answers with a thumb up and down: the means over `up` and `down` thumbs.

    Neutral scores and answers without a score are left out. A mean is `None` where there is no such answer.
    """

    metric: str
    judge: str | None
    up: int
    up_mean: float | None
    down: int
    down_mean: float | None

    @property
    def scorer(self) -> Scorer:
        """Who scored: a metric alone, or a rubric with its judge."""
        return (self.metric, self.judge)


@attrs.frozen
class PeopleLevels:
    """The mean level that people gave by one rubric, over `n` answers."""

    metric: str
    n: int
    mean: float


@attrs.frozen
class ReviewedArm:
    """What people said of one arm: `answers` that were reviewed, thumbs `up` and `down`, and levels by rubric."""

    agent: str
    condition: str
    answers: int
    up: int
    down: int
    levels: tuple[PeopleLevels, ...] = ()


@attrs.frozen
class ReviewerCount:
    """One person: how many answers they reviewed, and how many of these `blind`."""

    reviewer: str
    answers: int
    blind: int


@attrs.frozen
class ReviewFindings:
    """What the reviews of a run come to.

    `answers` counts the answers that were reviewed, `reviews` each person's review of an answer, and `notes` the notes.
    `chosen` counts reviews by how the reviewer came to the answer. `outdated` counts what was said of answers that the
    run no longer has, because their trial was run again, and that counts for nothing.
    """

    answers: int
    reviews: int
    notes: int
    outdated: int
    reviewers: tuple[ReviewerCount, ...] = ()
    chosen: Mapping[str, int] = attrs.field(factory=dict)
    judges: tuple[JudgeAgreementWithPeople, ...] = ()
    people: tuple[PeopleAgreement, ...] = ()
    thumbs: tuple[ThumbScores, ...] = ()
    arms: tuple[ReviewedArm, ...] = ()

    @property
    def blind(self) -> int:
        """How many of the reviews were blind."""
        return sum(each.blind for each in self.reviewers)

    @property
    def up(self) -> int:
        """How many thumbs are up."""
        return sum(arm.up for arm in self.arms)

    @property
    def down(self) -> int:
        """How many thumbs are down."""
        return sum(arm.down for arm in self.arms)
