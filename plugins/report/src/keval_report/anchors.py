"""What the report says of anchors: how far judges agree with the labels, and how they drifted."""

from __future__ import annotations

from collections.abc import Iterator

from keval.records.formats import counted, interval, percent, signed
from keval_analysis.findings.anchors import AnchorFindings
from keval_analysis.findings.summary import Summary
from keval_report.words import joined, one_line, rubric_name


def anchor_lines(summary: Summary) -> Iterator[str]:
    """Yield a line for each judge and rubric; there are none if the run has no anchors."""
    for found in summary.anchors:
        told = [_agreement(found), _drift(found)]
        if found.failed:
            told.append(f"{counted(found.failed, 'grading')} failed")
        yield one_line(f"Anchors, {rubric_name(found.metric)} by {found.judge}: {'; '.join(told)}.")


def _agreement(found: AnchorFindings) -> str:
    if found.same is None:
        return "no anchor has a label and a grade"
    bias = f"{signed(found.bias)} {interval(found.bias_low, found.bias_high, signs=True)}".rstrip()
    return f"{percent(found.same)} of {found.n} on the level of people, judge - people {bias}"


def _drift(found: AnchorFindings) -> str:
    drift = found.drift
    if drift.difference is None:
        return f"drift unknown ({drift.reason})"
    ends = interval(drift.ci_low, drift.ci_high, signs=True)
    changes = f", changed since then: {joined(drift.changes)}" if drift.changes else ""
    return f"drift {signed(drift.difference)} {ends}".rstrip() + f" on {drift.n} since {drift.against}{changes}"
