"""What judges gave to anchors, which people labelled, and how that differs from what they gave before."""

from __future__ import annotations

import attrs

from keval.records.scores import Scored

ANCHORS = "anchors.jsonl"
ANCHOR_SCORES = "anchor_scores.jsonl"
"""The files of a run with its anchors, and with what judges gave to them; missing if it has none."""


@attrs.frozen
class JudgeDrift:
    """By how much a judge grades the same anchors higher than in an earlier run, the run `against`.

    `difference` is the mean over the `n` anchors that both runs have, in points of the scale, with its 95 % interval;
    `reason` says why there is none. `changes` says what of the judge was changed in between.
    """

    against: str | None = None
    n: int = 0
    difference: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    reason: str | None = None
    changes: tuple[str, ...] = ()

    @property
    def is_sure(self) -> bool:
        """Whether the interval excludes 0."""
        return self.ci_low is not None and self.ci_high is not None and not self.ci_low <= 0 <= self.ci_high


@attrs.frozen
class AnchorFindings(Scored):
    """What a judge gave to the anchors of a run by one rubric: `graded` of them, and `failed` gradings.

    Over the `n` of them that people labelled by this rubric, `same` is the share on the level of people, and `bias` by
    how much the judge's lies above it, with its 95 % interval.
    """

    metric: str
    judge: str
    graded: int
    failed: int
    n: int
    same: float | None = None
    bias: float | None = None
    bias_low: float | None = None
    bias_high: float | None = None
    drift: JudgeDrift = JudgeDrift()
