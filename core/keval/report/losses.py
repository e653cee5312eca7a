"""The report's lines on what a run lacks: trials and scores that failed or are missing, and tool use."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from rich.text import Text

from keval.report.console import safe
from keval.report.failures import failure_lines, scorer_failure_lines
from keval.summary import ArmScore, Summary

__all__ = ["compliance_lines", "lost_scores", "missing_lines", "trial_lines", "unscored_lines"]


def lost_scores(arms: Sequence[ArmScore]) -> str:
    """Return in words how many scores of arms failed, have no value, or were not made; empty if none is lost."""
    failed, unscored = sum(arm.failed for arm in arms), sum(arm.unscored for arm in arms)
    counts = {"failed": failed, "unscored": unscored - failed, "missing": sum(arm.missing for arm in arms)}
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count)


def unscored_lines(summary: Summary) -> Iterator[Text]:
    """Yield how many scores have no value, and how often each scorer failed, by kind."""
    if unscored := sum(entry.unscored for entry in summary.arms):
        failed = sum(entry.failed for entry in summary.arms)
        yield Text(f"{unscored} scores have no value ({failed} because the scorer failed): keval show --unscored")
        yield from (safe(f"  {line}", "red") for line in scorer_failure_lines(summary))


def missing_lines(summary: Summary, run: Path, *, under_way: bool) -> Iterator[Text]:
    """Yield how many scores are missing, and how to make them."""
    if missing := sum(entry.missing for entry in summary.arms):
        interrupted = f"scoring was interrupted; `{_completes(summary, run)}` completes it"
        why = "they are being made" if under_way else interrupted
        yield safe(f"{missing} scores are missing: {why}.")


def compliance_lines(summary: Summary) -> Iterator[Text]:
    """Yield how trials used tools, for conditions that require it. Repeating only those that did not is a bias."""
    for arm in summary.trials:
        told = arm.compliance
        if told is None:
            continue
        answered, first, lacking = told.answered, told.complied_first, told.answered - told.complied
        share = f" ({first / answered:.0%})" if answered else ""
        parts = [f"{arm.agent} {arm.condition}: {first} of {answered} trials{share} used tools as required at first"]
        if told.discarded:
            parts.append(f"{told.discarded} answers were discarded and asked for again")
        if lacking and told.on_missing_tool_use == "keep":
            parts.append(f"{lacking} that did not are kept and scored")
        elif lacking:
            parts.append(f"{lacking} that never did failed, without a score")
        biased = bool(told.discarded) or (lacking and told.on_missing_tool_use != "keep")
        line = "; ".join(parts) + (", which favours this condition." if biased else ".")
        yield safe(line, "yellow" if len(parts) > 1 else "")


def trial_lines(summary: Summary, *, under_way: bool) -> Iterator[Text]:
    """Yield which trials were not run and why, and how trials failed."""
    done = sum(entry.trials for entry in summary.trials)
    if done < summary.planned:
        why = "are still to be run" if under_way else f"were never run: {summary.stopped or 'the run was interrupted'}"
        yield safe(f"{summary.planned - done} trials {why}.")
    elif summary.stopped:
        yield safe(f"{summary.stopped}.", "red")
    yield from (safe(f"  {line}", "red") for line in failure_lines(summary))


def _completes(summary: Summary, run: Path) -> str:
    """Return the command that makes the scores that are missing, and runs the trials that are."""
    if sum(entry.trials for entry in summary.trials) < summary.planned and summary.replay is None and not summary.play:
        return shlex.join(["keval", "resume", str(run)])
    lacking = [entry.scorer for entry in summary.arms if entry.missing]
    flags = dict.fromkeys(("--judge", judge) if judge else ("--metric", metric) for metric, judge in lacking)
    return shlex.join(["keval", "score", str(run), *chain.from_iterable(flags), "--missing"])
