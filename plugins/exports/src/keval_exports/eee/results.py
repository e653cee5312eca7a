"""The aggregate file: what one agent did in a run, under a name of its own, who measured it, and every result of it.

A result is one metric, or one rubric by one judge, under one condition, over all samples.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import PurePath, PurePosixPath
from typing import Any
from uuid import UUID

import attrs

from keval import Manifest, Scale, Summary
from keval.plugin import ScorerEntry, dump, to_plain
from keval_analysis import ArmScore, ArmTrials

SCHEMA_VERSION = "0.3.0"
_UNPORTABLE = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com[1-9]|lpt[1-9])(\..*)?|data", re.IGNORECASE)
"""What Windows takes for a device, and what the format keeps for the root of its tree."""
_FAMILIES = {
    "anthropic": re.compile(r"claude\b", re.IGNORECASE),
    "google": re.compile(r"gemini\b|gemma", re.IGNORECASE),
    "openai": re.compile(r"(chat)?gpt\b|o\d\b|codex\b", re.IGNORECASE),
}
"""Families of models, by who made them, in the words of the format's own files."""
_PLATFORMS = {"gemini": "google"}
"""Platforms that have another name than the organization that made their models."""


@attrs.frozen
class Record:
    """Which agent of which run a pair of files is about; nothing in it depends on when it is exported."""

    run: str
    evaluation: str
    agent: str
    started: datetime
    model: Mapping[str, Any]
    simulated: bool

    @classmethod
    def of(cls, manifest: Manifest, agent: str) -> Record:
        """The record of an agent of the run that has this manifest."""
        entry = manifest.agents[agent]
        simulated = entry.model in manifest.simulated
        model = model_info(entry.model, entry.type, agent, simulated=simulated)
        started = datetime.fromisoformat(manifest.started or "1970-01-01T00:00:00+00:00")
        return cls(manifest.run, manifest.evaluation, agent, started, model, simulated)

    @property
    def model_id(self) -> str:
        return str(self.model["id"])

    @property
    def epoch(self) -> str:
        """When the run started, in seconds of Unix time."""
        return str(int(self.started.timestamp()))

    @property
    def evaluation_id(self) -> str:
        """Unique to this agent of this run: two runs may start in the same second."""
        return f"{self.evaluation}.{self.agent}.{self.run}/{self.model_id}/{self.epoch}"

    @property
    def uuid(self) -> UUID:
        """The same for the same agent and model of the same run, so that exporting again replaces the files.

        The format wants the form of version 4, which is random; here a hash stands in for chance.
        """
        digest = hashlib.sha256("\n".join([self.run, self.agent, self.model_id]).encode()).digest()
        return UUID(bytes=digest[:16], version=4)

    @property
    def aggregate_path(self) -> PurePosixPath:
        """Where the aggregate is, as the format lays out its tree: `data/<evaluation>/<developer>/<model>/`."""
        plugin, _, name = self.model_id.rpartition("/")
        folders = (self.evaluation, self.model.get("developer", plugin), name)
        return PurePosixPath("data", *map(_folder, folders), f"{self.uuid}.json")

    @property
    def rows_path(self) -> PurePosixPath:
        """Where the instances are: beside the aggregate."""
        return self.aggregate_path.with_name(f"{self.uuid}_samples.jsonl")

    def evaluation_name(self, condition: str) -> str:
        """What a condition's results are called; each condition is an evaluation of its own."""
        return f"{self.evaluation}.{condition}"


def model_info(model: str | None, plugin: str, label: str, *, simulated: bool) -> dict[str, Any]:
    """Describe the model of an agent or judge.

    The format asks for one: where none is known, as of recorded answers, the plugin and its label stand in, and
    `additional_details.model` says so. Who hosts a model, and whether its weights are open, no run knows.
    """
    platform, _, name = (model or "").partition("/")
    told = {"developer": _developer(platform, name), "inference_platform": platform} if model else {}
    unknown = dict.fromkeys(("deployment_type", "model_availability"), "unknown")
    details = {**unknown, "simulated": simulated, "model": None if model else "unknown"}
    return {
        "name": f"{name or label}{' (simulated)' if simulated else '' if model else ' (model unknown)'}",
        "id": model or f"{plugin}/{label}",
        **told,
        "additional_details": as_texts(details),
    }


def _developer(platform: str, name: str) -> str:
    """Return who made a model, by the name that it has on its platform.

    Platforms that host models of others name them as Hugging Face does, `organization/model`. Where the name tells
    nothing, the platform is taken for the developer, as it is for models that are simulated.
    """
    organization, slash, _ = name.rpartition("/")
    if slash:
        return organization.rpartition("/")[2]
    by_name = (developer for developer, names in _FAMILIES.items() if names.match(name))
    return next(by_name, _PLATFORMS.get(platform, platform))


def _folder(name: str) -> str:
    """A name as the name of a folder on any system."""
    portable = _UNPORTABLE.sub("_", name).rstrip(". ")
    return f"{portable}_" if not portable or _RESERVED.fullmatch(portable) else portable


def as_text(value: Any) -> str:
    """A text as it is, and anything else as JSON."""
    return value if isinstance(value, str) else dump(value).decode()


def as_texts(values: Mapping[str, Any]) -> dict[str, str]:
    """The values as text, without those that are `None`."""
    return {str(name): as_text(value) for name, value in values.items() if value is not None}


_GENERATION: Mapping[str, type | tuple[type, ...]] = {
    "temperature": (int, float),
    "top_p": (int, float),
    "top_k": (int, float),
    "max_tokens": int,
}
"""Options of agents that the format has a place for, by the same names."""


def results(manifest: Manifest, summary: Summary, record: Record, threshold: float) -> list[dict[str, Any]]:
    """Describe the results of an agent that have a mean; the format has no place for those that have none."""
    scorers = {entry.scorer: entry for entry in manifest.scorers}
    trials = {entry.condition: entry for entry in summary.trials if entry.agent == record.agent}
    return [
        result(manifest, record, scorers[arm.scorer], arm, trials[arm.condition], threshold=threshold)
        for arm in summary.arms
        if arm.agent == record.agent and arm.mean is not None
    ]


def aggregate(
    manifest: Manifest, record: Record, found: Sequence[Mapping[str, Any]], *, rows: int, checksum: str
) -> dict[str, Any]:
    """Put an agent's results into a whole file; `rows` and `checksum` (SHA-256) are those of the instance file."""
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": record.evaluation_id,
        "evaluation_timestamp": manifest.started,
        # The record is as old as the run: exporting it again does not make another.
        "retrieved_timestamp": record.epoch,
        "source_metadata": {
            "source_name": "keval",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "model_info": record.model,
        "eval_library": {
            "name": "keval",
            "version": manifest.versions.get("keval", "unknown"),
            "additional_details": as_texts(
                {
                    "run": record.run,
                    "agent": record.agent,
                    "seed": manifest.seed,
                    "python": manifest.versions.get("python"),
                    "plugins": manifest.plugins,
                    "replayed_from": manifest.replay and manifest.replay.run,
                    "recorded": manifest.replay and manifest.replay.recorded,
                }
            ),
        },
        "evaluation_results": found,
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": str(record.rows_path),
            "hash_algorithm": "sha256",
            "checksum": checksum,
            "total_rows": rows,
        },
    }


def result_id(condition: str, metric: str, judge: str | None) -> str:
    """Name a result within its file."""
    return f"{condition}:{metric}@{judge}" if judge else f"{condition}:{metric}"


def result(
    manifest: Manifest, record: Record, scorer: ScorerEntry, arm: ArmScore, trials: ArmTrials, *, threshold: float
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
        # JSON has no number for it.
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
    named = {"level_names": [*levels], "level_metadata": [*levels.values()], "has_unknown_level": False}
    return {
        "evaluation_description": rubric.instructions,
        # The score of a rubric of claims is a share, between its levels.
        **({"score_type": "continuous"} if rubric.kind == "claims" else {"score_type": "levels", **named}),
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
        # To Python, a truth value is a number.
        if isinstance(value, _GENERATION[name]) and not isinstance(value, bool):
            yield name, value


def is_correct(scale: Scale, value: float, threshold: float) -> bool:
    """Whether a value has come far enough from the worst end of its scale to the best.

    `threshold` is the share of that way. On a scale without an end there is no such share, so that no value shows an
    answer to be correct.
    """
    low, high = scale.low, scale.high
    if math.isinf(high):
        return False
    share = (value - low) / (high - low)
    # Three fifths of a scale from 0 to 5 may come out a hair below 0.6.
    return bool((1 - share if scale.better == "lower" else share) >= threshold - 1e-9)


def explain_threshold(scale: Scale, threshold: float) -> str:
    """Say in a sentence what `is_correct` means on this scale."""
    low, high = scale.low, scale.high
    if math.isinf(high):
        return "always false: the scale has no end, so no threshold can be a share of it"
    if scale.better == "lower":
        return f"true where the score is at most {high - threshold * (high - low):g}"
    return f"true where the score is at least {low + threshold * (high - low):g}"
