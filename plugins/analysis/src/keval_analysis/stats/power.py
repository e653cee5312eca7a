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


def minimal_detectable(stderr: float, df: float, *, power: float = 0.8, alpha: float = 0.05) -> float:
    """Return the smallest difference that a comparison with this standard error shows with the given power."""
    return _noncentrality(df, power, alpha) * stderr


def power_among(comparisons: int, df: float, *, alone: float = 0.8, alpha: float = 0.05) -> float:
    """Return the power of one of so many comparisons that are judged together, for what one `alone` shows so often.

    Holm's first step, which is the strictest, holds each p against `alpha` over their number.
    """
    return _power(_noncentrality(df, alone, alpha), df, alpha / comparisons)


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


def needed_between(sd: float, df: float, difference: float, *, alpha: float = 0.05) -> tuple[int, int] | None:
    """Return between how many and how many samples show a difference with 80 % power, as far as `sd` is known.

    The ends are for those of the 95 % interval of a standard deviation that was estimated with so many degrees of
    freedom: `sd` times the root of df over a quantile of chi-square. `None` as `samples_needed`.
    """
    least, most = (sd * math.sqrt(df / float(special.chdtri(df, tail))) for tail in (0.025, 0.975))
    ends = [samples_needed(each, difference, alpha=alpha) for each in (least, most)]
    return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])


def _noncentrality(df: float, power: float, alpha: float) -> float:
    """Return how many standard errors a difference must have for this power."""
    low, high = 0.0, 1.0
    while _power(high, df, alpha) < power:
        low, high = high, 2 * high
    # So many halvings reach the precision of a float.
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _power(middle, df, alpha) < power else (low, middle)
    return high


def _power(noncentrality: float, df: float, alpha: float) -> float:
    critical = float(special.stdtrit(df, 1 - alpha / 2))
    above = 1 - float(special.nctdtr(df, noncentrality, critical))
    if noncentrality > _NEVER_BELOW:
        return above
    return above + float(special.nctdtr(df, noncentrality, -critical))
