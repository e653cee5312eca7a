"""How much one arm differs from another on the same samples, with intervals and a test."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs
import numpy as np
from scipy import special

from keval.analysis.stats.intervals import (
    FloatArray,
    IntArray,
    Interval,
    bca_interval,
    difference_interval,
    hall,
    moments,
    scatters_little,
    t_quantile,
)

_MOST_FLIPPED = 12


@attrs.frozen
class PairedEffect:
    """A mean paired difference over `n` samples; what too few samples leave unknown is `None`.

    `interval` is the headline, `t_low` to `bca_high` are the plain paired-t and the BCa bootstrap interval. `d` is
    Cohen's d for paired data: the difference over the standard deviation of the differences (Cohen 1988, section
    2.3.5, d_z). `p` is that of `test`: `mcnemar_mid_p`, `paired_t`, `skew_t`, `sign_flip` or `sign`.
    """

    n: int
    difference: float | None
    stderr: float | None = None
    df: float | None = None
    interval: Interval | None = None
    t_low: float | None = None
    t_high: float | None = None
    bca_low: float | None = None
    bca_high: float | None = None
    d: float | None = None
    p: float | None = None
    test: str | None = None


def paired(
    arm: FloatArray, against: FloatArray, *, clusters: IntArray | None = None, low: float, high: float, seed: int
) -> PairedEffect:
    """Compare two arms, with one value per sample each, aligned by sample, on a scale from `low` to `high`.

    Pairing removes the variance that comes from how hard each question is. Source: Miller, Adding Error Bars to Evals,
    arXiv 2411.00640, section 4.2 (paired differences).
    """
    differences = arm - against
    n = len(differences)
    found = moments(differences, clusters)
    if found is None:
        return PairedEffect(n, float(np.mean(differences)) if n else None)
    reach = t_quantile(found.df, 0.95) * found.stderr
    bca = bca_interval(differences, clusters=clusters, seed=seed)
    sd = float(np.std(differences, ddof=1)) if found.stderr else 0.0
    tested = p_value(arm, against, clusters=clusters, low=low, high=high)
    return PairedEffect(
        n=n,
        difference=found.mean,
        stderr=found.stderr,
        df=found.df,
        interval=difference_interval(differences, clusters=clusters, span=high - low),
        t_low=found.mean - reach,
        t_high=found.mean + reach,
        bca_low=bca[0] if bca else None,
        bca_high=bca[1] if bca else None,
        d=found.mean / sd if sd else None,
        p=tested[0] if tested else None,
        test=tested[1] if tested else None,
    )


def p_value(
    arm: FloatArray, against: FloatArray, *, clusters: IntArray | None = None, low: float, high: float
) -> tuple[float, str] | None:
    """Return the two-sided p-value of no effect, and the test that it is of; `None` for fewer than two samples."""
    differences = arm - against
    found = moments(differences, clusters)
    if found is None:
        return None
    scale = (low, high)
    if clusters is None and np.all(np.isin(arm, scale)) and np.all(np.isin(against, scale)):
        return mcnemar_mid_p(int(np.sum(differences > 0)), int(np.sum(differences < 0))), "mcnemar_mid_p"
    if found.stderr and not scatters_little(differences, clusters):
        # As the interval, which is never narrower than that of t.
        t = found.mean / found.stderr
        plain, corrected = (2 * float(special.stdtr(found.df, -abs(x))) for x in (t, hall(t, found.skewness)))
        return (plain, "paired_t") if plain >= corrected else (corrected, "skew_t")
    sums = differences if clusters is None else np.bincount(np.unique(clusters, return_inverse=True)[1], differences)
    changed = sums[np.abs(sums) > 1e-12 * np.max(np.abs(sums), initial=0.0)]
    if len(changed) <= _MOST_FLIPPED:
        return sign_flip_p(changed), "sign_flip"
    above = int(np.sum(changed > 0))
    rarer = min(above, len(changed) - above)
    return min(1.0, 2 * float(special.bdtr(rarer, len(changed), 0.5))), "sign"


def mcnemar_mid_p(better: int, worse: int) -> float:
    """Return the two-sided mid-p value of McNemar's exact test, from the samples that changed either way.

    Source: Fagerland, Lydersen and Laake, The McNemar test for binary matched-pairs data, BMC Medical Research
    Methodology 13:91 (2013): the exact conditional p-value less the probability of what was seen.
    """
    changed, rarer = better + worse, min(better, worse)
    log_seen = special.gammaln(changed + 1) - special.gammaln(better + 1) - special.gammaln(worse + 1)
    seen = math.exp(float(log_seen) - changed * math.log(2))
    return min(1.0, 2 * float(special.bdtr(rarer, changed, 0.5)) - seen)


def sign_flip_p(differences: FloatArray) -> float:
    """Return the two-sided p-value of the exact permutation test that flips the signs of differences, at most 20.

    Without an effect, each difference is as likely to have either sign. Source: Fisher, The Design of Experiments
    (1935), section 21.
    """
    if not len(differences):
        return 1.0
    signs = 1 - 2 * (np.arange(2 ** len(differences))[:, None] >> np.arange(len(differences)) & 1)
    sums = np.abs(signs @ differences)
    return float(np.mean(sums >= sums[0] * (1 - 1e-9)))


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted so that the chance of any false positive among all of them stays below the level.

    An unknown p-value stays unknown and does not count. Source: Holm, A simple sequentially rejective multiple test
    procedure, Scandinavian Journal of Statistics 6 (1979), 65-70.
    """
    adjusted: list[float | None] = [None] * len(p)
    known = sorted((value, index) for index, value in enumerate(p) if value is not None)
    largest = 0.0
    for rank, (value, index) in enumerate(known):
        largest = max(largest, min(1.0, value * (len(known) - rank)))
        adjusted[index] = largest
    return adjusted
