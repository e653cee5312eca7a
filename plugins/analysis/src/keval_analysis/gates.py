"""Deciding gates: a gate and a summary in, a verdict for each arm that the gate is about out."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import attrs

from keval.errors import RunError
from keval.records.formats import number, short_number
from keval.records.scores import Scale, Scorer
from keval.store.run import Run
from keval_analysis.expectations import ExpectationCheck
from keval_analysis.findings.anchors import ANCHOR_SCORES, JudgeDrift
from keval_analysis.findings.effects import SURE, Effect, allowed_drop
from keval_analysis.findings.summary import ArmScore, ArmTrials, Cost, GateResult, GateVerdict, Summary, UsageTotal
from keval_analysis.gate_language import DRIFT, SHARES, Function, Gate, Names, Operator, parse

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
    # The manifest may be of others, or edited by hand.
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
    if gate.against_commit:
        yield from _of_revisions(gate, summary)
        return
    arms = [arm for arm in summary.trials if _is_about(gate, arm, summary)]
    if not arms:
        yield _undecided(gate.written, "the gate refers to no arm of the run")
    for arm in arms:
        if gate.is_resource:
            yield _of_resource(gate, arm, summary)
        else:
            yield from _of_scores(gate, arm, summary)


def _of_revisions(gate: Gate, summary: Summary) -> Iterator[GateResult]:
    """Decide a gate for each condition that differs from what it was at the commit of `--against`."""
    found = [each for each in summary.contrasts if each.kind == "revision" and gate.condition in (None, each.condition)]
    if summary.commit is None:
        yield _undecided(gate.written, "the run is held against no commit; `keval run --against REF` does that")
    elif not found:
        nothing = _undecided(gate.written, f"no condition of the gate differs from what it was at {summary.commit}")
        yield attrs.evolve(nothing, verdict="held")
    for contrast in found:
        held = attrs.evolve(summary, effects=contrast.effects, expenses=contrast.expenses)
        for arm in summary.trials:
            if arm.condition == contrast.condition and gate.agent in (None, arm.agent):
                yield from [_of_resource(gate, arm, held)] if gate.is_resource else _of_scores(gate, arm, held)


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
    if gate.is_resource and gate.metric in _OF_EVERY_ARM:
        return True
    # What a condition was at a commit is nothing that a change is to answer for.
    before = {each.against for each in summary.contrasts if each.kind == "revision"}
    if arm.condition != summary.baseline:
        return arm.condition not in before
    return not gate.is_effect and {other.condition for other in summary.trials} <= {summary.baseline, *before}


def _of_resource(gate: Gate, arm: ArmTrials, summary: Summary) -> GateResult:
    about = gate.about(arm.agent, arm.condition)
    if gate.is_effect:
        return _result(gate, of_effect(_at(arm, (gate.metric, None), summary.expenses)), about, "effect", arm=arm)
    is_share = gate.metric in SHARES
    figure = of_share(gate.metric, arm) if is_share else of_expense(gate.metric, gate.function, arm, summary)
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
        if gate.is_effect:
            figure = of_effect(_at(arm, scorer, summary.effects))
        else:
            figure = of_score(next((e for e in summary.arms if _is_of(e, arm, scorer)), None))
        found = _result(gate, figure, about, kind, arm=arm, judge=judge)
        exploratory = bool(summary.primary) and gate.metric not in summary.primary
        yield attrs.evolve(found, exploratory=exploratory)


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
        judge=judge,
        **{name: getattr(gate, name) for name in ("metric", "op", "threshold", "written")},
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
    # Within a hair of it, a figure is the threshold, so that only the operator decides.
    near = abs(value - gate.threshold) <= _HAIR * max(1.0, abs(gate.threshold))
    return gate.op in (">=", "<=") if near else _COMPARES[gate.op](value, gate.threshold)


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
            # What cannot be compared neither shows a regression nor excludes one.
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
        **{name: getattr(effect, name) for name in ("agent", "condition", "metric", "judge")},
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


_FEWEST = 2
"""Samples from which a mean decides."""


@attrs.frozen
class Figure:
    """A figure with its 95 % interval. `lacks` says why it cannot decide, and is empty if it can.

    With `at_least`, a part of a total is unknown, and `value` is the rest. With `alike`, all samples have the same
    value, which has no interval where a scale has no end. `counts` tells what the figure was made of.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    lacks: str = ""
    counts: str = ""
    at_least: bool = False
    alike: bool = False


def of_score(entry: ArmScore | None) -> Figure:
    """Return the mean score of an arm."""
    if entry is None:
        return Figure(lacks="the run has no scores of this metric")
    lost = [f"{count} {what}" for count, what in ((entry.neutral, "neutral"), (entry.unscored, "unscored")) if count]
    return _mean(entry.mean, entry.ci_low, entry.ci_high, entry.n, lost, alike=entry.stderr == 0)


def of_effect(effect: Effect | None) -> Figure:
    """Return the mean difference of an arm to the baseline."""
    if effect is None:
        return Figure(lacks="the run has no effect of this arm against the baseline")
    return _mean(effect.difference, effect.ci_low, effect.ci_high, effect.n, [], alike=effect.stderr == 0)


def _mean(
    value: float | None, low: float | None, high: float | None, n: int, lost: list[str], *, alike: bool
) -> Figure:
    lacks = "" if n >= _FEWEST else f"too few samples: {', '.join([f'n = {n}', *lost])}"
    return Figure(value, low, high, lacks=lacks, alike=alike)


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
    # The cost of trials has that of attempts that were given up, and their tokens have not.
    given_up = (arm.given_up.cost.usd or 0.0) if metric == "usd" else 0.0
    return Figure(None if used.unknown else (used.known - given_up) / answered, lacks=used.gap(metric))


def total(metric: str, arms: Iterable[ArmTrials], summary: Summary) -> Figure:
    """Return the sum over arms, with attempts that were given up and judgements.

    The cost of an arm's trials has that of their given-up attempts already.
    """
    used = _Used()
    for arm in arms:
        used = used.plus(_of_trials(metric, arm))
        # Judges call no tools, and nothing is counted of the calls of attempts that were given up.
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
        return Figure(abs(drift.difference), counts=counts)
    ends = sorted((abs(drift.ci_low), abs(drift.ci_high)))
    # An interval that includes 0 does not exclude that nothing drifted.
    low = ends[0] if drift.is_sure else 0.0
    return Figure(abs(drift.difference), low, ends[1], counts=counts)
