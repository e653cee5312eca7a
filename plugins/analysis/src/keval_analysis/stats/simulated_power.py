"""Power of the rule that decides, by simulation from differences that were seen.

Questions are drawn from those of a pilot, reweighted until their mean is the effect that is looked for: of scores that
are 0 or 1, questions then change by a whole point as before, but more of them for the better.
"""

from __future__ import annotations

import math

import attrs
import numpy as np
from scipy import optimize, special

from keval_analysis.stats.paired import Rule
from keval_analysis.stats.power import minimal_detectable, samples_needed
from keval_analysis.stats.units import FloatArray, Units

_DRAWS = 800
"""Runs that are simulated; a power of 80 % is then known to 1.4 points."""
_MOST_SIMULATED = 1_500
"""Questions above which the rule is as powerful as the t-test, by which it is then counted."""
_ROUNDS = 4
_NARROWEST = 0.5
"""The share of the pilot's scatter below which reweighted differences are shifted instead."""


@attrs.frozen(eq=False)
class Differences:
    """Differences of questions, each as likely as its weight."""

    values: FloatArray
    weights: FloatArray

    @property
    def sd(self) -> float:
        """Their standard deviation."""
        mean = float(self.weights @ self.values)
        return math.sqrt(max(0.0, float(self.weights @ (self.values - mean) ** 2)))

    def with_mean(self, effect: float) -> Differences:
        """Return the differences with this mean: reweighted as little as possible, or shifted if that leaves too few.

        The weights are exponential in the difference, which of all with this mean are nearest to the old ones. The
        effect is in the direction in which the pilot's was. Source: Csiszár, I-divergence geometry of probability
        distributions and minimization problems, Annals of Probability 3 (1975), 146-158.
        """
        now = float(self.weights @ self.values)
        values = -self.values if now < 0 else self.values
        low, high = float(values.min()), float(values.max())
        if low < effect < high:
            unit = max(abs(low), abs(high))

            def tilted(strength: float) -> FloatArray:
                exponents = strength * values / unit
                # A common factor changes no weight, and keeps `exp` from an overflow.
                weights = self.weights * np.exp(exponents - exponents.max())
                return np.asarray(weights / weights.sum())

            def excess(strength: float) -> float:
                return float(tilted(strength) @ values) - effect

            # The root is searched between these; an effect close to an end of what was seen may need more.
            if excess(-500.0) < 0 < excess(500.0):
                found = Differences(values, tilted(float(optimize.brentq(excess, -500.0, 500.0))))
                if found.sd >= _NARROWEST * self.sd:
                    return found
        return Differences(values - float(self.weights @ values) + effect, self.weights)


@attrs.frozen(eq=False)
class SimulatedRuns:
    """Runs whose differences are drawn from `seen`, on a scale as wide as `span`; an effect is sure below `alpha`.

    Every call draws the same random numbers, so that results depend on nothing else.
    """

    seen: Differences
    span: float
    alpha: float
    seed: int = 0

    def power(self, effect: float, n: int) -> float:
        """Return the share of runs of `n` questions in which an effect of this size is sure."""
        drawn = self.seen.with_mean(effect)
        # NumPy takes no negative seed.
        rng = np.random.default_rng(self.seed % 2**64)
        # Drawn row by row, so that runs with more questions begin with the same ones. The last sum is left out: it may
        # come out a hair below 1, and there is no question beyond it.
        at = np.searchsorted(np.cumsum(drawn.weights)[:-1], rng.random((n, _DRAWS)).T, side="right")
        rows = drawn.values[at]
        p = Rule.of(Units(rows, np.ones_like(rows)), np.full(_DRAWS, self.span)).p()
        return float(np.mean(p <= self.alpha))

    def questions(self, effect: float, power: float) -> int | None:
        """Return about how many questions show an effect with this power; `None` if ten million would not do."""
        n = samples_needed(self.seen.with_mean(effect).sd, effect, power=power, alpha=self.alpha)
        if n is None:
            return None
        n = max(n, 3)
        for _ in range(_ROUNDS):
            if n > _MOST_SIMULATED:
                return n
            factor = self._further(self.power(effect, n), power) ** 2
            moved = max(3, math.ceil(n * factor))
            if abs(moved - n) <= max(1, 0.02 * n):
                return max(n, moved)
            n = moved
        return n

    def detectable(self, n: int, power: float) -> float | None:
        """Return about which effect `n` questions show with this power; `None` for fewer than three."""
        if n < 3:
            return None
        effect = minimal_detectable(self.seen.sd / math.sqrt(n), n - 1, power=power, alpha=self.alpha)
        if n > _MOST_SIMULATED:
            return effect
        for _ in range(_ROUNDS):
            factor = self._further(self.power(effect, n), power)
            effect *= factor
            if effect >= self.span:
                return None
            if abs(factor - 1) <= 0.01:
                break
        return effect

    def _further(self, seen: float, wanted: float) -> float:
        """Return how many times as many standard errors the effect must have, as normal quantiles say."""
        # A simulated power of 0 or 1 has no finite quantile.
        known = min(max(seen, 0.02), 0.995)
        critical = float(special.ndtri(1 - self.alpha / 2))
        reach = (critical + float(special.ndtri(wanted))) / max(critical + float(special.ndtri(known)), 0.3)
        return min(max(reach, 0.6), 2.0)
