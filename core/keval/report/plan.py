"""A plan in words: what a run would do, about how many calls it would make, and notices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
from rich.console import Console

from keval.plan.plan import Plan
from keval.records.prices import dollars
from keval.report.console import safe
from keval.report.tools import sharing_text
from keval.seams.interfaces import PlansSharing

_MOST = 20


def describe(plan: Plan) -> dict[str, Any]:
    """Describe a plan as plain data. Calls are estimates: one per turn, and one more per turn where there are tools."""
    execution = plan.evaluation.execution
    asked = sum(agent.prerecorded is None for agent in plan.agents)
    turns = sum(len(sample.asked) for sample in plan.samples) * execution.num_repetitions * asked if asked else 0
    used = {label: plan.contexts[label] for arm in plan.arms for label in arm.contexts}
    model_calls = sum(turns * (2 if arm.contexts else 1) for arm in plan.arms)
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
        "sharing": {
            label: _sharing(item.plugin)
            for label, item in used.items()
            if asked and isinstance(item.plugin, PlansSharing)
        },
        "servers": sum(not plan.contexts[label].played for arm in plan.arms for label in arm.contexts) if asked else 0,
        "metrics": [item.label for item in plan.scorers.metrics],
        "judges": {item.label: {"type": item.component.name, "model": item.model_name} for item in plan.scorers.judges},
        "rubrics": [rubric.name for rubric in plan.scorers.rubrics],
        "middleware": [item.label for item in plan.middleware],
        "plugins": [item.label for item in plan.hooks],
        "executor": plan.executor.component.name,
        "gates": [gate.text for gate in plan.evaluation.gates],
        "budget": {name: cap for name, cap in attrs.asdict(plan.evaluation.budget).items() if cap is not None},
        "estimated_model_calls": model_calls,
        "estimated_judge_calls": plan.trial_count * len(plan.scorers.judges) * execution.judge_repetitions,
    }


def _sharing(context: PlansSharing) -> dict[str, Any]:
    """Return whether trials will share a context's server, as far as that is known before it starts."""
    sharing = context.planned_sharing()
    known = {"shared": None, "why": None, "verified": None} if sharing is None else attrs.asdict(sharing)
    return {**known, "told": sharing_text(sharing)}


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
        show(f"  context    {label}:{server} {'; '.join(map(_change, changed['interventions']))}")
    show(f"  models     {', '.join(told['models']) or 'none'}")
    show(f"  servers    {told['servers']} to start")
    for label, sharing in told["sharing"].items():
        show(f"  sharing    {label}: {sharing['told']}")
    show(f"  metrics    {', '.join(told['metrics']) or 'none'}")
    for label, judge in told["judges"].items():
        show(f"  judge      {label}: {judge['type']}, model {judge['model'] or 'none'}")
    if told["judges"]:
        show(f"  rubrics    {', '.join(told['rubrics'])}")
    if told["budget"]:
        show(f"  budget     {', '.join(_cap(*cap) for cap in told['budget'].items())}")
    for gate in told["gates"]:
        show(f"  gate       {gate}")
    if told["middleware"]:
        show(f"  middleware {', '.join(told['middleware'])}")
    show(f"  plugins    {', '.join(told['plugins']) or 'none'}")
    show(f"  executor   {told['executor']}")
    show(
        f"  about {told['estimated_model_calls']} model calls and {told['estimated_judge_calls']} judge calls;"
        " nothing was run"
    )


def _change(change: Mapping[str, Any]) -> str:
    """Say what an intervention changes, in the keys of the config."""
    return ", ".join(f"{key} {_brief(value)}" for key, value in change.items()) or "no change"


def _brief(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(key if isinstance(item, Mapping) else f"{key}: {item}" for key, item in value.items())
    return str(value)


def _cap(name: str, most: float) -> str:
    return dollars(most) if name == "usd" else f"{most:,} {name}"


def print_notices(plan: Plan, console: Console) -> None:
    """Print the plan's notices, each with its place: the first 20, and how many more there are."""
    for notice in plan.notices[:_MOST]:
        console.print(safe(f"note: {notice}", "yellow"), soft_wrap=True)
    if (more := len(plan.notices) - _MOST) > 0:
        console.print(f"note: {more} more like these", soft_wrap=True)
