"""How well agents chose skills and tools, held against what samples expect: in lines and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from keval.records.formats import percent
from keval_analysis.findings.formats import percent_interval
from keval_analysis.findings.routing import Share
from keval_analysis.findings.summary import Summary
from keval_report.words import one_line

ROUTING_HEADS = ("to choose", "agent", "condition", "recall, 95 %", "precision, 95 %", "chosen in trials")
"""The heads of a table of routing."""
_NOUNS = {"reads": "skill", "calls": "tool"}
_MOST = 5
"""Skills and tools that a first report names."""


def routing_texts(summary: Summary, most: int | None = _MOST) -> Iterator[str]:
    """Yield a line for each skill or tool and arm: how well it was chosen, and what was chosen in its place."""
    rows = [*routing_rows(summary)]
    for name, agent, condition, recall, precision, chosen in islice(rows, most):
        yield f"{name} ({agent} {condition}): recall {recall}; precision {precision}; chosen: {chosen}"
    if most is not None and len(rows) > most:
        yield f"and {len(rows) - most} more"


def routing_rows(summary: Summary) -> Iterator[Sequence[str]]:
    """Yield the cells of a table with a row for each skill or tool and arm, below `ROUTING_HEADS`."""
    for each in summary.routing:
        if each.condition in summary.ablated:  # such a one lacks a part, which is told by what that is worth
            continue
        noun = _NOUNS.get(each.kind, each.kind)
        name = f"{noun} {one_line(each.name)}" if each.name else f"no {noun}"
        chosen = [f"{one_line(name) or 'nothing'} {count:,}" for name, count in each.chosen.items()]
        chosen += [f"unknown {each.unknown:,}"] if each.unknown else []
        shares = ("–", "–") if not each.name else (_told(each.recall), _told(each.precision))
        yield (name, one_line(each.agent), one_line(each.condition), *shares, ", ".join(chosen) or "–")


def _told(share: Share | None) -> str:
    if share is None:
        return "–"
    ends = percent_interval(share.ci_low, share.ci_high)
    return f"{f'{percent(share.rate)} {ends}'.rstrip()} of {share.trials:,}, n={share.n:,}"
