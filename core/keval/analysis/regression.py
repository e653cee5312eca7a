"""Regressions: whether a run is worse than another one by more than is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from keval.errors import RunError
from keval.records.effects import Effect
from keval.records.scores import Scale, Scorer
from keval.records.summary import GateResult, GateVerdict
from keval.store.run import Run

_FEWEST_ALIKE = 6
"""Samples that show a change if all differ alike: the exact two-sided sign test has p = 2 * 0.5**6 = 0.03 there."""


@attrs.frozen
class Regression:
    """The run that another is held against, and the largest drop that is allowed, in the units of each scale."""

    against: Run
    most: float = 0.0

    def results(self, run: Run) -> list[GateResult]:
        """Compare every arm and scorer that both runs have; undecided if there are none, or a run cannot be read."""
        from keval.analysis.comparison import compare_runs  # needs NumPy, which takes a tenth of a second to import

        try:
            found = compare_runs(run, self.against)
        except RunError as error:
            return [_undecided(self.against.id, str(error))]
        scales = {entry.scorer: entry.scale for entry in found.scorers}
        return decide_regressions(found.effects, scales, self.most)


def decide_regressions(effects: Iterable[Effect], scales: Mapping[Scorer, Scale], most: float) -> list[GateResult]:
    """Decide for each effect of kind `run` whether it is a drop, by the better direction of its scale.

    It fails if the whole 95 % interval of the drop lies above `most`. Where neither run has a score, there is no gate.
    """
    compared = (effect for effect in effects if effect.kind == "run" and (effect.n or effect.dropped))
    return [_decide(effect, scales[effect.scorer], most) for effect in compared]


def _decide(effect: Effect, scale: Scale, most: float) -> GateResult:
    verdict: GateVerdict = "undecided"
    reason = f"too few samples that both runs have: n = {effect.n}"
    low, high = effect.ci_low, effect.ci_high
    if low is None and effect.stderr == 0 and (effect.n >= _FEWEST_ALIKE or not effect.difference):
        low = high = effect.difference  # that of every sample; there is no interval if the scale has no end
    if low is not None and high is not None:
        least = low if scale.better == "lower" else -high
        verdict, reason = "failed" if least > most else "held", ""
    judge = f"@{effect.judge}" if effect.judge else ""
    metric = f"{effect.agent}:{effect.condition}/{effect.metric}{judge}"
    return GateResult(
        gate=f"{metric} no more than {most:g} worse than in {effect.against.run}",
        verdict=verdict,
        value=effect.difference,
        ci_low=low,
        ci_high=high,
        decided_on="interval",
        reason=reason,
        kind="regression",
        agent=effect.agent,
        condition=effect.condition,
        metric=effect.metric,
        judge=effect.judge,
        threshold=most,
        against=effect.against.run,
    )


def _undecided(against: str, reason: str) -> GateResult:
    return GateResult(
        gate=f"no regression against {against}",
        verdict="undecided",
        value=None,
        ci_low=None,
        ci_high=None,
        decided_on="interval",
        reason=reason,
        kind="regression",
        against=against,
    )
