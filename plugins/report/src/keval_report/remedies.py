"""The command that makes what a run lacks."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import NamedTuple

from keval_analysis.findings.summary import Summary
from keval_report.words import run_place


class Remedy(NamedTuple):
    """A command in words, and what to do by it."""

    command: list[str]
    does: str


def remedy(summary: Summary, run: Path) -> Remedy | None:
    """Return the command that goes on with a run; `None` for one that is whole, or whose answers cannot be made."""
    where, can_answer = run_place(run), summary.replay is None and not summary.play
    if can_answer and sum(entry.trials for entry in summary.trials) < summary.planned:
        return Remedy(["keval", "resume", where], "run the remaining trials")
    if lacking := [entry.scorer for entry in summary.arms if entry.missing]:
        flags = dict.fromkeys(("--judge", judge) if judge else ("--metric", metric) for metric, judge in lacking)
        command = ["keval", "score", where, *chain.from_iterable(flags), "--missing"]
        return Remedy(command, "make the missing scores")
    if can_answer and any(entry.failed for entry in summary.trials):
        return Remedy(["keval", "resume", where, "--retry-failed"], "run the failed trials again")
    return None
