"""How often tools were called, and instructions and skills read: in lines and as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from rich.text import Text

from keval.cli.console import safe
from keval.records.formats import percent, short_number
from keval_analysis.findings.summary import Activation, Summary, ToolUse
from keval_report.blocks import grouped
from keval_report.words import one_line, way_words

TEXT_HEADS = (
    *("text", "agent", "condition", "given by"),
    *("read in trials", "of trials, 95 %", "model call", "returned by"),
)
"""The heads of a table of texts."""
_BY_KEVAL = ("read_skill", "system prompt")
"""Ways in which keval gives a skill in place of the agent's own skills."""
_UNKNOWN = "unknown, as keval saw no model request"
_MOST_TEXTS = 5
"""Texts that a first report names."""


def activation_texts(summary: Summary) -> Iterator[str]:
    """Yield a line for each text that was given, but for neighbours: in which share of trials it was read."""
    shown = [each for each in _shown(summary) if each.kind != "neighbour"]
    agents, conditions = ({getattr(each, of) for each in shown} for of in ("agent", "condition"))
    texts = grouped(shown, lambda each: (each.kind, each.text))
    for (kind, name), found in islice(texts.items(), _MOST_TEXTS):
        alike: dict[str, list[str]] = {}
        for each in found:
            labels = [each.agent] * (len(agents) > 1) + [each.condition] * (len(conditions) > 1)
            by = f"given by keval ({each.way}), " if each.way in _BY_KEVAL else ""
            alike.setdefault(f"{by}{_share(each)}", []).append(" ".join(map(one_line, labels)))
        told = (f"{', '.join(whose)} {share}".lstrip() if len(alike) > 1 else share for share, whose in alike.items())
        yield f"{one_line(kind)} {one_line(name)} read in trials: {'; '.join(told)}"
    if len(texts) > _MOST_TEXTS:
        yield f"and {len(texts) - _MOST_TEXTS} more"


def activation_sentences(summary: Summary) -> Iterator[str]:
    """Yield how each text was given and read in each arm."""
    for each in _shown(summary):
        calls = [f"{one_line(tool)} {count}" for tool, count in each.tools.items()]
        told = [f"given {way_words(one_line(each.way))}"]
        told.append(f"read {_share(each)}" if each.rate is None else f"read in {_read_in(each)} trials, {_share(each)}")
        if each.unknown and each.rate is not None:
            told.append(f"{each.unknown:,} trials left out, as keval saw no model request of theirs")
        told += [f"first in model call {short_number(each.model_call)} (median)"] if each.model_call is not None else []
        told += [f"returned by {', '.join(calls)}"] if calls else []
        yield f"{_whose(each)}: {'; '.join(told)}"


def activation_rows(summary: Summary) -> Iterator[Sequence[str]]:
    """Yield the cells of a table with a row for each text and arm, below `TEXT_HEADS`."""
    for each in _shown(summary):
        text, arm = f"{one_line(each.kind)} {one_line(each.text)}", map(one_line, (each.agent, each.condition))
        first = "–" if each.model_call is None else short_number(each.model_call)
        tools = ", ".join(f"{one_line(tool)} {count}" for tool, count in each.tools.items()) or "–"
        yield (text, *arm, one_line(each.way), _read_in(each), _share(each), first, tools)


def _shown(summary: Summary) -> list[Activation]:
    """Return the activations but for those of conditions that lack a part, which are told by what that is worth."""
    return [each for each in summary.activations if each.condition not in summary.ablated]


def _whose(each: Activation) -> str:
    return f"{one_line(each.kind)} {one_line(each.text)} ({one_line(each.agent)} {one_line(each.condition)})"


def _read_in(each: Activation) -> str:
    return f"{each.read:,} of {each.trials - each.unknown:,}"


def _share(each: Activation) -> str:
    if each.rate is None:
        return _UNKNOWN
    ends = ""
    if each.ci_low is not None and each.ci_high is not None:
        ends = f" [{percent(each.ci_low)}, {percent(each.ci_high)}]"
    return f"{percent(each.rate)}{ends} n={each.n}"


_MOST_TOOLS = 8
"""Tools of one kind that a line names."""

TOOL_HEADS = ("offered", "called", "first", "failed", "calls", "errors", "bad arguments")
"""The heads of a table's figures; the first four count trials."""


def used_tools(summary: Summary) -> dict[str, list[ToolUse]]:
    """Return the use of tools by condition, for conditions that offered or used any."""
    places = {tool: place for place, tool in enumerate(dict.fromkeys(use.tool for use in summary.tools))}
    by_condition = grouped(summary.tools, lambda use: use.condition)
    return {label: sorted(uses, key=lambda use: places[use.tool]) for label, uses in by_condition.items()}


def tool_texts(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield each condition with tools, and in words how they were used."""
    several = len({entry.agent for entry in summary.trials}) > 1
    for condition, uses in used_tools(summary).items():
        tools = grouped(uses, lambda use: use.tool)
        called = {tool: of for tool, of in tools.items() if any(use.called for use in of)}
        most = sorted(called.items(), key=lambda item: -sum(use.called for use in item[1]))
        told = _first_tools([f"{one_line(tool)} {_trials(of, several=several)}" for tool, of in most])
        parts = [f"called in trials: {told}" if told else ""]
        if never := [one_line(tool) for tool, of in tools.items() if all(use.never_called for use in of)]:
            parts.append(f"never called: {_first_tools(never)}")
        rejected = {tool: sum(use.rejected for use in of) for tool, of in tools.items()}
        errors = {tool: sum(use.errors for use in of) - rejected[tool] for tool, of in tools.items()}
        for heading, counts in (("bad arguments", rejected), ("other errors", errors)):
            calls = {tool: sum(use.calls for use in tools[tool]) for tool, count in counts.items() if count}
            if found := [
                f"{one_line(tool)} {counts[tool]} of {of} call{'' if of == 1 else 's'}" for tool, of in calls.items()
            ]:
                parts.append(f"{heading}: {_first_tools(found)}")
        # Each tool of an agent has the same number, which is of trials.
        if unlisted := sum(of[0].unlisted for of in grouped(uses, lambda use: use.agent).values()):
            parts.append(f"{unlisted} trials may have called tools that were not reported")
        yield one_line(condition), "; ".join(filter(None, parts))


def tool_lines(summary: Summary) -> Iterator[Text]:
    """Yield a line for each condition with tools: how many trials called each, which were never called or refused."""
    less = set(map(one_line, summary.ablated))
    for condition, told in tool_texts(summary):
        if condition not in less:  # such a one lacks a part, which is told by what the part is worth
            yield safe(f"tools of {condition}: {told}", "dim")


def tool_cells(use: ToolUse) -> tuple[str, ...]:
    """Return the figures of a row, as `TOOL_HEADS` calls them; `–` is unknown."""
    offered = "–" if use.offered is None else f"{use.offered:,} of {use.trials:,}"
    counts = (use.called, use.first, use.failed, use.calls, use.errors, use.rejected)
    return (offered, *(f"{count:,}" for count in counts))


def _trials(uses: Sequence[ToolUse], *, several: bool) -> str:
    """Return in how many trials a tool was called, agent by agent if they differ."""
    counts = {one_line(use.agent): f"{use.called} of {use.trials}" for use in uses}
    if several and len({*counts.values()}) > 1:
        return ", ".join(f"{count} ({agent})" for agent, count in counts.items())
    return f"{sum(use.called for use in uses)} of {sum(use.trials for use in uses)}"


def _first_tools(parts: Sequence[str]) -> str:
    more = f" and {len(parts) - _MOST_TOOLS} more" if len(parts) > _MOST_TOOLS else ""
    return ", ".join(parts[:_MOST_TOOLS]) + more
