"""How a run ended: whether a gate failed, and whether all was answered and scored."""

from __future__ import annotations

from typing import Literal, TypeAlias

from keval.summary import Summary

__all__ = ["RunOutcome", "outcome_of", "were_all_made"]

RunOutcome: TypeAlias = Literal["passed", "gate failed", "incomplete"]


def outcome_of(summary: Summary, *, strict: bool = False) -> RunOutcome:
    """Return whether a gate failed, or is undecided and that is `strict`, and else whether the run is complete."""
    failing = ("failed", "undecided") if strict else ("failed",)
    if any(result.verdict in failing for result in summary.gates):
        return "gate failed"
    return "passed" if were_all_made(summary) else "incomplete"


def were_all_made(summary: Summary) -> bool:
    """Return whether every trial was answered and every score made, but for failures that a gate on them allows."""
    allowed = {
        (gate.agent, gate.condition)
        for gate in summary.gates
        if (gate.kind, gate.metric, gate.verdict) == ("resource", "failures", "held") and gate.op in ("<=", "<")
    }
    failed = any(arm.failed for arm in summary.trials if (arm.agent, arm.condition) not in allowed)
    failed = failed or any(arm.failed for arm in summary.arms)
    unfinished = sum(arm.trials for arm in summary.trials) < summary.planned
    unscored = any(arm.missing for arm in summary.arms)
    return not (failed or unfinished or unscored)
