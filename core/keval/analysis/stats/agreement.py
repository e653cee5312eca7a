"""Agreement of judges with each other, and with themselves if they grade more than once."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from itertools import combinations
from sys import intern
from typing import TypeAlias

import numpy as np

from keval.analysis.stats.moments import FloatArray, IntArray
from keval.records.manifest import ScorerEntry
from keval.records.scores import ScoreLine
from keval.records.summary import Agreement, JudgePair, JudgeSpread

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
    if len(rows) < 2:
        return 0, None, "one judge"
    units = max(map(len, rows))
    table = _table(rows, units)
    rated = np.flatnonzero(np.sum(~np.isnan(table), axis=0) > 1)
    if not len(rated):
        return 0, None, "no answer was graded by two"
    alpha = ordinal_alpha(table[:, rated])
    return _answers(rated, repetitions), alpha, "one level throughout" if alpha is None else None


def pair_kappa(first: Row, second: Row, repetitions: int) -> Found:
    """Return Cohen's kappa with quadratic weights over the units that both judges rated."""
    table = _table([first, second], min(len(first), len(second)))
    graded = np.flatnonzero(~np.isnan(table).any(axis=0))
    if not len(graded):
        return 0, None, "no answer was graded by both"
    kappa = weighted_kappa(*table[:, graded])
    return _answers(graded, repetitions), kappa, "one level throughout" if kappa is None else None


def _table(rows: Sequence[Row], units: int) -> FloatArray:
    """Return the levels of raters by units; NaN where a rater gave none."""
    table = np.full((len(rows), units), np.nan)
    for place, row in zip(table, rows, strict=True):
        known = min(units, len(row))
        place[:known] = row[:known]
    return table


def _answers(units: IntArray, repetitions: int) -> int:
    """Return how many answers these units are of: repetitions of a judge grade the same answer."""
    return len(np.unique(units // repetitions))


_Row: TypeAlias = "array[float]"
"""A judge's level per unit; NaN if it gave none."""


class JudgeAgreement:
    """Collects the levels that judges give, if several judges or repetitions can be compared."""

    def __init__(self, scorers: Iterable[ScorerEntry]) -> None:
        self._rows: dict[tuple[str, str], dict[str, _Row]] = {}
        self._row_of: dict[tuple[str, str], _Row] = {}
        self._repetitions = 1
        for scorer in scorers:
            if scorer.judge is not None:
                # A rubric with the same name and another content is another rubric.
                rows = self._rows.setdefault((scorer.metric, scorer.rubric or ""), {})
                self._row_of[scorer.metric, scorer.judge] = rows[scorer.judge] = array("d")
                self._repetitions = max(self._repetitions, scorer.repetitions)
        self._compares = self._repetitions > 1 or any(len(rows) > 1 for rows in self._rows.values())
        self._trials: dict[str, int] = {}

    def add(self, line: ScoreLine) -> None:
        """Take a judge's score."""
        if not self._compares or line.judge is None or line.judgement is None or line.score.value is None:
            return
        trial = self._trials.setdefault(intern(line.trial), len(self._trials))
        unit = trial * self._repetitions + line.judgement.repetition - 1
        row = self._row_of[line.metric, line.judge]
        if (lacking := unit + 1 - len(row)) > 0:
            row.extend([math.nan] * lacking)
        row[unit] = line.score.value

    def summary(self) -> tuple[Agreement, ...]:
        """Return the agreement on each rubric that can be compared."""
        if not self._compares:
            return ()
        return tuple(self._agreement(metric, rows) for (metric, _), rows in self._rows.items())

    def _agreement(self, metric: str, rows: dict[str, _Row]) -> Agreement:

        n, alpha, reason = panel_alpha(list(rows.values()), self._repetitions)
        return Agreement(
            metric=metric,
            judges=tuple(rows),
            n=n,
            alpha=alpha,
            reason=reason,
            pairs=tuple(
                JudgePair((first, second), *pair_kappa(rows[first], rows[second], self._repetitions))
                for first, second in combinations(rows, 2)
            ),
            spread=tuple(JudgeSpread(judge, *self._spread(row)) for judge, row in rows.items())
            if self._repetitions > 1
            else (),
        )

    def _spread(self, row: _Row) -> tuple[int, float | None, str | None]:
        """Return the pooled within-answer standard deviation: each answer's own mean is subtracted first."""
        squares, freedom, answers = 0.0, 0, 0
        for start in range(0, len(row), self._repetitions):
            given = [level for level in row[start : start + self._repetitions] if not math.isnan(level)]
            if len(given) > 1:
                mean = math.fsum(given) / len(given)
                squares += math.fsum((level - mean) ** 2 for level in given)
                freedom += len(given) - 1
                answers += 1
        if not freedom:
            return 0, None, "no answer was graded twice"
        return answers, math.sqrt(squares / freedom), None
