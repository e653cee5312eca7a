"""The use of tools in a report: a line a condition, and a table of everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from rich.table import Table
from rich.text import Text

from keval.records.manifest import ServerEntry
from keval.records.servers import Sharing
from keval.records.summary import Summary, ToolUse
from keval.report.claims import grouped
from keval.report.console import safe
from keval.report.lines import one_line

_MOST = 8
"""Tools of one kind that a line names."""

HEADS = ("offered", "called", "first", "failed", "calls", "errors", "bad arguments")
"""The heads of a table's figures; the first four count trials."""


def used_tools(summary: Summary) -> dict[str, list[ToolUse]]:
    """Return the use of tools by condition, for conditions that offered or used any."""
    return {label: list(group) for label, group in groupby(_by_condition(summary), key=lambda use: use.condition)}


def tool_texts(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield each condition with tools, and in words how they were used."""
    several = len({entry.agent for entry in summary.trials}) > 1
    for condition, uses in used_tools(summary).items():
        tools = {tool: list(group) for tool, group in groupby(uses, key=lambda use: use.tool)}
        called = {tool: of for tool, of in tools.items() if any(use.called for use in of)}
        most = sorted(called.items(), key=lambda item: -sum(use.called for use in item[1]))
        told = _listed([f"{one_line(tool)} {_trials(of, several=several)}" for tool, of in most])
        parts = [f"called in trials: {told}" if told else ""]
        if never := [one_line(tool) for tool, of in tools.items() if all(use.never_called for use in of)]:
            parts.append(f"never called: {_listed(never)}")
        for heading, count in _COUNTED:
            if found := [f"{one_line(tool)} {count(of)} of {_calls(of)}" for tool, of in tools.items() if count(of)]:
                parts.append(f"{heading}: {_listed(found)}")
        if unlisted := sum(of[0].unlisted for of in grouped(uses, lambda use: use.agent).values()):
            parts.append(f"{unlisted} trials may have called others, which nobody reported")
        yield one_line(condition), "; ".join(filter(None, parts))


def tool_lines(summary: Summary) -> Iterator[Text]:
    """Yield a line for each condition with tools: how many trials called each, which were never called or refused."""
    less = set(map(one_line, summary.ablated))
    for condition, told in tool_texts(summary):
        if condition in less:  # it lacks a tool, and that is told by what the tool is worth
            continue
        yield safe(f"tools of {condition}: {told}", "dim")


def tool_tables(summary: Summary) -> Iterator[Table | Text]:
    """Yield a table for each condition with tools, a row for each tool and agent, and what the figures are."""
    for condition, uses in used_tools(summary).items():
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
        table.add_column(Text(f"tools of {one_line(condition)}", "bold"), no_wrap=True)
        table.add_column("", no_wrap=True)
        for head in HEADS:
            table.add_column(head, justify="right")
        last = ""
        for use in uses:
            table.add_row(safe("" if use.tool == last else use.tool), safe(use.agent, "dim"), *tool_cells(use))
            last = use.tool
        yield table
    if summary.tools:
        told = "offered, called, first (called before any other) and failed count trials; bad arguments: calls that did"
        yield Text(f"{told} not fit the tool's schema, or were refused before they reached a server.", "dim")


def tool_cells(use: ToolUse) -> tuple[str, ...]:
    """Return the figures of a row, as `HEADS` calls them; `–` is unknown."""
    offered = "–" if use.offered is None else f"{use.offered:,} of {use.trials:,}"
    counts = (use.called, use.first, use.failed, use.calls, use.errors, use.rejected)
    return (offered, *(f"{count:,}" for count in counts))


def _by_condition(summary: Summary) -> list[ToolUse]:
    """Return the use of tools sorted by condition, then by tool, each in the order of the run."""
    conditions = {label: place for place, label in enumerate(dict.fromkeys(use.condition for use in summary.tools))}
    tools = {label: place for place, label in enumerate(dict.fromkeys(use.tool for use in summary.tools))}
    return sorted(summary.tools, key=lambda use: (conditions[use.condition], tools[use.tool]))


def _trials(uses: Sequence[ToolUse], *, several: bool) -> str:
    """Return in how many trials a tool was called, agent by agent if they differ."""
    counts = {one_line(use.agent): f"{use.called} of {use.trials}" for use in uses}
    if several and len({*counts.values()}) > 1:
        return ", ".join(f"{count} ({agent})" for agent, count in counts.items())
    return f"{sum(use.called for use in uses)} of {sum(use.trials for use in uses)}"


def _calls(uses: Sequence[ToolUse]) -> str:
    count = sum(use.calls for use in uses)
    return f"{count} call" if count == 1 else f"{count} calls"


def _errors(uses: Sequence[ToolUse]) -> int:
    return sum(use.errors - use.rejected for use in uses)


def _rejected(uses: Sequence[ToolUse]) -> int:
    return sum(use.rejected for use in uses)


_COUNTED: Sequence[tuple[str, Callable[[Sequence[ToolUse]], int]]] = (
    ("bad arguments", _rejected),
    ("other errors", _errors),
)


def _listed(parts: Sequence[str]) -> str:
    more = f" and {len(parts) - _MOST} more" if len(parts) > _MOST else ""
    return ", ".join(parts[:_MOST]) + more


def sharing_text(sharing: Sharing | None) -> str:
    """Return whether trials share a server, and why; `None` is what shows when it starts."""
    if sharing is None:
        return "shared if every tool is read-only by its hint, which shows when it starts"
    told = f"{'shared by trials' if sharing.shared else 'one for each trial'} ({sharing.why})"
    return told if sharing.verified else f"{told}; that it keeps trials apart is not verified"


def entry_text(entry: ServerEntry) -> str | None:
    """Return the same of a server of a run; `None` if the run does not say."""
    if entry.shared is None:
        return None
    return sharing_text(Sharing(entry.shared, entry.sharing or "unknown", entry.isolation_verified is not False))


def sharing_lines(summary: Summary) -> Iterator[Text]:
    """Yield a line for each server of a run; one that several conditions have in the same way has one line."""
    told: dict[tuple[str, Sharing], list[str]] = {}
    for condition, servers in summary.servers.items():
        for name, sharing in servers.items():
            told.setdefault((name, sharing), []).append(condition)
    names = [name for name, _ in told]
    for (name, sharing), conditions in told.items():
        where = f" of {', '.join(conditions)}" if names.count(name) > 1 else ""
        yield safe(f"server {name}{where}: {sharing_text(sharing)}", "dim" if sharing.verified else "yellow")
