"""Deciding gates: a gate and a summary in, a verdict for each arm that the gate is about out."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import attrs

from keval.errors import RunError
from keval.records.formats import number, short_number
from keval.records.scores import Scale, Scorer
from keval.store.run import Run
from keval_analysis.expectations import ExpectationCheck
from keval_analysis.findings.anchors import ANCHOR_SCORES
from keval_analysis.findings.effects import SURE, Effect, allowed_drop
from keval_analysis.findings.summary import ArmScore, ArmTrials, GateResult, GateVerdict, Summary
from keval_analysis.gate_figures import Figure, of_drift, of_effect, of_expense, of_score, of_share, total
from keval_analysis.gate_language import DRIFT, SHARES, Gate, Names, Operator, parse

if TYPE_CHECKING:
    from keval_analysis.stats.effects import Drop

_COMPARES: Mapping[Operator, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_HAIR = 1e-9
"""A mean of 0.8 may come out a hair below 0.8, as a share of the threshold."""


def with_gates(
    run: Run,
    summary: Summary,
    expectations: ExpectationCheck,
    *,
    flags: Iterable[Gate] = (),
    regression: Regression | None = None,
) -> Summary:
    """Return a run's summary with all verdicts.

    They are on the gates of the run's config and of `flags`, another run, and what was expected of each answer. What
    judges gave to anchors is in the summary, too. Raises RunError: the manifest is damaged.
    """
    if (run.path / ANCHOR_SCORES).exists():
        from keval_analysis.anchors import anchor_findings  # needs NumPy, as a regression does

        summary = attrs.evolve(summary, anchors=anchor_findings(run))
    written = run.manifest.config.get("gates") or []
    if not isinstance(written, list):
        raise RunError(f"{run.path / 'manifest.json'} is damaged: config.gates is no list; restore the file")
    results = [*_decide_config(map(str, written), Names.of(run.manifest), summary), *decide(flags, summary)]
    results += regression.results(run) if regression else []
    return attrs.evolve(summary, gates=(*results, *expectations.results()), unmet=tuple(expectations.unmet))


def _decide_config(written: Iterable[str], names: Names, summary: Summary) -> list[GateResult]:
    """Decide the gates of a run's config. One about what the run was narrowed from is undecided."""
    results: list[GateResult] = []
    for text in written:
        try:
            gate = parse(text, names)
        except ValueError as error:
            results.append(_undecided(text, f"not in this run: {error}"))
        else:
            results += decide([gate], summary)
    return results


def decide(gates: Iterable[Gate], summary: Summary) -> list[GateResult]:
    """Decide gates, each for every arm and judge that it is about.

    A gate that names no condition is about every condition but the baseline, or the only one; a gate on failures is
    about every condition, and one on a total that names no arm is about the whole run.
    """
    decided: list[GateResult] = []
    for gate in gates:
        results = [*_each(gate, summary)]
        # A single result has the name that the gate was written with.
        decided += results if len(results) > 1 else [attrs.evolve(result, gate=gate.written) for result in results]
    return decided


def _each(gate: Gate, summary: Summary) -> Iterator[GateResult]:
    if gate.function == "total" and gate.agent is None and gate.condition is None:
        yield _result(gate, total(gate.metric, summary.trials, summary), gate.text(gate.metric), "resource")
        return
    if gate.is_resource and gate.metric == DRIFT:
        yield from _of_drift(gate, summary)
        return
    arms = [arm for arm in summary.trials if _is_about(gate, arm, summary)]
    if not arms:
        yield _undecided(gate.written, "the gate refers to no arm of the run")
    for arm in arms:
        if gate.is_resource:
            yield _of_resource(gate, arm, summary)
        else:
            yield from _of_scores(gate, arm, summary)


def _of_drift(gate: Gate, summary: Summary) -> Iterator[GateResult]:
    """Decide how far each judge may have drifted by each of its rubrics, up or down."""
    if not summary.anchors:
        yield _undecided(
            gate.written, "the run has no anchors: a file of labelled answers, see `anchors` of the config"
        )
    for found in summary.anchors:
        about, drift = gate.text(f"{DRIFT} of {found.metric}@{found.judge}"), found.drift
        result = _result(gate, of_drift(drift), about, "drift", judge=found.judge)
        yield attrs.evolve(result, metric=found.metric, against=drift.against)


_OF_EVERY_ARM = ("failures", "truncated")
"""Shares of trials that are as bad in the baseline as elsewhere."""


def _is_about(gate: Gate, arm: ArmTrials, summary: Summary) -> bool:
    if gate.agent not in (None, arm.agent):
        return False
    if gate.condition is not None:
        return arm.condition == gate.condition
    if arm.condition != summary.baseline or (gate.is_resource and gate.metric in _OF_EVERY_ARM):
        return True
    return not gate.is_effect and all(other.condition == summary.baseline for other in summary.trials)


def _of_resource(gate: Gate, arm: ArmTrials, summary: Summary) -> GateResult:
    about = gate.about(arm.agent, arm.condition)
    if gate.is_effect:
        return _result(gate, of_effect(_at(arm, (gate.metric, None), summary.expenses)), about, "effect", arm=arm)
    is_share = gate.metric in SHARES
    figure = of_share(gate.metric, arm) if is_share else of_expense(gate.metric, gate.function, arm, summary)
    return _result(gate, figure, about, "resource", arm=arm)


def _of_scores(gate: Gate, arm: ArmTrials, summary: Summary) -> Iterator[GateResult]:
    graded = {entry.scorer: entry.scale for entry in summary.scorers if entry.metric == gate.metric}
    for scorer, scale in graded.items():
        judge = scorer[1]
        if gate.judge not in (None, judge):
            continue
        named = judge if gate.judge is not None or len(graded) > 1 else None
        about = gate.about(arm.agent, arm.condition, named)
        kind: Literal["effect", "score"] = "effect" if gate.is_effect else "score"
        if gate.is_effect:
            figure = of_effect(_at(arm, scorer, summary.effects))
        else:
            figure = of_score(next((e for e in summary.arms if _is_of(e, arm, scorer)), None), scale)
        found = _result(gate, figure, about, kind, arm=arm, judge=judge)
        exploratory = bool(summary.primary) and gate.metric not in summary.primary
        yield attrs.evolve(found, exploratory=exploratory, flakes=_flakes(gate, figure, found.verdict))


def _at(arm: ArmTrials, scorer: Scorer, effects: Iterable[Effect]) -> Effect | None:
    """Return the effect of an arm's condition by one scorer."""
    return next((effect for effect in effects if effect.kind == "condition" and _is_of(effect, arm, scorer)), None)


def _is_of(found: ArmScore | Effect, arm: ArmTrials, scorer: Scorer) -> bool:
    return (found.agent, found.condition, found.scorer) == (arm.agent, arm.condition, scorer)


def _result(
    gate: Gate,
    figure: Figure,
    about: str,
    kind: Literal["score", "resource", "effect", "drift"],
    *,
    arm: ArmTrials | None = None,
    judge: str | None = None,
) -> GateResult:
    verdict, reason = _verdict(gate, figure)
    return GateResult(
        gate=about,
        verdict=verdict,
        value=figure.value,
        ci_low=figure.low,
        ci_high=figure.high,
        decided_on=gate.function,
        reason=reason,
        kind=kind,
        agent=arm.agent if arm else None,
        condition=arm.condition if arm else None,
        metric=gate.metric,
        judge=judge,
        op=gate.op,
        threshold=gate.threshold,
        written=gate.written,
    )


def _verdict(gate: Gate, figure: Figure) -> tuple[GateVerdict, str]:
    if figure.lacks:
        return "undecided", figure.lacks
    if gate.function in ("low", "high"):
        return _on_interval(gate, figure)
    if figure.value is None:
        return "undecided", "there is no figure"
    holds = _holds(gate, figure.value)
    # What is unknown can only add to a total.
    if figure.at_least and holds == (gate.op in ("<=", "<")):
        return "undecided", f"it is at least this: {figure.counts}"
    return "held" if holds else "failed", figure.counts


def _on_interval(gate: Gate, figure: Figure) -> tuple[GateVerdict, str]:
    """Decide on one end of the interval; the gate fails only if it would at the other end, too."""
    if figure.low is None or figure.high is None:
        why = ", as all samples have one value on a scale without an end" if figure.alike else ""
        return "undecided", f"there is no interval{why}"
    end, other = (figure.low, figure.high) if gate.function == "low" else (figure.high, figure.low)
    if _holds(gate, end):
        return "held", ""
    return ("failed", "") if not _holds(gate, other) else ("undecided", "the threshold lies within the interval")


def _holds(gate: Gate, value: float) -> bool:
    near = abs(value - gate.threshold) <= _HAIR * max(1.0, abs(gate.threshold))
    return gate.op in (">=", "<=") if near else _COMPARES[gate.op](value, gate.threshold)


def _flakes(gate: Gate, figure: Figure, verdict: GateVerdict) -> float | None:
    """Return the probability that another run decides otherwise, if the mean that was found is the true one.

    Scores that all lie at the ends of their scale are binomial; other means are taken as normal. `None` if no mean
    decides.
    """
    if gate.function != "mean" or verdict == "undecided" or figure.value is None or not figure.stderr:
        return None
    from scipy import special  # takes a tenth of a second to import

    rises = gate.op in (">=", ">")
    if figure.scale is not None and math.isfinite(figure.scale.high):
        span = figure.scale.high - figure.scale.low
        share = (figure.value - figure.scale.low) / span
        if abs((figure.stderr / span) ** 2 * (figure.n - 1) - share * (1 - share)) < _HAIR:
            at = (gate.threshold - figure.scale.low) / span * figure.n
            # The most that still lies below the threshold.
            below = math.ceil(at - _HAIR) - 1 if gate.op in (">=", "<") else math.floor(at + _HAIR)
            low = float(special.bdtr(below, figure.n, share)) if below >= 0 else 0.0
            return low if rises == (verdict == "held") else 1 - low
    low = float(special.ndtr((gate.threshold - figure.value) / figure.stderr))
    return low if rises == (verdict == "held") else 1 - low


def _undecided(written: str, reason: str) -> GateResult:
    return GateResult(written, "undecided", None, None, None, "", reason, written=written)


def _undecided_regression(against: str, reason: str) -> GateResult:
    told = _undecided(f"no regression against {against}", reason)
    return attrs.evolve(told, decided_on="interval", kind="regression", against=against, written=None)


@attrs.frozen
class Regression:
    """The run that another is held against, and the largest drop that is allowed, in the units of each scale.

    `most` is `None` for the margin of each scale.
    """

    against: Run
    most: float | None = 0.0

    def results(self, run: Run) -> list[GateResult]:
        """Compare every arm and scorer that both runs have; undecided if there are none, or a run cannot be read."""
        from keval_analysis.comparison import drops_between  # needs NumPy, which takes a tenth of a second to import

        try:
            drops, scorers = drops_between(run, self.against, self.most)
        except RunError as error:
            return [_undecided_regression(self.against.id, str(error))]
        scales = {entry.scorer: entry.scale for entry in scorers}
        if not any(drop.effect.n for drop in drops):
            told = f"{run.path} and {self.against.path} have no sample in common that both have a score for"
            return [_undecided_regression(self.against.id, told)]
        return decide_regressions(drops, scales, self.most)


def decide_regressions(drops: Iterable[Drop], scales: Mapping[Scorer, Scale], most: float | None) -> list[GateResult]:
    """Decide for each drop between two runs whether it is more than `most`, or than its scale's margin.

    Where neither run has a score, there is no gate.
    """
    compared = [(drop, scales[drop.effect.scorer]) for drop in drops if drop.effect.n or drop.effect.dropped]
    return [_decide(drop, scale, allowed_drop(scale, most)) for drop, scale in compared]


def _decide(drop: Drop, scale: Scale, most: float) -> GateResult:
    effect = drop.effect
    verdict, reason = _regression_verdict(drop, scale, most)
    # Of the effect, as the verdicts of a report are: a drop of a scale where more is better is below 0.
    low, high = drop.low, drop.high
    if scale.better == "higher" and low is not None and high is not None:
        low, high = -high, -low
    judge = f"@{effect.judge}" if effect.judge else ""
    metric = f"{effect.agent}:{effect.condition}/{effect.metric}{judge}"
    return GateResult(
        gate=f"{metric} no more than {most:g} worse than in {effect.against.run}",
        verdict=verdict,
        value=effect.difference,
        ci_low=low,
        ci_high=high,
        level=0.9,
        decided_on="interval",
        reason=reason,
        kind="regression",
        agent=effect.agent,
        condition=effect.condition,
        metric=effect.metric,
        judge=effect.judge,
        threshold=most,
        against=effect.against.run,
        exploratory=effect.family == "exploratory",
    )


def _regression_verdict(drop: Drop, scale: Scale, most: float) -> tuple[GateVerdict, str]:
    """Return whether a drop is more than `most`, and if that is open, why.

    It fails if its 90 % interval lies above `most` and it is significant, too, among all that are compared with it.
    """
    effect = drop.effect
    if effect.verdict == "interim":
        return "undecided", "a run is unfinished"
    if drop.low is None or drop.high is None:
        return "undecided", f"too few samples that both runs have: n = {effect.n}"
    hair = _HAIR * max(1.0, abs(most))
    if drop.high <= most + hair:
        return "held", ""
    unit = f" {scale.unit}" if scale.unit else ""
    open_drop = f"a drop of {short_number(drop.high, 2)}{unit} is not excluded"
    if drop.low <= most + hair:
        return "undecided", open_drop
    if drop.p_adjusted is not None and drop.p_adjusted > SURE:
        told = f"p {number(drop.p_adjusted)} after adjustment for {effect.family_size} comparisons"
        return "undecided", f"{told}; {open_drop}"
    return "failed", ""
