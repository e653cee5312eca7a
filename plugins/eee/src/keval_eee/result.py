"""A result: one metric, or one rubric by one judge, under one condition, over all samples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from keval import Manifest
from keval.plugin import ArmScore, ArmTrials, ScorerEntry, to_plain
from keval_eee.correctness import explain_threshold
from keval_eee.record import Record, model_info
from keval_eee.text import as_texts

__all__ = ["result", "result_id"]

_GENERATION: Mapping[str, type | tuple[type, ...]] = {
    "temperature": (int, float),
    "top_p": (int, float),
    "top_k": (int, float),
    "max_tokens": int,
}
"""Options of agents that the format has a place for, by the same names."""


def result_id(condition: str, metric: str, judge: str | None) -> str:
    """Name a result within its file."""
    return f"{condition}:{metric}@{judge}" if judge else f"{condition}:{metric}"


def result(
    manifest: Manifest,
    record: Record,
    scorer: ScorerEntry,
    arm: ArmScore,
    trials: ArmTrials,
    *,
    threshold: float,
) -> dict[str, Any]:
    """Describe a result; `scorer` is of the manifest, `arm` and `trials` are of the summary, and `arm` has a mean."""
    condition = arm.condition
    return {
        "evaluation_result_id": result_id(condition, scorer.metric, scorer.judge),
        "evaluation_name": record.evaluation_name(condition),
        "source_data": {
            "dataset_name": PurePath(manifest.dataset.path).name,
            "source_type": "other",
            "additional_details": as_texts({"sha256": manifest.dataset.sha256, "samples": manifest.dataset.samples}),
        },
        "evaluation_timestamp": manifest.started,
        "metric_config": _metric(manifest, scorer, threshold),
        "score_details": _score(manifest, record, arm, trials),
        "generation_config": _generation(manifest, record.agent, condition),
    }


def _metric(manifest: Manifest, scorer: ScorerEntry, threshold: float) -> dict[str, Any]:
    metric, judge, scale = scorer.metric, scorer.judge, scorer.scale
    details = {
        "is_correct": explain_threshold(scale, threshold),
        "threshold": threshold,
        "bands": scale.bands or None,
        "judge": judge,
        "judge_repetitions": scorer.repetitions if judge else None,
        "options": {**scorer.defaults, **scorer.options} or None,
    }
    return {
        "metric_id": metric,
        "metric_name": metric.rpartition("/")[2].replace("_", " "),
        **({"metric_unit": scale.unit} if scale.unit else {}),
        "lower_is_better": scale.better == "lower",
        "min_score": scale.low,
        "max_score": "Infinity" if math.isinf(scale.high) else scale.high,
        **(_judged(manifest, metric, judge) if judge else {"score_type": "continuous"}),
        "additional_details": as_texts(details),
    }


def _judged(manifest: Manifest, name: str, label: str) -> dict[str, Any]:
    scorer = manifest.scorer((name, label))
    rubric, judge = manifest.rubrics[(scorer and scorer.rubric) or ""], manifest.judges[label]
    options = {**judge.defaults, **judge.options}
    levels = {str(level): description for level, description in rubric.levels.items()}
    prompt = "\n".join([rubric.instructions, *(f"{level}: {told}" for level, told in levels.items())])
    return {
        "evaluation_description": rubric.instructions,
        "score_type": "levels",
        "level_names": [*levels],
        "level_metadata": [*levels.values()],
        "has_unknown_level": False,
        "llm_scoring": {
            "judges": [
                {
                    "model_info": model_info(judge.model, judge.type, label, simulated=judge.simulated),
                    **dict(_numbers(options, "temperature")),
                    "additional_details": as_texts({"judge": label, "type": judge.type, "options": options or None}),
                }
            ],
            "input_prompt": prompt,
            "additional_details": {"input_prompt": "the rubric, which the judge's plugin puts into its prompt"},
        },
    }


def _score(manifest: Manifest, record: Record, arm: ArmScore, trials: ArmTrials) -> dict[str, Any]:
    """The mean as keval reports it, and beside it what it leaves out: nothing that failed is a low score."""
    error, judge = arm.stderr, arm.judge
    simulated = ["model"] if record.simulated else []
    if judge and manifest.judges[judge].simulated:
        simulated.append("judge")
    counts = {key: getattr(arm, key) for key in ("scored", "neutral", "unscored", "failed", "missing")}
    details = {
        "mean_of": "the samples' means over their repetitions",
        "standard_deviation_over_repetitions": arm.repetitions and arm.repetitions.sd,
        "band": arm.band,
        **{f"scores_{key}": count for key, count in counts.items()},
        "neutral_scores": "counted" if manifest.neutral == "count" else "left out",
        "trials": trials.trials,
        "trials_failed": trials.failed,
        "trials_retried": trials.retried,
        "trial_failures": trials.failures or None,
        "tool_use_compliance": trials.compliance and to_plain(trials.compliance),
        "simulated": " and ".join(simulated) or None,
    }
    uncertainty: dict[str, Any] = {"num_samples": arm.n}
    if error is not None:
        uncertainty["standard_error"] = {"value": error, "method": "analytic, over samples"}
    if arm.ci_low is not None and arm.ci_high is not None:
        bounds = {"lower": arm.ci_low, "upper": arm.ci_high, "confidence_level": 0.95}
        uncertainty["confidence_interval"] = {**bounds, **({"method": arm.method} if arm.method else {})}
    return {"score": arm.mean, "details": as_texts(details), "uncertainty": uncertainty}


def _generation(manifest: Manifest, agent: str, condition: str) -> dict[str, Any]:
    given = manifest.conditions[condition]
    prompt = (manifest.config["conditions"].get(condition) or {}).get("system_prompt")
    options = manifest.config.get("agents", {}).get(agent, {})
    tools = [
        {"name": tool, "parameters": {"server": server}}
        for server, offer in given.servers.items()
        for tool in offer.tools
    ]
    details = {
        "agent": agent,
        "agent_type": manifest.agents[agent].type,
        "condition": condition,
        "contexts": ", ".join(given.contexts),
        "baseline": manifest.baseline,
        "recording": manifest.agents[agent].recording,
    }
    return {
        "generation_args": {
            **dict(_numbers(options, *_GENERATION)),
            **({"prompt_template": prompt} if prompt else {}),
            **({"agentic_eval_config": {"available_tools": tools}} if tools else {}),
        },
        "additional_details": as_texts(details),
    }


def _numbers(options: Mapping[str, Any], *names: str) -> Iterator[tuple[str, Any]]:
    """Those options that are numbers in the config; others stand there as variables, or not at all."""
    for name in names:
        value = options.get(name)
        if isinstance(value, _GENERATION[name]) and not isinstance(value, bool):
            yield name, value
