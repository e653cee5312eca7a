"""What the report says of anchors: how far judges agree with the labels, and how they drifted."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len

from keval.findings.anchors import AnchorFindings
from keval.findings.formats import interval, percent, signed
from keval.findings.summary import Summary
from keval.report.words import joined, one_line, padded, rubric_name

_HEADS = ("judges with anchors", "same level", "judge - people", "n", "drift")


def anchor_lines(summary: Summary) -> Iterator[str]:
    """Yield the lines; there are none if the run has no anchors."""
    if not summary.anchors:
        return
    rows = [_HEADS, *map(_row, summary.anchors)]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
    for found in summary.anchors:
        if found.failed:
            yield f"  {found.failed} gradings of anchors by {one_line(found.judge)} failed: {rubric_name(found.metric)}"
        if found.drift.changes:
            yield f"  changed of {one_line(found.judge)} since {found.drift.against}: {joined(found.drift.changes)}"


def _row(found: AnchorFindings) -> tuple[str, ...]:
    bias = f"{signed(found.bias)} {interval(found.bias_low, found.bias_high, signs=True)}".rstrip()
    whose = f"{rubric_name(found.metric)} by {one_line(found.judge)}"
    same = "–" if found.same is None else percent(found.same)
    return whose, same, bias, str(found.n), _drift(found)


def _drift(found: AnchorFindings) -> str:
    drift = found.drift
    if drift.difference is None:
        return drift.reason or "unknown"
    ends = interval(drift.ci_low, drift.ci_high, signs=True)
    return " ".join(filter(None, (signed(drift.difference), ends, f"(n={drift.n}) since {drift.against}")))
