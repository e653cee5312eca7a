"""What a person says of an answer: the fields of a form, and the reviews that its being sent makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from keval import Rubric, Run, Trial
from keval.plugin import LONGEST_NAME, LONGEST_NOTE, Chosen, Review, answer_digest

__all__ = ["Answer", "Verdict", "answer_of", "clean_name", "reviews_of", "rubrics_of"]


@attrs.frozen
class Verdict:
    """All that one person says of one answer; `levels` are by the digest of the rubric."""

    reviewer: str
    thumb: str | None = None
    levels: Mapping[str, int] = attrs.field(factory=dict)
    note: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is said."""
        return not (self.thumb or self.levels or self.note)


@attrs.frozen
class Answer:
    """An answer with what its form shows: the reviewer's own verdict, and those of others.

    `name` is what the fields of its form begin with. `digest` is that of the answer as it is shown.
    """

    trial: Trial
    name: str
    digest: str
    own: Verdict
    others: Sequence[Verdict]


def answer_of(trial: Trial, said: Iterable[Review], reviewer: str, name: str) -> Answer:
    """Return an answer with its verdicts, of the reviews of the run that count."""
    by_person: dict[str, list[Review]] = {reviewer: []}
    for review in said:
        if review.trial == trial.id:
            by_person.setdefault(review.reviewer, []).append(review)
    own, *others = (_verdict(person, reviews) for person, reviews in by_person.items())
    return Answer(trial, name, answer_digest(trial), own, others)


def rubrics_of(run: Run) -> Mapping[str, Rubric]:
    """Return the rubrics that judges of the run grade by, by their digest, in the order of its scorers."""
    used = dict.fromkeys(entry.rubric for entry in run.manifest.scorers if entry.rubric is not None)
    return {digest: run.manifest.rubrics[digest] for digest in used}


def reviews_of(answer: Answer, run: Run, form: Mapping[str, Any], *, blind: bool, chosen: Chosen) -> list[Review]:
    """Return as reviews what a form says of an answer and its reviewer did not say before.

    A field that the form does not have says nothing; one that is empty withdraws what was said. What no form of
    keval's sends is ignored.
    """
    shared = {
        "trial": answer.trial.id,
        "answer": answer.digest,
        "reviewer": answer.own.reviewer,
        "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "blind": blind,
        "chosen": chosen,
    }
    return [Review(**{**shared, **said}) for said in _said(answer, rubrics_of(run), form)]


def clean_name(text: str) -> str:
    """Return a reviewer's name as it is kept: on one line, without spaces around it, and not too long."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(printable.split())[:LONGEST_NAME].strip()


def _said(answer: Answer, rubrics: Mapping[str, Rubric], form: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    given = {key: str(form[f"{answer.name}{key}"]) for key in ("thumb", "note") if f"{answer.name}{key}" in form}
    thumb = given.get("thumb")
    if thumb in ("up", "down", "") and (thumb or None) != answer.own.thumb:
        yield {"kind": "thumb", "thumb": thumb or None}
    for digest, rubric in rubrics.items():
        level = str(form.get(f"{answer.name}level.{digest}", "?"))
        known = {"": None, **{str(each): each for each in rubric.levels}}
        if level in known and known[level] != answer.own.levels.get(digest):
            yield {"kind": "level", "level": known[level], "metric": rubric.name, "rubric": digest}
    if "note" in given:
        note = given["note"].replace("\r\n", "\n").strip()[:LONGEST_NOTE]
        if note != answer.own.note:
            yield {"kind": "note", "note": note or None}


def _verdict(reviewer: str, said: Iterable[Review]) -> Verdict:
    found: dict[str, Any] = {}
    levels = {}
    for review in said:
        if review.rubric is not None and review.level is not None:
            levels[review.rubric] = review.level
        elif review.kind == "thumb":
            found["thumb"] = review.thumb
        elif review.kind == "note":
            found["note"] = review.note or ""
    return Verdict(reviewer, levels=levels, **found)
