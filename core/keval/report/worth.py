"""Quality beside cost in words: how much score a dollar or 1,000 tokens buy, and which arms are on the Pareto front."""

from __future__ import annotations

from keval.report.figures import number
from keval.summary import ArmScore

__all__ = ["PARETO", "worth"]

PARETO = "◆"
"""Marks an arm than which no other is at least as good for at most as much, and better in one of the two."""


def worth(arm: ArmScore, *, short: bool = False) -> str:
    """Return how much mean an arm has for what an answer costs; empty if the cost is unknown or nothing."""
    thousand = "/1k tokens" if short else " per 1,000 tokens"
    found = [
        f"{number(value)}{unit}"
        for value, unit in ((arm.per_usd, "/$" if short else " per $"), (arm.per_1000_tokens, thousand))
        if value is not None
    ]
    parts = found[:1] if short else found
    mark = f" {PARETO}" if parts and arm.pareto else ""
    return ", ".join(parts) + mark
