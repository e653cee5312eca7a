"""How far raters agree beyond chance: Krippendorff's alpha and Cohen's weighted kappa."""

from __future__ import annotations

import numpy as np

from keval.stats.moments import FloatArray

__all__ = ["ordinal_alpha", "weighted_kappa"]


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
