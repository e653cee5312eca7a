"""What trials and judgements took, which trials and scores are missing, and the command that makes these."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from rich.text import Text

from keval.cli.console import safe
from keval.records.formats import counted, number, percent, time_span
from keval.records.manifest import ServerStartsEntry
from keval.records.models import dollars
from keval.records.transcript import ContentKind
from keval_analysis.findings.formats import token_count
from keval_analysis.findings.summary import ArmScore, ArmTrials, Cost, JudgingTotal, Summary
from keval_report.words import flowed, joined, run_name, run_place


def total_lines(summary: Summary, width: int) -> Iterator[Text]:
    """Yield what the run took: trials, time, calls, tokens and dollars, as far as they are known."""
    for line in flowed(totals(summary), width):
        text = Text(line)
        text.highlight_regex(r"[\d,]+ failed", "red")
        yield text


def totals(summary: Summary) -> Iterator[str]:
    """Yield what a run took with failed attempts and judgements, as far as it is known."""
    trials, failed = sum(entry.trials for entry in summary.trials), sum(entry.failed for entry in summary.trials)
    retried = sum(entry.retried for entry in summary.trials)
    of = f"{trials:,} of {counted(summary.planned, 'trial')}" if trials < summary.planned else counted(trials, "trial")
    again = f", {retried:,} retried" if retried else ""
    yield f"{of}, {f'{failed:,}' if failed else 'none'} failed{again}" if trials else of
    if summary.elapsed is not None:
        yield time_span(summary.elapsed)
    if (starts := start_total(summary)) is not None:
        yield starts
    asked = [entry.model_calls for entry in summary.trials] + [entry.model_calls for entry in summary.judging]
    # The 0 of no attempt that was given up does not mean that calls are known.
    model_calls = _sum([*asked, *(entry.given_up.model_calls or None for entry in summary.trials)])
    if model_calls is not None:
        yield counted(model_calls, "model call")
    if (tool_calls := _sum(entry.tool_calls for entry in summary.trials)) is not None:
        yield counted(tool_calls, "tool call")
    if answers := sum(entry.sampling.answers for entry in summary.trials):
        took = [entry.sampling.usage for entry in summary.trials]
        sampled = _sum(part for usage in took for part in (usage.input_tokens, usage.output_tokens))
        yield counted(answers, "answer") + " to servers" + (f" ({token_count(sampled)})" if sampled is not None else "")
    usages = [usage for entry in summary.trials for usage in (entry.usage, entry.given_up.usage)]
    usages += [entry.usage for entry in summary.judging]
    unknown = sum(usage.unknown for usage in usages)
    tokens = _sum(part for usage in usages for part in (usage.input_tokens, usage.output_tokens))
    if tokens is not None:
        yield f"{token_count(tokens)}{f' (unknown for {_those(unknown)})' if unknown else ''}"
    yield money(summary)


def total_cost(summary: Summary) -> Cost:
    """Return what all trials and judgements of a run cost, and what servers asked of models."""
    entries: list[ArmTrials | JudgingTotal] = [*summary.trials, *summary.judging]
    return sum((entry.cost for entry in (*entries, *(arm.sampling for arm in summary.trials))), Cost())


def money(summary: Summary) -> str:
    """Return what a run cost in a line, and what of that is unknown."""
    cost = total_cost(summary)
    simulated = " (simulated)" if summary.simulated and not cost.usd else ""
    known = "" if cost.usd is None else f"{dollars(cost.usd)}{simulated}"
    if cost.by_provider:
        known += f" (told by the provider for {_those(cost.by_provider)})"
    if not cost.unknown:
        return known or "no model was asked"
    if summary.unpriced and not cost.by_provider:
        unknown = f"price unknown for {', '.join(summary.unpriced)}"
    else:
        unknown = f"cost of {_those(cost.unknown)} unknown"
    return f"{known}; {unknown}" if known else unknown


def _sum(values: Iterable[int | None]) -> int | None:
    """Return the sum of what is known; `None` if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _those(number: int) -> str:
    return "1 trial or judgement" if number == 1 else f"{number:,} trials or judgements"


PARETO = "◆"
"""Marks an arm than which no other is at least as good for at most as much, and better in one of the two."""


def cost_effectiveness(arm: ArmScore) -> str:
    """Return how much mean an arm has for what an answer costs; empty if the cost is unknown or nothing."""
    worth = ((arm.per_usd, " per $"), (arm.per_1000_tokens, " per 1,000 tokens"))
    parts = [f"{number(value)}{unit}" for value, unit in worth if value is not None]
    mark = f" {PARETO}" if parts and arm.pareto else ""
    return ", ".join(parts) + mark


def _scorer_failure_lines(summary: Summary) -> list[str]:
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


def loss_texts(summary: Summary, run: Path, *, under_way: bool = False, most: int | None = None) -> list[str]:
    """Return which trials failed and which scores are lost, with the commands that show them; none if none are.

    Of each, it names the first kinds of failure, or all.
    """
    name, lost = run_name(run), []
    by_arm = ((f"{arm.agent} {arm.condition}", arm.failures, arm.failure_messages) for arm in summary.trials)
    if failures := [line for each in by_arm for line in _told(*each)]:
        failed = counted(sum(entry.failed for entry in summary.trials), "trial")
        lost += [f"{failed} failed: {shlex.join(['keval', 'show', name, '--failed'])}", *failures[:most]]
    if unscored := sum(entry.unscored for entry in summary.arms):
        failed_scores = sum(entry.failed for entry in summary.arms)
        why = f" ({failed_scores} because the scorer failed)" if failed_scores else ""
        told = f"{counted(unscored, 'score')} without a value{why}"
        lost += [f"{told}: {shlex.join(['keval', 'show', name, '--unscored'])}", *_scorer_failure_lines(summary)[:most]]
    if missing := sum(entry.missing for entry in summary.arms):
        why = "is still running" if under_way else "was interrupted"
        lost.append(f"{counted(missing, 'score')} missing, because scoring {why}")
    return lost


class Remedy(NamedTuple):
    """A command in words, and what to do by it."""

    command: list[str]
    does: str


def remedy(summary: Summary, run: Path) -> Remedy | None:
    """Return the command that goes on with a run; `None` for one that is whole, or whose answers cannot be made."""
    where, can_answer = run_place(run), summary.replay is None and not summary.play
    # Missing trials come first, as `resume` makes missing scores as well.
    if can_answer and sum(entry.trials for entry in summary.trials) < summary.planned:
        return Remedy(["keval", "resume", where], "run the remaining trials")
    if lacking := [entry.scorer for entry in summary.arms if entry.missing]:
        flags = dict.fromkeys(("--judge", judge) if judge else ("--metric", metric) for metric, judge in lacking)
        command = ["keval", "score", where, *chain.from_iterable(flags), "--missing"]
        return Remedy(command, "make the missing scores")
    if can_answer and any(entry.failed for entry in summary.trials):
        return Remedy(["keval", "resume", where, "--retry-failed"], "run the failed trials again")
    return None


def favours(arm: ArmTrials) -> bool:
    """Return whether trials of an arm were repeated or left out because they used no tools, which is a bias for it."""
    told = arm.compliance
    return told is not None and (
        bool(told.discarded) or (told.answered > told.complied and told.on_missing_tool_use != "keep")
    )


def compliance_text(arm: ArmTrials) -> str:
    """Return how trials of an arm used tools; an empty text if its condition does not require that."""
    told = arm.compliance
    if told is None:
        return ""
    answered, first, lacking = told.answered, told.complied_first, told.answered - told.complied
    share = f" ({percent(first / answered)})" if answered else ""
    parts = [f"{first} of {answered} trials{share} used tools as required at the first attempt"]
    if told.discarded:
        parts.append(f"{told.discarded} answers were discarded, and their trials run again")
    if lacking and told.on_missing_tool_use == "keep":
        parts.append(f"{lacking} that did not are scored all the same")
    elif lacking:
        parts.append(f"{lacking} that never did failed and have no score")
    end = ", which favours this condition." if favours(arm) else "."
    return f"{arm.agent} {arm.condition}: {'; '.join(parts)}{end}"


def compliance_lines(summary: Summary) -> Iterator[Text]:
    """Yield how trials used tools, for conditions that require it."""
    for arm in summary.trials:
        if told := compliance_text(arm):
            yield safe(told, "yellow" if favours(arm) else "")


def unrun_text(summary: Summary, *, under_way: bool) -> str:
    """Return which trials were not run and why, or what else a limit left out; an empty text if all was done."""
    done = sum(entry.trials for entry in summary.trials)
    if done < summary.planned:
        why = "are still to be run" if under_way else f"were not run: {summary.stopped or 'the run was interrupted'}"
        return f"{summary.planned - done} trials {why}."
    return f"{summary.stopped}." if summary.stopped else ""


_NOUNS: Mapping[str, str] = {"audio": "sound", "resource_link": "link", "structured": "structured result"}
"""Kinds of content that are told in other words than their own."""


def remark_sentences(summary: Summary) -> Iterator[str]:
    """Yield what a reader must know of the answers that the figures do not show.

    That is where arms had unlike pasts, what an agent could not pass on to its model, and what was cut off.
    """
    pasts = (("conversation histories", summary.unlike_histories), ("facts", summary.unlike_facts))
    if unlike := joined([f"{what} ({counted(count, 'question')})" for what, count in pasts if count]):
        yield f"Arms had different {unlike}: the comparison is of assistants with their own pasts."
    dropped: dict[str, Counter[ContentKind]] = defaultdict(Counter)
    for arm in summary.trials:
        dropped[arm.agent].update(arm.dropped)
    for agent, kinds in dropped.items():
        if told := joined([counted(count, _NOUNS.get(kind, kind)) for kind, count in kinds.items()]):
            yield f"{told} that tools returned did not reach the model ({agent})."
    if cut := [arm for arm in summary.trials if arm.truncated]:
        arms = [f"{arm.truncated:,} of {arm.trials - arm.failed:,} of {arm.agent} {arm.condition}" for arm in cut]
        answers = counted(sum(arm.truncated for arm in cut), "answer")
        were = "was" if answers == "1 answer" else "were"
        yield f"{answers} {were} cut off at a limit of length, and scored all the same: {', '.join(arms)}."


LESS = (
    "Trials can share one if it keeps nothing between calls (isolation: condition, or readOnlyHint on its tools and"
    " examples in their input schemas), and one over HTTP needs only a session for each trial"
)
"""What takes less than to start a server for each trial."""
_NOTABLE_SECONDS = 10.0
_NOTABLE_SHARE = 0.1
"""What starts take together, and of the time of a run, when they are worth a word."""


def start_notice(starts: Iterable[ServerStartsEntry], left: float) -> str | None:
    """Return what starting servers will take, and what takes less, if that is much; `left` of the trials are to be run.

    It is reckoned from the processes that were started until now.
    """
    own = [entry for entry in starts if entry.planned]
    seconds = left * sum(entry.planned * entry.seconds / entry.processes for entry in own)
    if seconds < _NOTABLE_SECONDS:
        return None
    count = left * sum(entry.planned for entry in own)
    servers = ", ".join(dict.fromkeys(entry.server for entry in own))
    return (
        f"{round(count):,} server processes are to be started, one for each trial ({servers}), which take about"
        f" {time_span(seconds / count)} each. {LESS}"
    )


def start_total(summary: Summary) -> str | None:
    """Return what starting a server for each trial took, if that is a notable part of the run."""
    own = [entry for entry in summary.server_starts if entry.planned]
    seconds = sum(entry.seconds for entry in own)
    if seconds < max(_NOTABLE_SECONDS, _NOTABLE_SHARE * (summary.elapsed or 0.0)):
        return None
    return f"{counted(sum(entry.processes for entry in own), 'server start')} ({time_span(seconds)})"
