"""Deciding gates: a gate and a summary in, a verdict for each arm that the gate is about out."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

import attrs

from keval.errors import RunError
from keval.gates.expectations import ExpectationCheck
from keval.gates.expression import SHARES, Gate, Names, Operator, parse
from keval.gates.figures import Figure, of_effect, of_expense, of_score, of_share, total
from keval.gates.regression import Regression
from keval.scores import Scorer
from keval.store.run import Run
from keval.summary import ArmTrials, Summary
from keval.verdicts import GateResult, GateVerdict

__all__ = ["decide", "with_gates"]

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

    They are on the gates of the run's config and of `flags`, another run, and what was expected of each answer. Raises
    RunError: the manifest is damaged.
    """
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
            results.append(_undecided(text, f"the run lacks what it is about: {error}"))
        else:
            results += decide([gate], summary)
    return results


def decide(gates: Iterable[Gate], summary: Summary) -> list[GateResult]:
    """Decide gates, each for every arm and judge that it is about.

    A gate that names no condition is about every condition but the baseline, or the only one; a gate on failures is
    about every condition, and one on a total that names no arm is about the whole run.
    """
    return [result for gate in gates for result in _named(gate, [*_each(gate, summary)])]


def _named(gate: Gate, results: list[GateResult]) -> list[GateResult]:
    """Return the results under their own names, or a single one under that which the gate was written with."""
    return results if len(results) > 1 else [attrs.evolve(result, gate=gate.written) for result in results]


def _each(gate: Gate, summary: Summary) -> Iterator[GateResult]:
    if gate.function == "total" and gate.agent is None and gate.condition is None:
        yield _result(gate, total(gate.metric, summary.trials, summary), gate.text(gate.metric), "resource")
        return
    arms = [arm for arm in summary.trials if _is_about(gate, arm, summary)]
    if not arms:
        yield _undecided(gate.written, "the run has no arm that it is about")
    for arm in arms:
        if gate.is_resource:
            yield _of_resource(gate, arm, summary)
        else:
            yield from _of_scores(gate, arm, summary)


def _is_about(gate: Gate, arm: ArmTrials, summary: Summary) -> bool:
    if gate.agent not in (None, arm.agent):
        return False
    if gate.condition is not None:
        return arm.condition == gate.condition
    if arm.condition != summary.baseline or (gate.is_resource and gate.metric == "failures"):
        return True
    return not gate.is_effect and all(other.condition == summary.baseline for other in summary.trials)


def _of_resource(gate: Gate, arm: ArmTrials, summary: Summary) -> GateResult:
    about = gate.about(arm.agent, arm.condition)
    if gate.is_effect:
        measured = (effect for effect in summary.expenses if effect.kind == "condition")
        effects = {(effect.agent, effect.condition, effect.metric): effect for effect in measured}
        figure = of_effect(effects.get((arm.agent, arm.condition, gate.metric)))
        return _result(gate, figure, about, "effect", arm=arm)
    if gate.metric in SHARES:
        return _result(gate, of_share(gate.metric, arm), about, "resource", arm=arm)
    figure = of_expense(gate.metric, gate.function, arm, summary)
    return _result(gate, figure, about, "resource", arm=arm)


def _of_scores(gate: Gate, arm: ArmTrials, summary: Summary) -> Iterator[GateResult]:
    graded = [entry.scorer for entry in summary.scorers if entry.metric == gate.metric]
    for scorer in graded:
        judge = scorer[1]
        if gate.judge not in (None, judge):
            continue
        named = judge if gate.judge is not None or len(graded) > 1 else None
        about = gate.about(arm.agent, arm.condition, named)
        kind: Literal["effect", "score"] = "effect" if gate.is_effect else "score"
        yield _result(gate, _found(gate, arm, scorer, summary), about, kind, arm=arm, judge=judge)


def _found(gate: Gate, arm: ArmTrials, scorer: Scorer, summary: Summary) -> Figure:
    where = (arm.agent, arm.condition, scorer)
    if gate.is_effect:
        effects = {(e.agent, e.condition, e.scorer): e for e in summary.effects if e.kind == "condition"}
        return of_effect(effects.get(where))
    return of_score({(entry.agent, entry.condition, entry.scorer): entry for entry in summary.arms}.get(where))


def _result(
    gate: Gate,
    figure: Figure,
    about: str,
    kind: Literal["score", "resource", "effect"],
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


def _undecided(written: str, reason: str) -> GateResult:
    return GateResult(written, "undecided", None, None, None, "", reason, written=written)
