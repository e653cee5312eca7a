"""The runs in a results directory, each with its headline figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from keval.effects import Effect
from keval.manifest import Manifest
from keval.report.console import safe
from keval.store.converter import to_plain
from keval.summary import Summary

__all__ = ["describe_runs", "print_runs"]


def describe_runs(runs: Iterable[tuple[str, Manifest, Summary | None]]) -> list[dict[str, Any]]:
    """Describe runs, given as path, manifest and summary, as plain data. An unfinished run has no summary."""
    return [
        {
            "run": manifest.run,
            "evaluation": manifest.evaluation,
            "started": manifest.started,
            "path": path,
            "simulated": list(manifest.simulated),
            "agents": list(manifest.agents),
            "conditions": list(manifest.conditions),
            "trials": sum(arm.trials for arm in summary.trials) if summary else None,
            "failed": sum(arm.failed for arm in summary.trials) if summary else None,
            "largest_effect": to_plain(_largest(summary)) if summary else None,
        }
        for path, manifest, summary in runs
    ]


def print_runs(described: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print runs as a table."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    for heading in ("run", "evaluation", "arms", "trials", "failed", "largest effect"):
        table.add_column(heading, overflow="fold")
    for run in described:
        effect = run["largest_effect"]
        table.add_row(
            safe(run["run"] + (" (simulated)" if run["simulated"] else "")),
            safe(run["evaluation"]),
            f"{len(run['agents'])} × {len(run['conditions'])}",
            str(run["trials"]) if run["trials"] is not None else "unfinished",
            str(run["failed"]) if run["failed"] is not None else "",
            safe(_in_words(effect) if effect else ""),
        )
    console.print(table)


def _in_words(effect: Mapping[str, Any]) -> str:
    return f"{effect['agent']} {effect['condition']} {effect['metric']} {effect['difference']:+.2f}"


def _largest(summary: Summary) -> Effect | None:
    """Return the effect that is largest for its scale; scales without an end cannot be compared with others."""
    scales = {entry.scorer: entry.scale for entry in summary.scorers}

    def share(effect: Effect) -> float:
        scale = scales[effect.scorer]
        return abs(effect.difference or 0.0) / (scale.high - scale.low)

    known = [e for e in summary.effects if e.difference is not None and not math.isinf(scales[e.scorer].high)]
    return max(known, key=share, default=None)
