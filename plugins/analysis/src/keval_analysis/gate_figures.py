"""The figures that gates are decided on: means, differences, shares, what trials use, and how judges drift."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from keval.records.scores import Scale
from keval_analysis.findings.anchors import JudgeDrift
from keval_analysis.findings.cost import Cost
from keval_analysis.findings.effects import Effect
from keval_analysis.findings.summary import ArmScore, ArmTrials, Summary, UsageTotal
from keval_analysis.gate_language import Function

_FEWEST = 2
"""Samples from which a mean decides."""


@attrs.frozen
class Figure:
    """A figure with its 95 % interval. `lacks` says why it cannot decide, and is empty if it can.

    With `at_least`, a part of a total is unknown, and `value` is the rest. With `alike`, all samples have the same
    value, which has no interval where a scale has no end. `counts` tells what the figure was made of. A mean has its
    standard error over `n` samples, and a mean score the ends of its scale.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    lacks: str = ""
    counts: str = ""
    at_least: bool = False
    alike: bool = False
    n: int = 0
    stderr: float | None = None
    scale: Scale | None = None


def of_score(entry: ArmScore | None, scale: Scale | None = None) -> Figure:
    """Return the mean score of an arm, on its scale."""
    if entry is None:
        return Figure(lacks="the run has no scores of this metric")
    lost = [f"{count} {what}" for count, what in ((entry.neutral, "neutral"), (entry.unscored, "unscored")) if count]
    found = _mean(entry.mean, entry.ci_low, entry.ci_high, entry.n, lost, stderr=entry.stderr)
    return attrs.evolve(found, scale=scale)


def of_effect(effect: Effect | None) -> Figure:
    """Return the mean difference of an arm to the baseline."""
    if effect is None:
        return Figure(lacks="the run has no effect of this arm against the baseline")
    return _mean(effect.difference, effect.ci_low, effect.ci_high, effect.n, [], stderr=effect.stderr)


def _mean(
    value: float | None, low: float | None, high: float | None, n: int, lost: list[str], *, stderr: float | None
) -> Figure:
    lacks = "" if n >= _FEWEST else f"too few samples: {', '.join([f'n = {n}', *lost])}"
    return Figure(value, low, high, lacks=lacks, alike=stderr == 0, n=n, stderr=stderr)


def of_share(metric: str, arm: ArmTrials) -> Figure:
    """Return the share of an arm's trials that failed, or of its answers that were truncated or used tools at first."""
    if metric == "failures":
        return _share(arm.failed, arm.trials, "no trial was run")
    if metric == "truncated":
        return _share(arm.truncated, arm.trials - arm.failed, "no trial was answered")
    if arm.compliance is None:
        return Figure(lacks=f"the condition {arm.condition!r} requires no use of tools")
    return _share(arm.compliance.complied_first, arm.compliance.answered, "no trial was answered")


def _share(part: int, whole: int, lacks: str) -> Figure:
    return Figure(part / whole, counts=f"{part} of {whole} trials") if whole else Figure(lacks=lacks)


def of_expense(metric: str, function: Function, arm: ArmTrials, summary: Summary) -> Figure:
    """Return what the trials of an arm used: seconds, tokens, US dollars or tool calls.

    A mean is per answered trial and includes what failed trials used; a total also includes attempts that were given up
    and judgements.
    """
    if function == "total":
        return total(metric, [arm], summary)
    if metric == "seconds":
        found = {"mean": arm.duration, "median": arm.duration_median, "p95": arm.duration_p95}[function]
        return Figure(found) if found is not None else Figure(lacks="no duration is known")
    answered = arm.trials - arm.failed
    if not answered:
        return Figure(lacks="no trial was answered")
    used = _of_trials(metric, arm)
    return Figure(None if used.unknown else used.known / answered, lacks=used.gap(metric))


def total(metric: str, arms: Iterable[ArmTrials], summary: Summary) -> Figure:
    """Return the sum over arms, with attempts that were given up and judgements.

    The cost of an arm's trials has that of their given-up attempts already.
    """
    used = _Used()
    for arm in arms:
        used = used.plus(_of_trials(metric, arm))
        if metric == "tool_calls":
            continue
        judging = [e for e in summary.judging if (e.agent, e.condition) == (arm.agent, arm.condition)]
        if metric == "tokens":
            used = used.plus(_tokens(arm.given_up.usage))
        for each in judging:
            is_tokens, count = metric == "tokens", each.judgements
            used = used.plus(_tokens(each.usage, count) if is_tokens else _dollars(each.cost, count))
    if used.unknown and not used.known:
        return Figure(lacks=used.gap(metric))
    return Figure(used.known, counts=used.gap(metric), at_least=bool(used.unknown))


@attrs.frozen
class _Used:
    """What trials and judgements used, as far as it is known, and of how many it is unknown."""

    known: float = 0.0
    unknown: int = 0

    def plus(self, other: _Used) -> _Used:
        return _Used(self.known + other.known, self.unknown + other.unknown)

    def gap(self, metric: str) -> str:
        """Say of how many it is unknown; nothing if of none."""
        what = {"usd": "price or tokens", "tokens": "tokens", "tool_calls": "tool calls"}[metric]
        return f"the {what} of {self.unknown} trials or judgements are unknown" if self.unknown else ""


def _of_trials(metric: str, arm: ArmTrials) -> _Used:
    answered = arm.trials - arm.failed
    if metric == "tool_calls":
        return _Used(unknown=answered) if arm.tool_calls is None else _Used(arm.tool_calls)
    return _tokens(arm.usage, answered) if metric == "tokens" else _dollars(arm.cost, answered)


def _tokens(usage: UsageTotal, made: int = 0) -> _Used:
    """Return the input and output tokens of so many trials or judgements, of which all may be unknown."""
    known = [count for count in (usage.input_tokens, usage.output_tokens) if count is not None]
    return _Used(sum(known), usage.unknown or (0 if known else made))


def _dollars(cost: Cost, made: int = 0) -> _Used:
    """Return what so many trials or judgements cost; a run without prices knows of none."""
    return _Used(cost.usd or 0.0, cost.unknown or (0 if cost.usd is not None else made))


def of_drift(drift: JudgeDrift) -> Figure:
    """Return how far a judge drifted, up or down."""
    if drift.difference is None:
        return Figure(lacks=drift.reason or "no drift is known")
    counts = f"{drift.n} anchors, since {drift.against}"
    counts = "; ".join((counts, *(f"changed: {change}" for change in drift.changes)))
    if drift.ci_low is None or drift.ci_high is None:
        return Figure(abs(drift.difference), counts=counts, n=drift.n)
    ends = sorted((abs(drift.ci_low), abs(drift.ci_high)))
    low = ends[0] if drift.is_sure else 0.0
    return Figure(abs(drift.difference), low, ends[1], counts=counts, n=drift.n)
