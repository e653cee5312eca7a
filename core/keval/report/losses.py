"""The report's lines on what a run lacks: failed or missing trials and scores, content that no model got."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from rich.text import Text

from keval.records.summary import ArmScore, Summary
from keval.records.traffic import ContentKind
from keval.report.console import safe
from keval.report.figures import counted
from keval.report.lines import joined


def failure_lines(summary: Summary) -> list[str]:
    """Return a line for each arm and kind of failed trials."""
    return [
        line
        for arm in summary.trials
        for line in _told(f"{arm.agent} {arm.condition}", arm.failures, arm.failure_messages)
    ]


def scorer_failure_lines(summary: Summary) -> list[str]:
    """Return a line for each kind of failure of a metric or judge, over all arms."""
    counts: dict[str, Counter[str]] = {}
    messages: dict[str, dict[str, str]] = {}
    for arm in summary.arms:
        who = arm.judge or arm.metric
        counts.setdefault(who, Counter()).update(arm.failures)
        messages[who] = {**arm.failure_messages, **messages.get(who, {})}
    return [line for who, found in counts.items() for line in _told(who, found, messages[who])]


def _told(who: str, counts: Mapping[str, int], messages: Mapping[str, str]) -> Iterator[str]:
    for kind, count in counts.items():
        said = messages.get(kind)
        first = f"{'; the first: ' if count > 1 else ': '}{said}" if said else ""
        yield f"{who}: {count} × {kind}{first}"


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


_NOUNS: dict[ContentKind, str] = {
    "image": "image",
    "audio": "sound",
    "resource_link": "link",
    "resource": "resource",
    "structured": "structured result",
}


def dropped_sentences(summary: Summary) -> list[str]:
    """Return a sentence for each agent that could not pass something that tools returned to its model."""
    dropped: dict[str, Counter[ContentKind]] = defaultdict(Counter)
    for arm in summary.trials:
        dropped[arm.agent].update(arm.dropped)
    return [
        f"{joined([counted(count, _NOUNS[kind]) for kind, count in kinds.items()])} that tools returned did not reach"
        f" the model ({agent})."
        for agent, kinds in dropped.items()
        if kinds
    ]
