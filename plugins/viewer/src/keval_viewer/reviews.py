"""Reviews: which answers a person is shown in which order, and what the form for an answer says."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlencode

import attrs

from keval import Rubric, Run, Trial
from keval_analysis.findings.reviews import LONGEST_NAME, LONGEST_NOTE, Chosen, Review, answer_digest
from keval_viewer.runs import written

CHOICES: Sequence[Chosen] = ("random", "all")
"""Ways of choosing answers where none were drawn."""
_DRAW = "draw."
_FILES = ("manifest.json", "trials.jsonl", "scores.jsonl", "draws.jsonl")
"""What is written when answers, scores or draws come."""
_MOST = 10_000
_SEEDS = 2**31


@attrs.frozen
class Choice:
    """Which answers are reviewed and how, as it stands in the URL.

    `count` bounds a choice at random, and `draw` is the id of a draw. With `side`, the answers to a question are
    reviewed together, else one after the other.
    """

    chosen: Chosen = "random"
    draw: str = ""
    count: int = 20
    seed: int = 1
    blind: bool = True
    side: bool = False

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Choice:
        """Read a query or a form; what is not there, or makes no sense, is as usual. Without `blind` nothing is."""
        chosen = str(given.get("chosen"))
        draw = chosen.removeprefix(_DRAW) if chosen.startswith(_DRAW) else ""
        return cls(
            chosen="draw" if draw else next((each for each in CHOICES if each == chosen), CHOICES[0]),
            draw=draw,
            count=_whole(given.get("count"), 20, _MOST),
            seed=_whole(given.get("seed"), 1, _SEEDS),
            blind=given.get("blind") == "1",
            side=given.get("side") == "1",
        )

    def query(self, **more: Any) -> str:
        """Return the choice as a query, with more in it. It names no answer."""
        told: dict[str, Any] = {"chosen": f"{_DRAW}{self.draw}" if self.draw else self.chosen}
        if self.chosen == "random":
            told["count"] = self.count
        told |= {"seed": self.seed, "blind": int(self.blind), "side": int(self.side)}
        return urlencode({**told, **more})


Item: TypeAlias = tuple[str, ...]
"""What is reviewed at a time: the ids of one trial, or of those that answered a question in one repetition."""


def queue_of(run: Run, choice: Choice) -> Sequence[Item]:
    """Return what is to be reviewed, in its order. Raises RunError.

    What was read of a run is kept until it has other answers or scores.
    """
    return _queue(run.path, written(run.path, _FILES), choice)


@lru_cache(maxsize=16)
def _queue(path: Path, version: object, choice: Choice) -> Sequence[Item]:
    # `version` is part of the cache's key alone: it changes when the files do.
    run, answered = Run(path), _answered(path, version)
    chosen = sorted(_chosen(run, answered, choice), key=lambda trial: _place(choice.seed, trial))
    if choice.draw:  # the answers to a question follow each other, so that who stops early leaves few of them unpaired
        chosen.sort(key=lambda trial: _place(choice.seed, answered[trial][0]))
    if not choice.side:
        return [(trial,) for trial in chosen]
    # An answer that was chosen brings all others to its question, as they are to be compared.
    together: dict[tuple[str, int], list[str]] = defaultdict(list)
    for trial in sorted(answered, key=lambda trial: _place(choice.seed, trial)):
        together[answered[trial]].append(trial)
    return [tuple(together[of]) for of in dict.fromkeys(answered[trial] for trial in chosen)]


@lru_cache(maxsize=2)
def _answered(path: Path, version: object) -> Mapping[str, tuple[str, int]]:
    """Return the sample and the repetition of each trial that was answered."""
    return {key.id: (key.sample, key.repetition) for key in Run(path).known_trials.answered}


def _chosen(run: Run, answered: Collection[str], choice: Choice) -> Sequence[str]:
    if choice.chosen == "all":
        return [*answered]
    if choice.draw:
        draws = (draw.answers for draw in run.labels().draws if draw.id == choice.draw)
        return [each.trial for answers in draws for each in answers if each.trial in answered]
    return sorted(answered, key=lambda trial: _place(choice.seed, trial))[: choice.count]


def _place(seed: int, trial: str) -> bytes:
    """Return by what a trial is ordered. Trials that come later change no other's place before or after a third."""
    return hashlib.sha256(f"{seed}\0{trial}".encode("utf-8", "replace")).digest()


def _whole(text: object, usual: int, most: int) -> int:
    digits = str(text or "")
    # `int` raises an error for thousands of digits.
    return max(1, min(int(digits), most)) if digits.isdecimal() and len(digits) < 12 else usual


@attrs.frozen
class ReviewVerdict:
    """All that one person says of one answer, or that they skip it; `levels` are by the digest of the rubric."""

    reviewer: str
    levels: Mapping[str, int] = attrs.field(factory=dict)
    note: str = ""
    skipped: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing is said."""
        return not (self.levels or self.note)


@attrs.frozen
class AnswerForm:
    """An answer with what its form shows: the reviewer's own verdict, and those of others.

    `name` is what the fields of its form begin with. `digest` is that of the answer as it is shown.
    """

    trial: Trial
    name: str
    digest: str
    own: ReviewVerdict
    others: Sequence[ReviewVerdict]


def answer_of(trial: Trial, said: Iterable[Review], reviewer: str, name: str) -> AnswerForm:
    """Return an answer with its verdicts, of the reviews of the run that count."""
    by_person: dict[str, list[Review]] = {reviewer: []}
    for review in said:
        if review.trial == trial.id:
            by_person.setdefault(review.reviewer, []).append(review)
    own, *others = (_verdict(person, reviews) for person, reviews in by_person.items())
    return AnswerForm(trial, name, answer_digest(trial), own, others)


@attrs.frozen
class DrawOffered:
    """A draw that can be reviewed: of its `answers`, so many are `left` that the reviewer said nothing of."""

    value: str
    at: str
    answers: int
    left: int


def draws_of(run: Run, reviewer: str) -> list[DrawOffered]:
    """Return the draws of a run, newest first. Raises RunError."""
    mine = {review.trial for review in run.reviews() if review.reviewer == reviewer}
    found = []
    for draw in reversed(run.labels().draws):
        trials = {trial for item in queue_of(run, Choice("draw", draw.id)) for trial in item}
        found.append(DrawOffered(f"{_DRAW}{draw.id}", draw.at[:10], len(trials), len(trials - mine)))
    return found


def rubrics_of(run: Run) -> Mapping[str, Rubric]:
    """Return the rubrics that people can grade by as judges do, by their digest, in the order of the run's scorers.

    A share of claims is no level, which is what people give, and one answer alone shows no preference.
    """
    used = dict.fromkeys(entry.rubric for entry in run.manifest.scorers if entry.rubric is not None)
    known = run.manifest.rubrics
    return {digest: known[digest] for digest in used if known[digest].kind == "levels"}


def reviews_of(answer: AnswerForm, run: Run, form: Mapping[str, Any], *, blind: bool, chosen: Chosen) -> list[Review]:
    """Return as reviews what a form says of an answer and its reviewer did not say before.

    A field that the form does not have says nothing; one that is empty withdraws what was said. What no form of
    keval's sends is ignored. A form that skips says nothing else, and who says something later skips no more.
    """
    shared: dict[str, Any] = {
        "trial": answer.trial.id,
        "answer": answer.digest,
        "reviewer": answer.own.reviewer,
        "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "blind": blind,
        "chosen": chosen,
    }
    if "skip" in form:
        return [] if answer.own.skipped else [Review(kind="skip", skip=True, **shared)]
    found = [Review(**{**shared, **said}) for said in _said(answer, rubrics_of(run), form)]
    return [*found, Review(kind="skip", **shared)] if found and answer.own.skipped else found


def clean_name(text: str) -> str:
    """Return a reviewer's name as it is kept: on one line, without spaces around it, and not too long."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(printable.split())[:LONGEST_NAME].strip()


def _said(answer: AnswerForm, rubrics: Mapping[str, Rubric], form: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for digest, rubric in rubrics.items():
        # `?` is neither a level nor empty, so a field that is not there says nothing.
        level = str(form.get(f"{answer.name}level.{digest}", "?"))
        known = {"": None, **{str(each): each for each in rubric.levels}}
        if level in known and known[level] != answer.own.levels.get(digest):
            yield {"kind": "level", "level": known[level], "metric": rubric.name, "rubric": digest}
    if f"{answer.name}note" in form:
        note = str(form[f"{answer.name}note"]).replace("\r\n", "\n").strip()[:LONGEST_NOTE]
        if note != answer.own.note:
            yield {"kind": "note", "note": note or None}


def _verdict(reviewer: str, said: Iterable[Review]) -> ReviewVerdict:
    found: dict[str, Any] = {}
    levels = {}
    for review in said:
        if review.rubric is not None and review.level is not None:
            levels[review.rubric] = review.level
        elif review.kind == "note":
            found["note"] = review.note or ""
        elif review.kind == "skip":
            found["skipped"] = True
    return ReviewVerdict(reviewer, levels=levels, **found)
