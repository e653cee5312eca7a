"""Looking at a run before it is finished: intervals and p-values that hold for whoever looks, and stops when decided.

Looking after each question and stopping at the first 95 % interval without 0 finds a difference in a quarter of the
runs that have none. Each way of looking has a boundary that the studentized mean crosses at any look with a probability
of 5 % at most. An ordinary interval of the level that belongs to the boundary at a look holds at every look. So all
that the ordinary rule accounts for, few questions, skewness and clusters, is accounted for here as well.
"""

from __future__ import annotations

import math
from functools import cache

import attrs
import numpy as np
from scipy import special

from keval_analysis.stats.units import FloatArray, IntArray

FIRST_LOOK = 10
"""Questions from which on a confidence sequence has intervals; it holds for large numbers of them."""
_TUNED_TO = 50
"""Questions at which a confidence sequence is at its narrowest; from 20 to 500, it is hardly wider."""
_LEAST_NOMINAL = 1e-7
"""Levels of p below which the rule is not exact; a look that asks for such a one has no interval."""


@attrs.frozen
class Looking:
    """How a run is looked at: after every question, or at so many declared looks, of which this is the `look`.

    After every question, the boundary is that of an asymptotic confidence sequence, a normal mixture. Source:
    Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, Time-uniform central limit theory and asymptotic confidence
    sequences, Annals of Statistics 52 (2024), 2613-2640, theorem 2.2 and appendix B.2 (how it is tuned). At `looks`
    after equal numbers of questions, it is that of O'Brien and Fleming, A multiple testing procedure for clinical
    trials, Biometrics 35 (1979), 549-556; interval and p are repeated ones, which hold whatever the reason to stop.
    Source: Jennison and Turnbull, Group Sequential Methods with Applications to Clinical Trials (2000), chapters 2, 4
    (t statistics) and 9.
    """

    look: int | None = None
    looks: int | None = None

    def ordinary_level(self, level: float, units: IntArray) -> FloatArray:
        """Return the level of the ordinary interval on so many units that holds at every look; NaN if there is none."""
        alpha = 1 - level
        if self.look is None or self.looks is None:
            known = units >= FIRST_LOOK
            # Rows with fewer units have no interval; the larger number only keeps the formula defined.
            time = np.where(known, units, FIRST_LOOK) * _variance()
            squared = 2 * (time + 1) / time * (np.log(time + 1) / 2 - math.log(alpha))
            nominal = 2 * special.ndtr(-np.sqrt(squared))
        else:
            reach = critical(self.looks, alpha) * math.sqrt(self.looks / self.look)
            nominal = np.full(len(units), 2 * special.ndtr(-reach))
            known = nominal >= _LEAST_NOMINAL
        return np.where(known, 1 - nominal, np.nan)

    def p(self, ordinary: FloatArray, units: IntArray) -> FloatArray:
        """Return the p-value that holds at every look: the least level whose interval excludes what the p is of."""
        # A p of 0 has an infinite z.
        with np.errstate(divide="ignore"):
            z = np.abs(special.ndtri(ordinary / 2))
        if self.look is None or self.looks is None:
            time = np.maximum(units, FIRST_LOOK) * _variance()
            found = np.sqrt(time + 1) * np.exp(-(z**2) * time / (2 * (time + 1)))
            return np.where(units >= FIRST_LOOK, np.minimum(found, 1.0), np.nan)
        share = math.sqrt(self.look / self.looks)
        return np.array([math.nan if math.isnan(each) else crossing(self.looks, each * share) for each in z.tolist()])


def _variance() -> float:
    """Return the variance of the mixture for which a 95 % sequence is at its narrowest at `_TUNED_TO` questions."""
    twice = -2 * math.log(0.05)
    return (twice + math.log(twice + 1)) / _TUNED_TO


@cache
def critical(looks: int, alpha: float) -> float:
    """Return the value that the mean's z statistic is held against at the last look, two-sided.

    At look k of K, it is held against the √(K/k)-fold. For 5 %, Jennison and Turnbull (2000), table 2.3, have the
    values.
    """
    low, high = 0.0, 10.0
    # By halving, as `crossing` falls with the bound; a table has values for few numbers of looks only.
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if crossing(looks, middle) > alpha else (low, middle)
    return high


def crossing(looks: int, reach: float) -> float:
    """Return the probability that without an effect, z exceeds the √(looks/k)-fold of `reach` at any look k.

    The sum of k standard normal variables stays between two constant bounds; the density of those that have stayed so
    far is integrated from look to look. Source: Armitage, McPherson and Rowe, Repeated significance tests on
    accumulating data, JRSS A 132 (1969), 235-244.
    """
    # Beyond 8 standard deviations, a normal tail is no larger than the rounding of the integral.
    bound = min(reach, 8.0) * math.sqrt(looks)
    places, weights = _nodes(16 + 4 * math.ceil(bound))
    places, weights = bound * places, bound * weights
    steps = np.exp(-((places[:, None] - places) ** 2) / 2) / math.sqrt(2 * math.pi)
    density = np.exp(-(places**2) / 2) / math.sqrt(2 * math.pi)
    for _ in range(looks - 1):
        density = steps @ (weights * density)
    return max(0.0, 1.0 - float(weights @ density))


@cache
def _nodes(count: int) -> tuple[FloatArray, FloatArray]:
    """Return places and weights of Gauss-Legendre quadrature from -1 to 1."""
    places, weights = np.polynomial.legendre.leggauss(count)
    return np.asarray(places, np.float64), np.asarray(weights, np.float64)
