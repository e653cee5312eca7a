"""What the reviews of a run come to, collected while its trials and scores are read.

The unit of agreement is a pair: a person's level of an answer, and one level of a judge's for the same answer. The unit
of its intervals is the question, or the source of questions that share one.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations

import attrs

from keval.manifest import Manifest, ScorerEntry
from keval.records import Trial
from keval.review_findings import (
    PeopleAgreement,
    PeopleLevels,
    RaterPair,
    ReviewedArm,
    ReviewerCount,
    ReviewFindings,
    ThumbScores,
)
from keval.reviews import Review, answer_digest, standing
from keval.scores import ScoreLine, Scorer
from keval.stats.people import Graded, judge_with_people
from keval.stats.raters import pair_kappa, panel_alpha

__all__ = ["ReviewTally"]

_THUMBS = {"up": 1.0, "down": 0.0}


@attrs.define
class _Answer:
    """An answer that people reviewed, with what scorers gave it; `question` is what intervals count as one."""

    agent: str
    condition: str
    question: str
    reviews: list[Review]
    scores: dict[Scorer, list[float]] = attrs.field(factory=lambda: defaultdict(list))


class ReviewTally:
    """Takes the trials and scores of a run one by one, and keeps those of answers that people reviewed."""

    def __init__(self, manifest: Manifest, reviews: Iterable[Review]) -> None:
        self._manifest = manifest
        self._by_trial: dict[str, list[Review]] = defaultdict(list)
        for review in standing(reviews):
            self._by_trial[review.trial].append(review)
        self._answers: dict[str, _Answer] = {}
        self._outdated = sum(map(len, self._by_trial.values()))

    def add_trial(self, trial: Trial) -> None:
        """Take a trial, before its scores."""
        if trial.id not in self._by_trial:
            return
        digest = answer_digest(trial)
        found = [review for review in self._by_trial[trial.id] if review.answer == digest]
        if found and trial.failure is None:
            key = self._manifest.dataset.cluster_key
            source = None if key is None else trial.sample.metadata.get(key)
            question = f"sample {trial.sample.id}" if source is None else f"source {source}"
            self._answers[trial.id] = _Answer(trial.agent, trial.condition, question, found)
            self._outdated -= len(found)

    def add_score(self, line: ScoreLine) -> None:
        """Take a score that counts."""
        answer = self._answers.get(line.trial)
        if answer is None or line.score.value is None:
            return
        if not line.score.neutral or self._manifest.neutral == "count":
            answer.scores[line.scorer].append(line.score.value)

    def findings(self) -> ReviewFindings | None:
        """Return what the reviews come to; `None` if nobody reviewed anything."""
        if not self._by_trial:
            return None
        answers = self._answers.values()
        rubrics = {entry.rubric: entry.metric for entry in self._manifest.scorers if entry.rubric is not None}
        graded = [entry for entry in self._manifest.scorers if entry.judge is not None]
        judges = (
            judge_with_people(entry, self._graded(entry), [*self._manifest.rubrics[entry.rubric or ""].levels])
            for entry in graded
        )
        people = [_people(None, answers, "thumb", None)]
        people += [_people(metric, answers, "level", rubric) for rubric, metric in rubrics.items()]
        return ReviewFindings(
            answers=len(answers),
            reviews=sum(len({review.reviewer for review in answer.reviews}) for answer in answers),
            notes=sum(review.kind == "note" for answer in answers for review in answer.reviews),
            outdated=self._outdated,
            reviewers=tuple(_reviewers(answers)),
            chosen=_chosen(answers),
            judges=tuple(found for found in judges if found is not None),
            people=tuple(found for found in people if found is not None),
            thumbs=tuple(_thumbs(self._manifest.scorers, answers)),
            arms=tuple(self._arms(answers, rubrics)),
        )

    def _graded(self, entry: ScorerEntry) -> list[Graded]:
        """Return the answers that both people and a judge graded by a rubric."""
        return [
            Graded(trial, answer.question, review.reviewer, review.level, given)
            for trial, answer in self._answers.items()
            if (given := answer.scores.get(entry.scorer))
            for review in answer.reviews
            if review.level is not None and review.rubric == entry.rubric
        ]

    def _arms(self, answers: Iterable[_Answer], rubrics: dict[str, str]) -> Iterator[ReviewedArm]:
        by_arm: dict[tuple[str, str], list[_Answer]] = defaultdict(list)
        for answer in answers:
            by_arm[answer.agent, answer.condition].append(answer)
        for agent in self._manifest.agents:
            for condition in self._manifest.conditions:
                if found := by_arm.get((agent, condition)):
                    thumbs = Counter(review.thumb for answer in found for review in answer.reviews if review.thumb)
                    levels = tuple(_people_levels(found, rubrics))
                    yield ReviewedArm(agent, condition, len(found), thumbs["up"], thumbs["down"], levels)


def _people(metric: str | None, answers: Iterable[_Answer], kind: str, rubric: str | None) -> PeopleAgreement | None:
    """Return how far people agree with each other; `None` unless two of them reviewed."""
    columns = []
    for answer in answers:
        said = {review.reviewer: review for review in answer.reviews if (review.kind, review.rubric) == (kind, rubric)}
        columns.append({name: _value(review) for name, review in said.items()})
    names = sorted({name for column in columns for name in column})
    if len(names) < 2:
        return None
    rows = [_row(column.get(name) for column in columns) for name in names]
    n, alpha, reason = panel_alpha(rows, 1)
    pairs = (
        RaterPair(raters, *pair_kappa(first, second, 1))
        for raters, (first, second) in zip(combinations(names, 2), combinations(rows, 2), strict=True)
    )
    return PeopleAgreement(metric, n, alpha, reason, tuple(pair for pair in pairs if pair.n > 1))


def _value(review: Review) -> float | None:
    return _THUMBS[review.thumb] if review.thumb else review.level


def _row(values: Iterable[float | None]) -> array[float]:
    return array("d", (math.nan if value is None else value for value in values))


def _thumbs(scorers: Iterable[ScorerEntry], answers: Iterable[_Answer]) -> Iterator[ThumbScores]:
    """Yield for each scorer the mean of what it gave to answers with thumbs up, and with thumbs down."""
    given = [(review.thumb, answer.scores) for answer in answers for review in answer.reviews if review.thumb]
    for entry in scorers:
        values: dict[str, list[float]] = {"up": [], "down": []}
        for thumb, scores in given:
            if found := scores.get(entry.scorer):
                values[thumb].append(_mean(found))
        up, down = values["up"], values["down"]
        if up or down:
            up_mean, down_mean = (_mean(each) if each else None for each in (up, down))
            yield ThumbScores(entry.metric, entry.judge, len(up), up_mean, len(down), down_mean)


def _people_levels(answers: Iterable[_Answer], rubrics: dict[str, str]) -> Iterator[PeopleLevels]:
    """Yield the mean level of people by rubric; the levels of several people for one answer are averaged first."""
    for rubric, metric in rubrics.items():
        means = []
        for answer in answers:
            levels = [
                float(review.level) for review in answer.reviews if review.level is not None and review.rubric == rubric
            ]
            means += [_mean(levels)] if levels else []
        if means:
            yield PeopleLevels(metric, len(means), _mean(means))


def _reviewers(answers: Iterable[_Answer]) -> Iterator[ReviewerCount]:
    """Yield each person, those with most answers first; a review is blind if all of it is."""
    counts: Counter[str] = Counter()
    blind: Counter[str] = Counter()
    for answer in answers:
        seen: dict[str, bool] = {}
        for review in answer.reviews:
            seen[review.reviewer] = seen.get(review.reviewer, True) and review.blind
        counts.update(seen.keys())
        blind.update(name for name, was_blind in seen.items() if was_blind)
    for name, count in counts.most_common():
        yield ReviewerCount(name, count, blind[name])


def _chosen(answers: Iterable[_Answer]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for answer in answers:
        counts.update({review.reviewer: review.chosen or "unknown" for review in answer.reviews}.values())
    return dict(counts)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
