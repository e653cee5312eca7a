"""Reviews: what people say of answers, by hand. They are the measure of judges."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import attrs

from keval.records import Trial

__all__ = ["LONGEST_NAME", "LONGEST_NOTE", "Chosen", "Review", "ReviewKind", "answer_digest", "standing"]

ReviewKind: TypeAlias = Literal["thumb", "level", "note"]
Chosen: TypeAlias = Literal["all", "random", "disagreement", "worst", "one"]

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
    """One thing that a person said of one answer: a thumb, a level of a rubric, or a note. A line of reviews.jsonl.

    `answer` is the `answer_digest` of what was reviewed, and `at` the ISO time in UTC. `kind` says which of `thumb`,
    `level` and `note` the review is; if that is `None`, the reviewer withdraws what they said. A level is of the rubric
    named `metric`, whose digest in the manifest is `rubric`.

    `blind` says that the reviewer was shown neither agent, condition and scores, nor what others said. `chosen` says
    how the reviewer came to the answer: through all of them, a random draw, those that judges disagree on, the worst of
    a metric, or `one` by one; `None` if that is unknown.
    """

    trial: str
    answer: str
    reviewer: str = attrs.field(validator=_name)
    at: str
    kind: ReviewKind = attrs.field(validator=attrs.validators.in_(("thumb", "level", "note")))
    thumb: Literal["up", "down"] | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.in_(("up", "down")))
    )
    level: int | None = None
    metric: str | None = None
    rubric: str | None = None
    note: str | None = attrs.field(default=None, validator=_brief)
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
        """The thumb, level or note; `None` if it is withdrawn."""
        return getattr(self, self.kind)


def standing(reviews: Iterable[Review]) -> list[Review]:
    """Return the reviews that are neither replaced by a later one nor withdrawn, in their order."""
    last: dict[tuple[str, str, str, str, str | None], Review] = {}
    for review in reviews:
        last.pop(review.key, None)
        last[review.key] = review
    return [review for review in last.values() if review.said is not None]


def answer_digest(trial: Trial) -> str:
    """Return the SHA-256 of an answer with what it answers: the conversation before, the question, and the output.

    A trial that is run again has the same digest only if it gives the same answer.
    """
    said = [[message.role, message.text] for message in trial.history]
    return hashlib.sha256(json.dumps([said, trial.question, trial.output]).encode()).hexdigest()
