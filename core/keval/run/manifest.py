"""The manifest: what a run was made of, so that it can be told apart from another and done again."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import datetime
from math import isfinite
from typing import Any

import attrs

from keval import registry
from keval.config.evaluation import Evaluation
from keval.config.load import effective
from keval.models import Endpoint
from keval.run.digest import rubric_digest
from keval.run.plan import Plan, Planned, Scorers
from keval.run.preflight import Ready
from keval.run.scores_file import Wanted
from keval.run.secrets import Scrubber
from keval.run.store import FORMAT

__all__ = ["make_manifest", "rescored"]


def make_manifest(
    plan: Plan, ready: Ready, wanted: Wanted, run_id: str, started: datetime, *, scrubbed: Scrubber
) -> dict[str, Any]:
    """Describe a run. Variables stand as `${VAR}`, so that no secret is in it; rubrics as judges were given them."""
    evaluation = plan.evaluation
    manifest = {
        "format": FORMAT,
        "run": run_id,
        "evaluation": evaluation.name,
        "started": started.isoformat(timespec="seconds"),
        "seed": evaluation.execution.seed,
        "baseline": evaluation.baseline,
        "neutral": evaluation.header.neutral,
        "config": effective(evaluation),
        "config_file": evaluation.source.name,
        "config_folder": str(evaluation.source.base),
        "selection": {"limit": evaluation.limit, "sample_ids": list(evaluation.sample_ids)},
        "dataset": {
            "path": str(plan.dataset.path),
            "sha256": plan.dataset.digest,
            "samples": len(plan.samples),
        },
        "trials": plan.trial_count,
        "agents": {
            item.label: {
                "type": item.component.name,
                "model": str(item.model) if item.model else None,
                "characteristics": attrs.asdict(item.characteristics) if item.characteristics else None,
                "simulated": _is_simulated(item, ready.endpoints),
                "recording": item.recording.digest if item.recording else None,
            }
            for item in plan.agents
        },
        "conditions": {
            arm.label: {
                "contexts": list(arm.contexts),
                "servers": _servers(ready, arm.label),
                "require_mcp_tool_use": arm.condition.require_mcp_tool_use,
                "require_mcp_tool_success": arm.condition.require_mcp_tool_success,
                "on_missing_tool_use": arm.condition.on_missing_tool_use,
            }
            for arm in plan.arms
        },
        "judges": _judges(evaluation, plan.scorers, ready.endpoints),
        "rubrics": _rubrics(plan.scorers, scrubbed),
        "scorers": _scales(plan.scorers, wanted),
        "plugins": {f"{c.group}:{c.name}": f"{c.distribution} {c.version}" for c in plan.components()},
        "versions": {
            "python": platform.python_version(),
            **registry.versions(["keval", *(component.distribution for component in plan.components())]),
        },
    }
    return _told_simulated(manifest)


def _servers(ready: Ready, condition: str) -> Mapping[str, Any]:
    return {offer.server: {"tools": list(offer.tools), "sha256": offer.digest} for offer in ready.offers()[condition]}


def rescored(
    manifest: Mapping[str, Any],
    evaluation: Evaluation,
    scorers: Scorers,
    endpoints: Mapping[str, Endpoint],
    wanted: Wanted,
    *,
    scrubbed: Scrubber,
) -> dict[str, Any]:
    """Return the manifest with these scorers, and the versions that score now, added."""
    # By scorer, so that one that scores again keeps its place.
    now_scoring = _scales(scorers, wanted)
    entries = {(entry["metric"], entry["judge"]): entry for entry in (*manifest["scorers"], *now_scoring)}
    now = [component.distribution for component in scorers.components()]
    plugins = {f"{c.group}:{c.name}": f"{c.distribution} {c.version}" for c in scorers.components()}
    return _told_simulated(
        {
            **manifest,
            "judges": {**manifest["judges"], **_judges(evaluation, scorers, endpoints)},
            "rubrics": {**manifest["rubrics"], **_rubrics(scorers, scrubbed)},
            "scorers": list(entries.values()),
            "plugins": {**manifest["plugins"], **plugins},
            "versions": {**manifest["versions"], **registry.versions(now)},
        }
    )


def _told_simulated(manifest: dict[str, Any]) -> dict[str, Any]:
    """Add which models of agents and judges are simulated."""
    users = (*manifest["agents"].values(), *manifest["judges"].values())
    return {**manifest, "simulated": sorted({user["model"] for user in users if user["simulated"]})}


def _is_simulated(planned: Planned, endpoints: Mapping[str, Endpoint]) -> bool:
    return any((model.endpoint or endpoints[str(model)]).simulated for model in planned.models.values())


def _judges(evaluation: Evaluation, scorers: Scorers, endpoints: Mapping[str, Endpoint]) -> dict[str, Any]:
    """What judges are; their options as written, so that no variable's value is in it."""
    uses = {use.label: use for use in evaluation.judges}
    implied = {label for label, use in uses.items() if use.implied}
    options = {label: dict(use.options) for label, use in uses.items()}
    return {
        item.label: {
            "type": item.component.name,
            "implied": item.label in implied,
            "model": str(item.model) if item.model else None,
            "simulated": _is_simulated(item, endpoints),
            "options": options.get(item.label, {}),
        }
        for item in scorers.judges
    }


def _rubrics(scorers: Scorers, scrubbed: Scrubber) -> dict[str, Any]:
    """The rubrics by their digest, as one of the same name may have said something else to another judge."""
    rubrics = scorers.rubrics if scorers.judges else ()
    return {rubric_digest(rubric): scrubbed.data(attrs.asdict(rubric)) for rubric in rubrics}


def _scales(scorers: Scorers, wanted: Wanted) -> list[dict[str, Any]]:
    rubrics = {rubric.name: rubric_digest(rubric) for rubric in scorers.rubrics}
    return [
        {
            "metric": metric,
            "judge": judge,
            **attrs.asdict(scale),
            "high": scale.high if isfinite(scale.high) else None,
            "repetitions": wanted.repetitions[metric, judge],
            "rubric": rubrics[metric] if judge else None,
            "digest": wanted.digests[metric, judge],
        }
        for (metric, judge), scale in scorers.scales().items()
    ]
