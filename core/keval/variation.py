"""Variation: how much the scores of one question scatter, and where the variance comes from."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from keval.scores import Scorer

__all__ = ["Repetitions", "VarianceComponents"]


@attrs.frozen
class Repetitions:
    """How the repetitions of a sample differ, over the `samples` of one arm that were scored more than once.

    `sd` is the standard deviation about each sample's own mean, pooled. A score passes from `threshold` on, or up to it
    where less is better. `flip_rate` is the probability that one of two repetitions passes and the other does not.
    `pass_at` is by k the probability that at least one of k repetitions passes (pass@k), and `pass_all` that all of
    them do (pass^k); both are means over samples with at least k repetitions.
    """

    samples: int
    sd: float | None
    threshold: float | None = None
    flip_rate: float | None = None
    pass_at: Mapping[str, float] = attrs.field(factory=dict)
    pass_all: Mapping[str, float] = attrs.field(factory=dict)


@attrs.frozen
class VarianceComponents:
    """Where the variance of a metric's scores within an arm comes from, as variances pooled over arms.

    `question` is between samples, `repetition` between the trials of a sample, and `judging` between a judge's gradings
    of one answer; `None` where nothing was repeated. `advice` says what would make the error smaller.
    """

    metric: str
    judge: str | None
    question: float | None
    repetition: float | None
    judging: float | None
    advice: str

    @property
    def scorer(self) -> Scorer:
        """Who scored: a metric alone, or a rubric with its judge."""
        return (self.metric, self.judge)
