"""summary.json of a run, for reading."""

from __future__ import annotations

from pathlib import Path

from keval.errors import RunError
from keval.files import read_json
from keval.records.scores import Scored
from keval.store.serialization import from_plain
from keval_analysis.findings.effects import EXPENSES
from keval_analysis.findings.summary import Summary

REMADE = "remove it, as it is made anew from trials and scores"


def read_summary(path: Path) -> Summary:
    """Read what a run found, as it was written down. Raises RunError."""
    summary = from_plain(Summary, read_json(path, REMADE), path, REMADE)
    contrasts = summary.contrasts
    scored: list[Scored] = [
        *summary.arms,
        *summary.effects,
        *summary.interactions,
        *summary.variance,
        *summary.win_rates,
    ]
    scored += [*summary.properties, *(effect for contrast in contrasts for effect in contrast.effects)]
    expenses = [*summary.expenses, *(effect for contrast in contrasts for effect in contrast.expenses)]
    unknown = {each.metric for each in expenses} - {*EXPENSES}
    scorers = {entry.scorer for entry in summary.scorers}
    unknown |= {each.metric for each in scored if each.scorer not in scorers}
    if unknown:
        raise RunError(f"{path} is damaged: it does not list the metric {min(unknown)!r}; {REMADE}")
    return summary
