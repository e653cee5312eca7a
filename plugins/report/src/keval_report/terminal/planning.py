"""What a dry run will do, and how many questions show an effect, in the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

import attrs
from rich.console import Console
from rich.table import Table

from keval.cli.console import safe
from keval.plan.plan import Plan
from keval.records.formats import counted, number, percent, short_number, time_span
from keval.records.models import dollars
from keval.records.servers import Sharing
from keval_analysis.estimate import ASSUMED, STAND_IN, Estimate, estimate
from keval_analysis.power import ASSUMPTIONS, Forecast, MetricPower, PowerPlan
from keval_analysis.sections import Gates
from keval_report.blocks import grouped
from keval_report.contexts import sharing_text
from keval_report.totals import LESS

_NOTABLE_STARTS = 50
"""How many starts of a server are told with what takes less."""


def describe(plan: Plan) -> dict[str, Any]:
    """Describe a plan by what commands print."""
    execution = plan.evaluation.execution
    asked = sum(agent.prerecorded is None for agent in plan.agents)
    planned = plan.sharing()
    taken = estimate(plan)
    return {
        "evaluation": plan.evaluation.name,
        "trials": plan.trial_count,
        "samples": len(plan.samples),
        "repetitions": execution.num_repetitions,
        "max_concurrent": execution.max_concurrent,
        "agents": {item.label: {"type": item.component.name, "model": item.model_name} for item in plan.agents},
        "conditions": {
            arm.label: {"contexts": {label: plan.contexts[label].component.name for label in arm.contexts}}
            for arm in plan.arms
        },
        "changes": {
            label: {"from": item.origin, "interventions": [each.as_config() for each in item.interventions]}
            for label, item in plan.contexts.items()
            if item.interventions
        },
        "models": [str(model) for model in plan.models],
        "sharing": {label: _sharing(*each) for label, each in planned.items()},
        "servers": sum(not plan.contexts[label].played for arm in plan.arms for label in arm.contexts) if asked else 0,
        "metrics": [item.label for item in plan.scorers.metrics],
        "judges": {item.label: {"type": item.component.name, "model": item.model_name} for item in plan.scorers.judges},
        "rubrics": [rubric.name for rubric in plan.scorers.rubrics],
        "middleware": [item.label for item in plan.middleware],
        "plugins": [item.label for item in plan.hooks],
        "executor": plan.executor.component.name,
        "gates": [*plan.evaluation.section(Gates).all_gates],
        "budget": {name: cap for name, cap in attrs.asdict(plan.evaluation.budget).items() if cap is not None},
        "estimated_model_calls": taken.model_calls,
        "estimated_judge_calls": taken.judge_calls,
        "estimate": taken,
    }


def _sharing(sharing: Sharing | None, trials: int) -> dict[str, Any]:
    known = {"shared": None, "why": None, "verified": None} if sharing is None else attrs.asdict(sharing)
    more = f"; otherwise {counted(trials, 'start')}, one for each trial" if sharing is None else ""
    more = f": {counted(trials, 'start')}" if sharing is not None and not sharing.shared else more
    return {**known, "trials": trials, "told": f"{sharing_text(sharing)}{more}"}


def print_plan(plan: Plan, console: Console) -> None:
    """Print a plan for people."""

    def show(line: str) -> None:
        console.print(safe(line), soft_wrap=True)

    told = describe(plan)
    arms = f"{len(told['agents'])} agents × {len(told['conditions'])} conditions × {told['samples']} samples"
    recorded = sum(agent.prerecorded is not None for agent in plan.agents)
    often = [f"{told['repetitions']} repetitions"] if recorded < len(plan.agents) else []
    often += ["as many as were recorded"] if recorded else []
    grid = f"{arms} × {' or '.join(often)}"
    at_once = f", {told['max_concurrent']} at once" if recorded < len(plan.agents) else ""
    show(f"{told['evaluation']}: {told['trials']} trials ({grid}){at_once}")
    for label, agent in told["agents"].items():
        show(f"  agent      {label}: {agent['type']}, model {agent['model'] or 'none'}")
    for label, condition in told["conditions"].items():
        given = ", ".join(f"{name} ({kind})" for name, kind in condition["contexts"].items()) or "no context"
        show(f"  condition  {label}: {given}")
        if len(condition["contexts"]) > 1:
            show("             a tool that two of their servers have is offered by each as server__tool")
    for label, changed in told["changes"].items():
        server = f" {changed['from']} with" if changed["from"] else ""
        # In the keys of the config.
        keys = ([f"{key} {_brief(value)}" for key, value in each.items()] for each in changed["interventions"])
        show(f"  context    {label}:{server} {'; '.join(', '.join(each) or 'no change' for each in keys)}")
    show(f"  models     {', '.join(told['models']) or 'none'}")
    show(f"  servers    {told['servers']} to start")
    for label, sharing in told["sharing"].items():
        show(f"  sharing    {label}: {sharing['told']}")
    if any(not sharing["shared"] and sharing["trials"] >= _NOTABLE_STARTS for sharing in told["sharing"].values()):
        show(f"             {LESS}")
    show(f"  metrics    {', '.join(told['metrics']) or 'none'}")
    for label, judge in told["judges"].items():
        show(f"  judge      {label}: {judge['type']}, model {judge['model'] or 'none'}")
    if told["judges"]:
        show(f"  rubrics    {', '.join(told['rubrics'])}")
    if told["budget"]:
        caps = (dollars(most) if name == "usd" else f"{most:,} {name}" for name, most in told["budget"].items())
        show(f"  budget     {', '.join(caps)}")
    for gate in told["gates"]:
        show(f"  gate       {gate}")
    if told["middleware"]:
        show(f"  middleware {', '.join(told['middleware'])}")
    if told["plugins"]:
        show(f"  hooks      {', '.join(told['plugins'])}")
    show(f"  executor   {told['executor']}")
    if (taken := told["estimate"]).tokens:
        show(f"  estimate   {estimated(taken)}")
        show(f"  assumed    {ASSUMED}")
    calls = f"{told['estimated_model_calls']} model calls and {told['estimated_judge_calls']} judge calls"
    show(f"  about {calls}; nothing was run")


def estimated(taken: Estimate) -> str:
    """Say what a run would take, as an estimate."""
    # Two digits, as more would look measured.
    tokens, seconds = (round(amount, 1 - int(math.log10(max(amount, 1)))) for amount in (taken.tokens, taken.seconds))
    price = "an unknown price" if taken.usd is None else dollars(taken.usd)
    free = f"$0 as the models are simulated; with {STAND_IN} " if taken.simulated else ""
    return f"about {short_number(tokens, 2)} tokens, {free}{price} and {time_span(seconds)}"


def _brief(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(key if isinstance(item, Mapping) else f"{key}: {item}" for key, item in value.items())
    return str(value)


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
    size = f"to see {short_number(next(iter(sizes)))}" if len(sizes) == 1 else "to see the effect"
    if sizes:
        table.add_column(size, justify="right")
        table.add_column("trials", justify="right")
    table.add_column(f"{plan.questions} questions show", justify="right")
    told = sorted((power for power in plan.metrics if power.sd), key=lambda power: power.family != "primary")
    for names, power in _rows(told):
        figures = [number(power.sd)]
        if sizes:
            many = power.reason or "unknown" if power.questions is None else f"{power.questions:,} questions"
            figures += [many, "" if power.trials is None else f"{power.trials:,}"]
        figures.append(_detectable(power))
        table.add_row(safe(names), *figures)
    if told:
        console.print(table)
    # Why metrics have no row, once for each reason.
    silent = grouped((power for power in plan.metrics if not power.sd), lambda power: power.reason)
    why = (f"unknown: {', '.join(map(_name, silent[reason]))}: {reason}." for reason in sorted(silent))
    for line in (*why, *_notes(plan), *_expenses(plan)):
        console.print(safe(line))


def _detectable(power: MetricPower) -> str:
    if power.detectable is None or power.detectable > power.scale.high - power.scale.low:
        return "nothing"
    return f"{number(power.detectable)} or more"


def _rows(told: list[MetricPower]) -> Iterator[tuple[str, MetricPower]]:
    """Yield names and figures; metrics of one scale have the same ones where the scatter is assumed."""
    for power in told:
        if power.assumed is None:
            notes = [] if power.scored in (None, 1.0) else [f"scores {percent(power.scored)}"]
            notes += [] if power.family == "all" else [power.family]
            told_of = f" ({', '.join(notes)})" if notes else ""
            yield f"{_name(power)}{told_of}", power
    alike = sorted((power for power in told if power.assumed), key=_kind)
    for _, group in groupby(alike, key=_kind):
        same = list(group)
        scale = same[0].scale
        who = _name(same[0]) if len(same) == 1 else f"{len(same)} metrics"
        family = "" if same[0].family == "all" else f", {same[0].family}"
        span = f"from {short_number(scale.low)} to {short_number(scale.high)}"
        yield f"{who} {span}, {same[0].assumed} case{family}", same[0]


def _kind(power: MetricPower) -> tuple[bool, float, float, str]:
    return power.family != "primary", power.scale.low, power.scale.high, power.assumed or ""


def _name(power: MetricPower) -> str:
    name = power.metric.rpartition("/")[2]
    return f"{name} by {power.judge}" if power.judge else name


def _notes(plan: PowerPlan) -> Iterator[str]:
    told = f"The power is {percent(plan.power)}, by simulation of the rule that gives the verdicts, {_judged(plan)}."
    yield f"Scatter is the standard deviation of a question's difference between two arms. {told}"
    if fewer := _primary(plan):
        yield f"As the only metric under `primary:`, it would need fewer questions: {fewer}."
    if plan.pilot is None:
        yield "It is assumed here, not measured; --pilot RUN takes it from an earlier run:"
        for assumption in sorted(ASSUMPTIONS, key=lambda assumption: assumption.share):
            yield f"  {assumption.name} case: {number(assumption.share)} of the scale: {assumption.meaning}"
        return
    yield f"It is taken from the pilot {plan.pilot}, for the pair of arms with the largest scatter."
    if plan.simulated:
        models = ", ".join(plan.simulated)
        yield f"The pilot's models are simulated ({models}); scores of real models scatter differently."
    counts = [power.pilot_n for power in plan.metrics if power.sd and power.pilot_n]
    if counts and (few := min(counts)) < _FEW:
        # The standard error of a standard deviation of normal values is its share 1/sqrt(2(n-1)).
        yield f"With {few} questions, the scatter is only known to ±{percent(1.96 / math.sqrt(2 * (few - 1)))}."
    shares = {_name(power): power.repetition_share for power in plan.metrics if power.sd}
    helped = [f"{name} {percent(share)}" for name, share in shares.items() if share is not None and share >= _NOTABLE]
    if helped:
        yield f"More repetitions help; their share of the variance: {', '.join(helped)}."
    if None in shares.values():
        yield "The pilot has one repetition, so it is unknown whether more repetitions help."
    elif shares and len(helped) < len(shares):
        rest = "the other metrics" if helped else "any metric"
        yield f"Only more questions help with {rest}."


def _judged(plan: PowerPlan) -> str:
    """Return how many comparisons are judged together."""
    sizes = {power.family: power.family_size for power in plan.metrics}
    if "all" in sizes:
        count = sizes["all"]
        return "with one comparison" if count == 1 else f"with {count} comparisons that are judged together"
    told = [f"{sizes[family]} {family}" for family in ("primary", "exploratory") if family in sizes]
    return f"with {' and '.join(told)} comparisons, which are judged apart"


def _primary(plan: PowerPlan) -> str:
    """Return how many questions each metric would need as the only primary one."""
    needed = {
        _name(power): power.questions_primary
        for power in plan.metrics
        if power.questions_primary is not None and power.assumed in (None, "usual")
    }
    if plan.pilot is None and needed:
        # Without a pilot, metrics of one scale have the same number.
        return f"{next(iter(needed.values())):,} in the usual case"
    return ", ".join(f"{name} {count:,}" for name, count in needed.items())


def _expenses(plan: PowerPlan) -> Iterator[str]:
    known = plan.pilot is not None
    yield f"as planned: {_expense(plan.expense, known=known)}"
    if plan.needed is not None:
        which = "every primary metric" if any(power.family == "primary" for power in plan.metrics) else "every metric"
        yield f"for {which}{'' if known else ' in the usual case'}: {_expense(plan.needed, known=known)}"
    if plan.estimate is not None:
        yield f"as planned, by assumption and not by a pilot: {estimated(plan.estimate)}; {ASSUMED}."


def _expense(expense: Forecast, *, known: bool) -> str:
    parts = [f"{expense.questions:,} questions", f"{expense.trials:,} trials"]
    if not known:
        return ", ".join(parts)
    parts.append("unknown tokens" if expense.tokens is None else f"{round(expense.tokens):,} tokens")
    parts.append("unknown price" if expense.usd is None else dollars(expense.usd))
    parts.append("unknown time" if expense.seconds is None else f"about {time_span(expense.seconds)}")
    return ", ".join(parts)
