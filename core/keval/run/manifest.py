"""The manifest: what a run was made of, so that it can be told apart from another and done again."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import datetime
from math import isfinite
from typing import Any

import attrs

from keval import registry
from keval.config.load import effective
from keval.models import Endpoint
from keval.run.plan import Plan, Scorers
from keval.run.preflight import Ready

__all__ = ["make_manifest", "rescored"]


def make_manifest(plan: Plan, ready: Ready, run_id: str, started: datetime) -> dict[str, Any]:
    """Describe a run. Variables stand as `${VAR}`, so that no secret is in it."""
    evaluation = plan.evaluation
    return {
        "run": run_id,
        "evaluation": evaluation.name,
        "started": started.isoformat(timespec="seconds"),
        "simulated": _simulated(ready.endpoints),
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
                "recording": item.recording.digest if item.recording else None,
            }
            for item in plan.agents
        },
        "conditions": {
            arm.label: {"contexts": list(arm.contexts), "servers": _servers(ready, arm.label)} for arm in plan.arms
        },
        "judges": _judges(plan.scorers),
        "scorers": _scales(plan.scorers),
        "plugins": {f"{c.group}:{c.name}": f"{c.distribution} {c.version}" for c in plan.components()},
        "versions": {
            "python": platform.python_version(),
            **registry.versions(["keval", *(component.distribution for component in plan.components())]),
        },
    }


def _servers(ready: Ready, condition: str) -> Mapping[str, Any]:
    return {offer.server: {"tools": list(offer.tools), "sha256": offer.digest} for offer in ready.offers()[condition]}


def rescored(manifest: Mapping[str, Any], scorers: Scorers, endpoints: Mapping[str, Endpoint]) -> dict[str, Any]:
    """Return the manifest with these scorers, and the versions that score now, added."""
    # By scorer, so that one that scores again keeps its place.
    entries = {(entry["metric"], entry["judge"]): entry for entry in (*manifest["scorers"], *_scales(scorers))}
    now = [component.distribution for component in scorers.components()]
    plugins = {f"{c.group}:{c.name}": f"{c.distribution} {c.version}" for c in scorers.components()}
    return {
        **manifest,
        "simulated": sorted({*manifest["simulated"], *_simulated(endpoints)}),
        "judges": {**manifest["judges"], **_judges(scorers)},
        "scorers": list(entries.values()),
        "plugins": {**manifest["plugins"], **plugins},
        "versions": {**manifest["versions"], **registry.versions(now)},
    }


def _simulated(endpoints: Mapping[str, Endpoint]) -> list[str]:
    return sorted(name for name, endpoint in endpoints.items() if endpoint.simulated)


def _judges(scorers: Scorers) -> dict[str, Any]:
    return {
        item.label: {"type": item.component.name, "model": str(item.model) if item.model else None}
        for item in scorers.judges
    }


def _scales(scorers: Scorers) -> list[dict[str, Any]]:
    return [
        {"metric": metric, "judge": judge, **attrs.asdict(scale), "high": scale.high if isfinite(scale.high) else None}
        for (metric, judge), scale in scorers.scales().items()
    ]
