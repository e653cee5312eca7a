"""A planned run in words: what it can see, and what it would take."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby

from rich.console import Console
from rich.table import Table

from keval.analysis.power import ASSUMPTIONS, Forecast, MetricPower, PowerPlan
from keval.report.console import safe
from keval.report.figures import time_span

_FEW = 30
"""Questions of a pilot below which its scatter is uncertain enough to say by how much."""
_NOTABLE = 0.1
"""The share of the variance from repetitions at which more of them begin to help."""


def print_power(plan: PowerPlan, console: Console) -> None:
    """Print what a run needs and sees: a row for each metric, or for each kind of scale if the scatter is assumed."""
    grid = f"{plan.questions} questions" + (f" × {plan.repetitions}" if plan.repetitions > 1 else "")
    arms = f"{', '.join(plan.agents)} under {', '.join(plan.conditions)}"
    console.print(safe(f"{plan.evaluation}: {grid}, {arms}: {plan.expense.trials:,} trials", "bold"))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    table.add_column("metric")
    table.add_column("scatter", justify="right")
    sizes = {power.effect for power in plan.metrics if power.effect is not None}
    size = f"to see {next(iter(sizes)):g}" if len(sizes) == 1 else "to see the effect"
    if sizes:
        table.add_column(size, justify="right")
        table.add_column("trials", justify="right")
    table.add_column(f"{plan.questions} questions show", justify="right")
    told = [power for power in plan.metrics if power.sd]
    for names, power in _rows(told):
        figures = [f"{power.sd:.2f}"]
        if sizes:
            many = power.reason or "unknown" if power.questions is None else f"{power.questions:,} questions"
            figures += [many, "" if power.trials is None else f"{power.trials:,}"]
        figures.append(_detectable(power))
        table.add_row(safe(names), *figures)
    if told:
        console.print(table)
    for line in (*_untold(plan), *_notes(plan), *_expenses(plan)):
        console.print(safe(line))


def _detectable(power: MetricPower) -> str:
    if power.detectable is None or power.detectable > power.scale.high - power.scale.low:
        return "nothing"
    return f"{power.detectable:.2f} or more"


def _rows(told: list[MetricPower]) -> Iterator[tuple[str, MetricPower]]:
    """Yield names and figures; metrics of one scale have the same ones where the scatter is assumed."""
    for power in told:
        if power.assumed is None:
            scored = "" if power.scored in (None, 1.0) else f" (scores {power.scored:.0%})"
            yield f"{_name(power)}{scored}", power
    alike = sorted((power for power in told if power.assumed), key=_kind)
    for _, group in groupby(alike, key=_kind):
        same = list(group)
        scale = same[0].scale
        who = _name(same[0]) if len(same) == 1 else f"{len(same)} metrics"
        yield f"{who} from {scale.low:g} to {scale.high:g}, {same[0].assumed} case", same[0]


def _kind(power: MetricPower) -> tuple[float, float, str]:
    return power.scale.low, power.scale.high, power.assumed or ""


def _name(power: MetricPower) -> str:
    name = power.metric.rpartition("/")[2]
    return f"{name} by {power.judge}" if power.judge else name


def _untold(plan: PowerPlan) -> Iterator[str]:
    """Yield why metrics have no row, once for each reason."""
    silent = sorted((power for power in plan.metrics if not power.sd), key=lambda power: power.reason)
    for reason, group in groupby(silent, key=lambda power: power.reason):
        yield f"unknown: {', '.join(map(_name, group))}: {reason}."


def _notes(plan: PowerPlan) -> Iterator[str]:
    yield (
        f"Scatter is the standard deviation of a question's difference between two arms. The power is {plan.power:.0%},"
        " and each comparison stands alone at 5 %: with many, the adjusted verdicts need more."
    )
    if plan.pilot is None:
        yield "It is assumed here, not measured; --pilot RUN takes it from an earlier run:"
        for assumption in sorted(ASSUMPTIONS, key=lambda assumption: assumption.share):
            yield f"  {assumption.name} case: {assumption.share:.2f} of the scale: {assumption.meaning}"
        return
    yield f"It is that of the pilot {plan.pilot}, between the arms where it is largest."
    if plan.simulated:
        yield f"The pilot's models are simulated ({', '.join(plan.simulated)}); real ones scatter otherwise."
    counts = [power.pilot_n for power in plan.metrics if power.sd and power.pilot_n]
    if counts and (few := min(counts)) < _FEW:
        # The standard error of a standard deviation of normal values is its share 1/sqrt(2(n-1)).
        yield f"From as few as {few} questions, the scatter is known to ±{1.96 / math.sqrt(2 * (few - 1)):.0%} only."
    shares = {_name(power): power for power in plan.metrics if power.sd}
    helped = [power for power in shares.values() if (power.repetition_share or 0.0) >= _NOTABLE]
    if helped:
        yield f"More repetitions help; the share of the variance that is theirs: {', '.join(map(_repeated, helped))}."
    if any(power.repetition_share is None for power in shares.values()):
        yield "The pilot repeated nothing, so whether more repetitions help is unknown."
    elif shares and len(helped) < len(shares):
        rest = "the other metrics" if helped else "any metric"
        yield f"More repetitions {'do not help' if helped else 'hardly help'} {rest}; more questions do."


def _repeated(power: MetricPower) -> str:
    """Return how much of a metric's variance is due to repetitions, and what twice as many of them bring."""
    needed = power.questions_doubled
    doubled = f" ({needed:,} question{'' if needed == 1 else 's'} with twice as many)" if needed else ""
    return f"{_name(power)} {power.repetition_share:.0%}{doubled}"


def _expenses(plan: PowerPlan) -> Iterator[str]:
    known = plan.pilot is not None
    yield f"as planned: {_expense(plan.expense, known=known)}"
    if plan.needed is not None:
        yield f"for every metric{'' if known else ' in the usual case'}: {_expense(plan.needed, known=known)}"
    if plan.pilot is None:
        yield "Tokens, price and time are unknown without a pilot."


def _expense(expense: Forecast, *, known: bool) -> str:
    parts = [f"{expense.questions:,} questions", f"{expense.trials:,} trials"]
    if not known:
        return ", ".join(parts)
    parts.append("unknown tokens" if expense.tokens is None else f"{expense.tokens:,.0f} tokens")
    parts.append("unknown price" if expense.usd is None else f"${expense.usd:,.2f}")
    parts.append("unknown time" if expense.seconds is None else f"about {time_span(expense.seconds)}")
    return ", ".join(parts)
