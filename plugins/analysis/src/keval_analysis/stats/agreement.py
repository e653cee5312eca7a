"""Agreement between judges, between people, and of judges with people."""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import TypeAlias

import attrs
import numpy as np

from keval.records.manifest import Manifest, ScorerEntry
from keval.records.scores import ScoreLine, Scorer
from keval.records.trial import Trial
from keval_analysis.findings.draws import Labels, drawn_arms
from keval_analysis.findings.reviews import (
    JudgeAgreementWithPeople,
    PeopleAgreement,
    PeopleLevels,
    RaterPair,
    Review,
    ReviewedArm,
    ReviewerCount,
    ReviewFindings,
    answer_digest,
    standing,
)
from keval_analysis.stats.findings import Findings
from keval_analysis.stats.judge_bias import NOT_BLIND, NOT_RANDOM, OUTDATED, JudgeLabels, Label
from keval_analysis.stats.paired import Differences, paired_effects
from keval_analysis.stats.units import FloatArray, IntArray, t_quantile

Row: TypeAlias = "array[float]"
"""A rater's level per unit, which is one answer under one repetition of the raters; NaN if it gave none."""

Found: TypeAlias = tuple[int, float | None, str | None]
"""A number of answers, a figure, and the reason if there is no figure."""


def ordinal_alpha(ratings: FloatArray) -> float | None:
    """Return Krippendorff's alpha for ordinal data, of an array of raters by units in which NaN is no rating.

    Units with one rating do not count. `None` if nobody rated a unit twice, or all ratings are the same. Source:
    Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section C, with the ordinal metric of section D.
    """
    given = ~np.isnan(ratings)
    often = given.sum(axis=0)
    ratings, given, often = ratings[:, often > 1], given[:, often > 1], often[often > 1]
    levels = np.unique(ratings[given])
    if len(levels) < 2:
        return None
    places = np.searchsorted(levels, ratings)
    coincidences = np.zeros((len(levels), len(levels)))
    for one in range(len(ratings)):
        for other in range(len(ratings)):
            both = given[one] & given[other]
            if one != other:
                # Plain indexing would count a pair of levels that comes several times once.
                np.add.at(coincidences, (places[one, both], places[other, both]), 1 / (often[both] - 1))
    totals = coincidences.sum(axis=1)
    ranks = np.cumsum(totals) - totals / 2
    distances = (ranks[:, None] - ranks) ** 2
    expected = float(totals @ distances @ totals) / (float(totals.sum()) - 1)
    return 1 - float(np.sum(coincidences * distances)) / expected


def weighted_kappa(first: FloatArray, second: FloatArray) -> float | None:
    """Return Cohen's kappa with quadratic weights, the squared distances of the levels; `None` if all are the same.

    Source: Cohen, Weighted kappa, Psychological Bulletin 70 (1968), 213-220. With quadratic weights, the disagreement
    that chance would bring needs no table of levels: it is the mean of (a - b)² over all pairs of ratings.
    """
    by_chance = float(np.var(first) + np.var(second) + (np.mean(first) - np.mean(second)) ** 2)
    if not by_chance:
        return None
    return 1 - float(np.mean((first - second) ** 2)) / by_chance


def panel_alpha(rows: Sequence[Row], repetitions: int) -> Found:
    """Return Krippendorff's alpha over the units that at least two judges rated."""
    return _over_units(rows, repetitions, ordinal_alpha, "two") if len(rows) > 1 else (0, None, "one judge")


def pair_kappa(first: Row, second: Row, repetitions: int) -> Found:
    """Return Cohen's kappa with quadratic weights over the units that both judges rated."""
    return _over_units([first, second], repetitions, lambda both: weighted_kappa(*both), "both")


def _over_units(rows: Sequence[Row], repetitions: int, figure: Callable[[FloatArray], float | None], by: str) -> Found:
    """Return a figure of the levels that raters gave the units which two of them rated, and of how many answers."""
    table = np.full((len(rows), max(map(len, rows))), np.nan)
    for place, row in zip(table, rows, strict=True):
        place[: len(row)] = row
    rated = np.flatnonzero(np.sum(~np.isnan(table), axis=0) > 1)
    if not len(rated):
        return 0, None, f"no answer was graded by {by}"
    found = figure(table[:, rated])
    # Repetitions of a judge grade the same answer.
    return len(np.unique(rated // repetitions)), found, "one level throughout" if found is None else None


FEWEST = 10
"""Fewer questions than this have no interval of kappa: it would miss the truth too often."""
_MOST_LEVELS = 10
"""A rubric with more levels has in its confusion matrix only those that were given."""


@attrs.frozen
class Graded:
    """An answer's level by a person, and those by the repetitions of a judge.

    `answer` and `question` identify the answer and what is independent of others: its sample, or its source.
    """

    answer: str
    question: str
    person: str
    level: int
    by_judge: Sequence[float]


def judge_with_people(
    entry: ScorerEntry, graded: Sequence[Graded], levels: Sequence[int]
) -> JudgeAgreementWithPeople | None:
    """Return how far a judge agrees with people; `None` if no answer was graded by both. `levels` are the rubric's."""
    if not graded:
        return None
    people, judge = _pairs(graded)
    every = [one.question for one in graded for _ in one.by_judge]
    questions = np.unique(every, return_inverse=True)[1]
    kappa, reason = _kappa(people, judge)
    ends = kappa_interval(people, judge, questions) or (None, None)
    above = np.bincount(questions, judge - people) / np.bincount(questions)
    bias = paired_effects([Differences(above, span=entry.scale.high - entry.scale.low)])[0]
    given = {*people.tolist(), *judge.tolist()}
    shown = sorted({*given, *levels} if len(levels) <= _MOST_LEVELS else given)
    confusion = np.zeros((len(shown), len(shown)), np.int64)
    np.add.at(confusion, (np.searchsorted(shown, people), np.searchsorted(shown, judge)), 1)
    names = [name for name, _ in Counter(one.person for one in graded).most_common()]
    # With one person, this would be the same again.
    by_person = ((name, [one for one in graded if one.person == name]) for name in names if len(names) > 1)
    return JudgeAgreementWithPeople(
        metric=entry.metric,
        judge=entry.judge or "",
        n=len({one.answer for one in graded}),
        questions=len(above),
        pairs=len(people),
        kappa=kappa,
        reason=reason,
        ci_low=ends[0],
        ci_high=ends[1],
        alpha=ordinal_alpha(np.stack([people, judge])),
        same=float(np.mean(people == judge)),
        near=float(np.mean(np.abs(people - judge) <= 1)),
        bias=float(np.mean(above)),
        bias_low=bias.low,
        bias_high=bias.high,
        levels=tuple(int(level) for level in shown),
        confusion=tuple(tuple(row) for row in confusion.tolist()),
        people=tuple(RaterPair((entry.judge or "", name), len(own), *_kappa(*_pairs(own))) for name, own in by_person),
    )


def kappa_interval(first: FloatArray, second: FloatArray, questions: IntArray) -> tuple[float, float] | None:
    """Return the 95 % interval of weighted kappa over pairs of ratings, whose questions are numbered from 0.

    It is the jackknife over questions of log(1 - kappa), which is the logarithm of a ratio of two means, with the
    t distribution; so it ends below 1. `None` below 10 questions, and where kappa is 1 with any question left out:
    then nothing says how often the raters would differ. Source: Efron and Tibshirani, An Introduction to the Bootstrap
    (1993), chapter 11; bench/kappa_coverage.py has its coverage.
    """
    count = int(questions.max(initial=-1)) + 1
    if count < FEWEST:
        return None
    # Kappa stays the same if both are shifted alike, and the sums of squares lose no digits.
    middle = float(np.mean(first))
    a, b = first - middle, second - middle
    parts = (np.ones_like(a), (a - b) ** 2, a, b, a * a + b * b)
    sums = np.stack([np.bincount(questions, part, count) for part in parts])
    whole = sums.sum(axis=1, keepdims=True)
    # What chance would bring is the mean of (a - b)² over all pairs of ratings: E[a² + b²] - 2 E[a] E[b].
    n, apart, at_first, at_second, squares = np.concatenate([whole, whole - sums], axis=1)
    by_chance = squares / n - 2 * at_first * at_second / n**2
    # Full agreement may come out a hair off 0, whose logarithm is a number.
    if np.min(by_chance) < 1e-9 or np.min(apart) < 1e-9:
        return None
    logs = np.log(apart / n / by_chance)
    pseudo = count * logs[0] - (count - 1) * logs[1:]
    reach = float(t_quantile(count - 1, 0.95)) * float(np.std(pseudo, ddof=1)) / count**0.5
    return 1 - float(np.exp(logs[0] + reach)), 1 - float(np.exp(logs[0] - reach))


def _kappa(people: FloatArray, judge: FloatArray) -> tuple[float | None, str | None]:
    """Return weighted kappa, or the reason for none. Of one pair it would be 0, whatever the pair."""
    if len(people) < 2:
        return None, "one answer"
    kappa = weighted_kappa(people, judge)
    return kappa, "one level throughout" if kappa is None else None


def _pairs(graded: Sequence[Graded]) -> tuple[FloatArray, FloatArray]:
    """Return the levels of people and of the judge, pair by pair."""
    people = [one.level for one in graded for _ in one.by_judge]
    judge = [level for one in graded for level in one.by_judge]
    return np.array(people, np.float64), np.array(judge, np.float64)


@attrs.define
class _Answer:
    """An answer that people reviewed, with what scorers gave it; `question` is what intervals count as one."""

    agent: str
    condition: str
    sample: str
    question: str
    reviews: list[Review]
    scores: dict[Scorer, list[float]] = attrs.field(factory=lambda: defaultdict(list))


class ReviewTally:
    """Takes the trials and scores of a run one by one, and keeps those of answers that people reviewed."""

    def __init__(self, manifest: Manifest, labels: Labels) -> None:
        self._manifest, self._labels = manifest, labels
        self._by_trial: dict[str, list[Review]] = defaultdict(list)
        for review in standing(labels.reviews):
            if review.kind != "skip":
                self._by_trial[review.trial].append(review)
        self._answers: dict[str, _Answer] = {}
        self._drawn = {(each.trial, each.answer) for draw in labels.draws for each in draw.answers}
        self._whole: set[str] = set()
        # Every review is outdated until its answer is read, as the run may no longer have it.
        self._outdated = sum(map(len, self._by_trial.values()))

    def add_trial(self, trial: Trial) -> None:
        """Take a trial, before its scores."""
        if trial.id not in self._by_trial:
            return
        # A trial that was run again may have another answer, of which the review says nothing.
        digest = answer_digest(trial)
        found = [review for review in self._by_trial[trial.id] if review.answer == digest]
        if found and trial.failure is None:
            key = self._manifest.dataset.cluster_key
            source = None if key is None else trial.sample.metadata.get(key)
            # The words in front keep a sample apart from a source of the same name.
            question = f"sample {trial.sample.id}" if source is None else f"source {source}"
            self._answers[trial.id] = _Answer(trial.agent, trial.condition, trial.sample.id, question, found)
            self._outdated -= len(found)

    def add_score(self, line: ScoreLine) -> None:
        """Take a score that counts."""
        answer = self._answers.get(line.trial)
        if answer is None or line.score.value is None:
            return
        if not line.score.neutral or self._manifest.neutral == "count":
            answer.scores[line.scorer].append(line.score.value)

    def findings(self, findings: Callable[[], Findings], answered: int) -> ReviewFindings | None:
        """Return what the reviews come to; `None` if nobody reviewed anything, and nothing was drawn.

        `answered` is how many trials have an answer. The `findings` of the run are asked for if there are labels enough
        to correct an effect.
        """
        if not self._by_trial and not self._labels.draws:
            return None
        answers = self._answers.values()
        rubrics = {entry.rubric: entry.metric for entry in self._manifest.scorers if entry.rubric is not None}
        # Who reviewed all answers chose none of them.
        self._whole = {rubric for rubric in rubrics if len([*self._by_rubric(rubric)]) >= max(1, answered)}
        graded = [entry for entry in self._manifest.scorers if entry.judge is not None]
        # After `_whole`, by which `_is_random` decides.
        labels = [self._judge_labels(entry) for entry in graded]
        judges = (
            judge_with_people(entry, self._graded(entry), [*self._manifest.rubrics[entry.rubric or ""].levels])
            for entry in graded
        )
        people = [_people(metric, answers, rubric) for rubric, metric in rubrics.items()]
        return ReviewFindings(
            answers=len(answers),
            reviews=sum(len({review.reviewer for review in answer.reviews}) for answer in answers),
            notes=sum(review.kind == "note" for answer in answers for review in answer.reviews),
            outdated=self._outdated,
            reviewers=tuple(_reviewers(answers)),
            chosen=_chosen(answer.reviews for answer in answers),
            uncounted={}
            if self._whole
            else _chosen([each for each in answer.reviews if not self._is_random(each)] for answer in answers),
            judges=tuple(
                attrs.evolve(found, arms=tuple(each.arms(self._manifest)))
                for found, each in zip(judges, labels, strict=True)
                if found is not None
            ),
            people=tuple(found for found in people if found is not None),
            arms=tuple(self._arms(answers, rubrics)),
            drawn=tuple(drawn_arms(self._labels.draws, self._labels.reviews)),
            corrected=tuple(effect for each in labels for effect in each.effects(self._manifest, findings)),
        )

    def _by_rubric(self, rubric: str | None) -> Iterator[tuple[str, _Answer, list[Review]]]:
        """Yield the answers with a level by a rubric: the trial, the answer, and the reviews that give one."""
        for trial, answer in self._answers.items():
            if found := [each for each in answer.reviews if each.level is not None and each.rubric == rubric]:
                yield trial, answer, found

    def _is_random(self, review: Review) -> bool:
        """Return whether nothing about an answer decided that it was reviewed."""
        drawn = review.chosen == "random" or (review.trial, review.answer) in self._drawn
        return drawn or review.rubric in self._whole

    def _graded(self, entry: ScorerEntry) -> list[Graded]:
        """Return the answers that both people and a judge graded by a rubric, as far as they were drawn at random."""
        return [
            Graded(trial, answer.question, review.reviewer, review.level, given)
            for trial, answer, reviews in self._by_rubric(entry.rubric)
            if (given := answer.scores.get(entry.scorer))
            for review in reviews
            if review.level is not None and self._is_random(review)
        ]

    def _judge_labels(self, entry: ScorerEntry) -> JudgeLabels:
        """Return the labels of answers that a judge graded: those that count for effects, and how many do not."""
        found = JudgeLabels(entry)
        changed = {
            (answer.trial, answer.answer)
            for draw in self._labels.draws
            if (draw.metric, draw.judge) == entry.scorer and draw.digest != entry.digest
            for answer in draw.answers
        }
        for _, answer, reviews in self._by_rubric(entry.rubric):
            arm, given = (answer.agent, answer.condition), answer.scores.get(entry.scorer)
            drawn = [each for each in reviews if self._is_random(each)]
            blind = [float(each.level or 0) for each in drawn if each.blind]
            if given is None:
                continue
            if not drawn:
                found.left_out[arm][NOT_RANDOM] += 1
            elif not blind:
                found.left_out[arm][NOT_BLIND] += 1
            elif (reviews[0].trial, reviews[0].answer) in changed:
                found.left_out[arm][OUTDATED] += 1
            else:
                found.counted[arm].append(Label(answer.sample, answer.question, _mean(blind), _mean(given)))
        return found

    def _arms(self, answers: Iterable[_Answer], rubrics: dict[str, str]) -> Iterator[ReviewedArm]:
        by_arm: dict[tuple[str, str], list[_Answer]] = defaultdict(list)
        for answer in answers:
            by_arm[answer.agent, answer.condition].append(answer)
        for agent in self._manifest.agents:
            for condition in self._manifest.conditions:
                if found := by_arm.get((agent, condition)):
                    yield ReviewedArm(agent, condition, len(found), tuple(_people_levels(found, rubrics)))


def _people(metric: str, answers: Iterable[_Answer], rubric: str) -> PeopleAgreement | None:
    """Return how far people agree with each other; `None` unless two of them reviewed."""
    columns = [{each.reviewer: each.level for each in answer.reviews if each.rubric == rubric} for answer in answers]
    names = sorted({name for column in columns for name in column})
    if len(names) < 2:
        return None
    given = ((math.nan if (level := column.get(name)) is None else level for column in columns) for name in names)
    rows = [array("d", each) for each in given]
    n, alpha, reason = panel_alpha(rows, 1)
    pairs = (
        RaterPair(raters, *pair_kappa(first, second, 1))
        for raters, (first, second) in zip(combinations(names, 2), combinations(rows, 2), strict=True)
    )
    return PeopleAgreement(metric, n, alpha, reason, tuple(pair for pair in pairs if pair.n > 1))


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


def _chosen(answers: Iterable[Sequence[Review]]) -> dict[str, int]:
    """Count by the way in which answers were chosen, given the reviews of each, how often a person reviewed one."""
    counts: Counter[str] = Counter()
    for reviews in answers:
        counts.update({review.reviewer: review.chosen or "unknown" for review in reviews}.values())
    return dict(counts)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
