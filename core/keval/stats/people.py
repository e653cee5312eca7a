"""How far a judge agrees with people on one rubric, with intervals by questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs
import numpy as np

from keval.manifest import ScorerEntry
from keval.review_findings import JudgeAgreementWithPeople, RaterPair
from keval.stats.intervals import difference_interval, t_quantile
from keval.stats.moments import FloatArray, IntArray
from keval.stats.raters import ordinal_alpha, weighted_kappa

__all__ = ["FEWEST", "Graded", "judge_with_people", "kappa_interval"]

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
    ends = kappa_interval(people, judge, questions)
    above = np.bincount(questions, judge - people) / np.bincount(questions)
    bias = difference_interval(above, span=entry.scale.high - entry.scale.low)
    given = {*people.tolist(), *judge.tolist()}
    shown = sorted({*given, *levels} if len(levels) <= _MOST_LEVELS else given)
    names = [name for name, _ in Counter(one.person for one in graded).most_common()]
    return JudgeAgreementWithPeople(
        metric=entry.metric,
        judge=entry.judge or "",
        n=len({one.answer for one in graded}),
        questions=len(above),
        pairs=len(people),
        kappa=kappa,
        reason=reason,
        ci_low=ends[0] if ends else None,
        ci_high=ends[1] if ends else None,
        alpha=ordinal_alpha(np.stack([people, judge])),
        same=float(np.mean(people == judge)),
        near=float(np.mean(np.abs(people - judge) <= 1)),
        bias=float(np.mean(above)),
        bias_low=bias.low if bias else None,
        bias_high=bias.high if bias else None,
        levels=tuple(int(level) for level in shown),
        confusion=_confusion(people, judge, np.array(shown)),
        people=tuple(_with_one(entry, graded, name) for name in names) if len(names) > 1 else (),
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
    middle = float(np.mean(first))
    a, b = first - middle, second - middle
    parts = (np.ones_like(a), (a - b) ** 2, a, b, a * a + b * b)
    sums = np.stack([np.bincount(questions, part, count) for part in parts])
    whole = sums.sum(axis=1, keepdims=True)
    # What chance would bring is the mean of (a - b)² over all pairs of ratings: E[a² + b²] - 2 E[a] E[b].
    n, apart, at_first, at_second, squares = np.concatenate([whole, whole - sums], axis=1)
    by_chance = squares / n - 2 * at_first * at_second / n**2
    if np.min(by_chance) < 1e-9 or np.min(apart) < 1e-9:
        return None
    logs = np.log(apart / n / by_chance)
    pseudo = count * logs[0] - (count - 1) * logs[1:]
    reach = t_quantile(count - 1, 0.95) * float(np.std(pseudo, ddof=1)) / count**0.5
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


def _confusion(people: FloatArray, judge: FloatArray, levels: FloatArray) -> tuple[tuple[int, ...], ...]:
    counts = np.zeros((len(levels), len(levels)), np.int64)
    np.add.at(counts, (np.searchsorted(levels, people), np.searchsorted(levels, judge)), 1)
    return tuple(tuple(row) for row in counts.tolist())


def _with_one(entry: ScorerEntry, graded: Sequence[Graded], name: str) -> RaterPair:
    """Return how far the judge agrees with one person."""
    own = [one for one in graded if one.person == name]
    return RaterPair((entry.judge or "", name), len(own), *_kappa(*_pairs(own)))
