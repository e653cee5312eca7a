"""Effects: how much one arm differs from another on the same samples, and how sure that is.

Differences are in the units of the metric's scale and are never turned around: where less is better, a negative
difference is the better one, and `verdict` says so.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from keval.scores import Scorer

__all__ = ["SMALL_SHARE", "SURE", "Arm", "Effect", "Interaction", "PerProtocol", "Verdict"]

Verdict: TypeAlias = Literal["better", "worse", "same", "unclear", "unknown"]

SURE = 0.05
"""The largest adjusted p of an effect that is called better or worse."""
SMALL_SHARE = 0.05
"""The share of a scale below which a difference does not matter."""


@attrs.frozen
class Arm:
    """One agent under one condition of one run, as that which an effect is measured against."""

    agent: str
    condition: str
    run: str | None = None


@attrs.frozen
class PerProtocol:
    """An effect over the trials alone that used tools as their condition requires.

    It is biased, because which trials comply is no random choice. `n` counts samples.
    """

    n: int
    difference: float | None
    ci_low: float | None
    ci_high: float | None


@attrs.frozen
class Effect:
    """The mean paired difference of an arm to another, over the `n` samples that both have scores for.

    `kind` says what differs: the condition (against the baseline), the agent (against the first), or the run. `mean`
    and `against_mean` are those of the two arms over the `n` samples, and `dropped` counts samples that only one of
    them has a score for. `ci_low` and `ci_high` are the 95 % interval, which `method` made; `t_low` to `bca_high` are
    the paired-t interval and the bias-corrected bootstrap one, for comparison. `d` is Cohen's d for paired data. `p` is
    that of `test`, and `p_adjusted` is Holm's over all effects of this kind in the run.

    `mde` is the smallest difference that this many samples show with 80 % power, and no less than half the interval;
    `needed` is how many samples would show the difference that was seen, `None` if all differ by the same. `bound_low`
    and `bound_high` are the effect if every score that is lost had been the worst or the best; `None` where no more
    than 5 % are lost, or the scale has no end.

    `verdict` is `better` or `worse` if `p_adjusted` is at most 0.05 and the interval leaves out 0, `same` if the
    interval lies within a twentieth of the scale around 0, else `unclear`; `unknown` without an interval.
    """

    metric: str
    judge: str | None
    agent: str
    condition: str
    against: Arm
    n: int
    difference: float | None
    stderr: float | None
    kind: Literal["condition", "agent", "run"] = "condition"
    run: str | None = None
    dropped: int = 0
    mean: float | None = None
    against_mean: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    method: str | None = None
    t_low: float | None = None
    t_high: float | None = None
    bca_low: float | None = None
    bca_high: float | None = None
    d: float | None = None
    p: float | None = None
    test: str | None = None
    p_adjusted: float | None = None
    mde: float | None = None
    needed: int | None = None
    bound_low: float | None = None
    bound_high: float | None = None
    per_protocol: PerProtocol | None = None
    verdict: Verdict = "unknown"

    @property
    def scorer(self) -> Scorer:
        """Who scored: a metric alone, or a rubric with its judge."""
        return (self.metric, self.judge)


@attrs.frozen
class Interaction:
    """How much more a condition does for an agent than for another: the difference of two effects.

    Both effects are against `baseline`, and the interaction is over the `n` samples that all four arms have scores for.
    """

    metric: str
    judge: str | None
    condition: str
    baseline: str
    agent: str
    against_agent: str
    n: int
    difference: float | None
    stderr: float | None
    ci_low: float | None
    ci_high: float | None
    method: str | None
    p: float | None
    p_adjusted: float | None

    @property
    def scorer(self) -> Scorer:
        """Who scored: a metric alone, or a rubric with its judge."""
        return (self.metric, self.judge)
