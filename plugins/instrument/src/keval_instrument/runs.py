"""The runs of a check, as plans: of the evaluation itself, and of answers that were written for it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from keval import Run
from keval.config.evaluation import Budget, Evaluation
from keval.config.load import effective, with_data
from keval.plan.build import make_plan
from keval.plan.plan import Plan
from keval.seams.interfaces import ComparingJudge
from keval_instrument.settings import settings_of
from keval_report.totals import total_cost

_WRITER = "written"
"""The agent whose answers were written."""
_TASKS = ("ablate", "anchors", "gates", "sandbox", "verify", "workspace")
_OF_ARMS = ("baseline", "contexts", "primary", "thresholds")


def checked_folder(evaluation: Evaluation) -> str:
    """Return the name of the folder in which the runs of checks are."""
    header = attrs.evolve(evaluation.header, name=_checked_name(evaluation))
    return attrs.evolve(evaluation, header=header).folder


def draw_samples(plan: Plan) -> tuple[str, ...]:
    """Return the ids of as many samples as the config says, drawn at random, in the order of the dataset."""
    ids, settings = plan.samples.ids, settings_of(plan.evaluation)
    drawn = random.Random(plan.evaluation.execution.seed).sample(range(len(ids)), min(settings.samples, len(ids)))
    return tuple(ids[position] for position in sorted(drawn))


def asked_plan(plan: Plan, samples: tuple[str, ...], budget: Budget) -> Plan:
    """Return the plan to ask samples as often as the config says for checks, with no gate. Raises ConfigError."""
    evaluation, settings = plan.evaluation, settings_of(plan.evaluation)
    data = _without(effective(evaluation), "ablate", "anchors", "gates")
    data["execution"] |= {
        "num_repetitions": settings.repetitions,
        "judge_repetitions": settings.judge_repetitions,
        "keep_requests": True,
        "until": None,
    }
    if not _cluster_key(plan, samples):
        data["dataset"] = _without(data["dataset"], "cluster_key")
    found = with_data(evaluation, {**data, "name": _checked_name(evaluation), "budget": attrs.asdict(budget)})
    return make_plan(attrs.evolve(found, sample_ids=samples, limit=None))


@attrs.frozen
class WrittenFiles:
    """The files of samples and of written answers; each of the conditions is one way of making these.

    The first condition is the baseline.
    """

    samples: Path
    answers: Path
    conditions: tuple[str, ...]


def written_plan(plan: Plan, samples: tuple[str, ...], files: WrittenFiles, budget: Budget) -> Plan:
    """Return the plan to score written answers to samples, by the scorers of the evaluation that `plan` is of.

    Raises ConfigError.
    """
    evaluation = plan.evaluation
    data = _without(effective(evaluation), *_TASKS, *_OF_ARMS)
    for judge in plan.scorers.judges:
        if isinstance(judge.plugin, ComparingJudge):
            data["judges"][judge.label]["against"] = files.conditions[0]
    data["execution"] |= {"num_repetitions": 1, "judge_repetitions": 1, "until": None, "executor": "local"}
    data |= {
        "name": _checked_name(evaluation),
        "dataset": {"path": str(files.samples), **_cluster_key(plan, samples)},
        "agents": {_WRITER: {"type": "recorded", "path": str(files.answers), "partial": True}},
        "conditions": dict.fromkeys(files.conditions),
        "budget": attrs.asdict(budget),
    }
    return make_plan(attrs.evolve(with_data(evaluation, data), sample_ids=(), limit=None))


def budget_left(budget: Budget, run: Run) -> Budget:
    """Return what a run has left of a budget. Raises RunError."""
    summary = run.written_summary() or run.summary()
    recorded = {label for label, agent in run.manifest.agents.items() if agent.recording}
    asked = [arm for arm in summary.trials if arm.agent not in recorded]
    usages = [usage for arm in asked for usage in (arm.usage, arm.given_up.usage)]
    usages += [each.usage for each in summary.judging]
    used = {
        "tokens": sum((usage.input_tokens or 0) + (usage.output_tokens or 0) + usage.estimated for usage in usages),
        "trials": sum(arm.trials for arm in summary.trials),
        "usd": total_cost(summary).usd or 0.0,
    }
    left = {name: max(0, most - used[name]) for name, most in attrs.asdict(budget).items() if most is not None}
    return attrs.evolve(budget, **left)


def _checked_name(evaluation: Evaluation) -> str:
    return f"{evaluation.name}-check"


def _cluster_key(plan: Plan, samples: tuple[str, ...]) -> dict[str, str]:
    """Return the key under which samples have their sources, as a config writes it; nothing if none of them has one."""
    key = plan.evaluation.dataset.cluster_key if plan.evaluation.dataset else None
    has = any(key in plan.samples.named(sample).metadata for sample in samples)
    return {"cluster_key": key} if key is not None and has else {}


def _without(data: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in keys}
