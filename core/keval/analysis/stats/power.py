"""What a paired comparison can see: power, the smallest difference, and the samples that are needed.

All go by the two-sided paired t-test and the noncentral t distribution. Source: Cohen, Statistical Power Analysis for
the Behavioral Sciences (1988), chapter 2; Miller, arXiv 2411.00640, section 5, has the same with normal quantiles.
"""

from __future__ import annotations

import math

from scipy import special

_MOST = 10_000_000
"""Nobody asks so many questions, and the noncentral t distribution is no longer computed well."""

_NEVER_BELOW = 7
"""From here on, the other direction is seen with a probability below 1e-11, which SciPy does not always compute."""


def power_of(sd: float, difference: float, n: int, *, alpha: float = 0.05) -> float | None:
    """Return the probability that `n` samples show a difference, if paired differences scatter by `sd` about it.

    `None` for fewer than two samples.
    """
    if n < 2:
        return None
    if not sd:
        return 1.0 if difference else alpha
    return _power(abs(difference) / sd * math.sqrt(n), n - 1, alpha)


def minimal_detectable(
    stderr: float, n: int, df: float | None = None, *, power: float = 0.8, alpha: float = 0.05
) -> float | None:
    """Return the smallest difference that a comparison with this standard error shows with the given power.

    `df` are the degrees of freedom if they are not n - 1. `None` for fewer than two samples.
    """
    df = n - 1 if df is None else df
    if n < 2 or df <= 0:
        return None
    low, high = 0.0, 1.0
    while _power(high, df, alpha) < power:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _power(middle, df, alpha) < power else (low, middle)
    return high * stderr


def samples_needed(sd: float, difference: float, *, power: float = 0.8, alpha: float = 0.05) -> int | None:
    """Return how many samples show a difference with the given power, if paired differences scatter by `sd` about it.

    `None` if there is no difference, or ten million samples would not do.
    """
    if not difference:
        return None

    def enough(n: int) -> bool:
        return (power_of(sd, difference, n, alpha=alpha) or 0.0) >= power

    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
        if high > _MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _power(noncentrality: float, df: float, alpha: float) -> float:
    critical = float(special.stdtrit(df, 1 - alpha / 2))
    above = 1 - float(special.nctdtr(df, noncentrality, critical))
    if noncentrality > _NEVER_BELOW:
        return above
    return above + float(special.nctdtr(df, noncentrality, -critical))
