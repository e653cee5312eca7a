"""The report's lines on judges: how far they agree, how much each varies, how often they flagged claims."""

from __future__ import annotations

from collections.abc import Iterator

from keval.summary import Summary

__all__ = ["judging_lines"]


def judging_lines(summary: Summary) -> Iterator[str]:
    """Yield the lines; there are none if one judge graded once and flagged nothing."""
    rubrics = summary.agreement
    width = max((len(rubric.metric) for rubric in rubrics), default=0)
    if any(len(rubric.judges) > 1 for rubric in rubrics):
        yield "Agreement of the judges: Krippendorff's alpha (ordinal), and weighted kappa of each pair."
        for rubric in rubrics:
            found = [_found(rubric.alpha, rubric.n, rubric.reason)]
            found += [f"{' × '.join(pair.judges)} {_found(pair.kappa, pair.n, pair.reason)}" for pair in rubric.pairs]
            yield f"  {rubric.metric:<{width}}  {', '.join(found[:2])}"
            yield from (f"  {'':<{width}}  {pair}" for pair in found[2:])
    if any(rubric.spread for rubric in rubrics):
        yield "Scatter of each judge about one answer, as a standard deviation:"
        for rubric in rubrics:
            spreads = (f"{spread.judge} {_found(spread.sd, spread.n, spread.reason)}" for spread in rubric.spread)
            yield f"  {rubric.metric:<{width}}  {', '.join(spreads)}"
    for judge in summary.judges:
        took = [entry for entry in summary.judging if entry.judge == judge]
        if flagged := sum(entry.flagged for entry in took):
            told = sum(entry.told for entry in took)
            yield f"{judge} flagged unverified claims in {flagged} of {told} judgements: keval show --sample"


def _found(value: float | None, n: int, reason: str | None) -> str:
    return f"undefined ({reason})" if value is None else f"{value:.2f} (n={n})"
