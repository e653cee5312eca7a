"""What a report says of the judges: how far they agree, how much each scatters, how often they flagged something."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["judging_lines"]


def judging_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield it in lines; nothing where one judge was asked once and flagged nothing."""
    rubrics = summary["agreement"]
    width = max((len(rubric["metric"]) for rubric in rubrics), default=0)
    if any(len(rubric["judges"]) > 1 for rubric in rubrics):
        yield "Agreement of the judges: Krippendorff's alpha (ordinal), and weighted kappa of each pair."
        for rubric in rubrics:
            pairs = [f"{' × '.join(pair['judges'])} {_found(pair, 'kappa')}" for pair in rubric["pairs"]]
            yield f"  {rubric['metric']:<{width}}  {', '.join([_found(rubric, 'alpha'), *pairs[:1]])}"
            yield from (f"  {'':<{width}}  {pair}" for pair in pairs[1:])
    if any(rubric["spread"] for rubric in rubrics):
        yield "Scatter of each judge about one answer, as a standard deviation:"
        for rubric in rubrics:
            spreads = (f"{spread['judge']} {_found(spread, 'sd')}" for spread in rubric["spread"])
            yield f"  {rubric['metric']:<{width}}  {', '.join(spreads)}"
    for judge in summary["judges"]:
        took = [entry for entry in summary["judging"] if entry["judge"] == judge]
        told = sum(entry["told"] for entry in took)
        if flagged := sum(entry["flagged"] for entry in took):
            yield f"{judge} flagged unverified claims in {flagged} of {told} judgements; scores.jsonl has them."


def _found(entry: Mapping[str, Any], name: str) -> str:
    if entry[name] is None:
        return f"undefined ({entry['reason']})"
    return f"{entry[name]:.2f} (n={entry['n']})"
