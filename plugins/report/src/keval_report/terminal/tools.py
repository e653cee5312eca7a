"""What servers offer and how tools were used, with estimates of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
from rich.console import Console
from rich.table import Table
from rich.text import Text

from keval.cli.console import print_sections, safe
from keval.cli.messages import foreign
from keval.records.formats import counted
from keval.records.manifest import ServerEntry
from keval.records.servers import ContextToolListings, ServerListing, Sharing, ToolListing
from keval_analysis.findings.summary import Summary, ToolUse
from keval_analysis.listings import ListingChange, listing_changes, renamed_by
from keval_report.blocks import grouped
from keval_report.contexts import call_words, change_lines, definition_tokens, instruction_tokens
from keval_report.words import folded, one_line

_MOST = 8
"""Tools of one kind that a line names."""

HEADS = ("offered", "called", "first", "failed", "calls", "errors", "bad arguments")
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
        told = _listed([f"{one_line(tool)} {_trials(of, several=several)}" for tool, of in most])
        parts = [f"called in trials: {told}" if told else ""]
        if never := [one_line(tool) for tool, of in tools.items() if all(use.never_called for use in of)]:
            parts.append(f"never called: {_listed(never)}")
        rejected = {tool: sum(use.rejected for use in of) for tool, of in tools.items()}
        errors = {tool: sum(use.errors for use in of) - rejected[tool] for tool, of in tools.items()}
        for heading, counts in (("bad arguments", rejected), ("other errors", errors)):
            calls = {tool: sum(use.calls for use in tools[tool]) for tool, count in counts.items() if count}
            if found := [
                f"{one_line(tool)} {counts[tool]} of {of} call{'' if of == 1 else 's'}" for tool, of in calls.items()
            ]:
                parts.append(f"{heading}: {_listed(found)}")
        if unlisted := sum(of[0].unlisted for of in grouped(uses, lambda use: use.agent).values()):
            parts.append(f"{unlisted} trials may have called tools that were not reported")
        yield one_line(condition), "; ".join(filter(None, parts))


def tool_lines(summary: Summary) -> Iterator[Text]:
    """Yield a line for each condition with tools: how many trials called each, which were never called or refused."""
    less = set(map(one_line, summary.ablated))
    for condition, told in tool_texts(summary):
        if condition not in less:  # such a one lacks a part, which is told by what the part is worth
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


def _trials(uses: Sequence[ToolUse], *, several: bool) -> str:
    """Return in how many trials a tool was called, agent by agent if they differ."""
    counts = {one_line(use.agent): f"{use.called} of {use.trials}" for use in uses}
    if several and len({*counts.values()}) > 1:
        return ", ".join(f"{count} ({agent})" for agent, count in counts.items())
    return f"{sum(use.called for use in uses)} of {sum(use.trials for use in uses)}"


def _listed(parts: Sequence[str]) -> str:
    more = f" and {len(parts) - _MOST} more" if len(parts) > _MOST else ""
    return ", ".join(parts[:_MOST]) + more


def sharing_text(sharing: Sharing | None) -> str:
    """Return whether trials share a server, and why; `None` is what shows when it starts."""
    if sharing is None:
        return "shared if every tool is read-only by its hint, which shows when it starts"
    told = f"{'shared by trials' if sharing.shared else 'one for each trial'} ({sharing.why})"
    return told if sharing.verified else f"{told}; whether it isolates trials is not verified"


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


_HINTS = {
    "readOnlyHint": ("read-only", "writes"),
    "destructiveHint": ("may destroy", "destroys nothing"),
    "idempotentHint": ("may be repeated", "counts each call"),
    "openWorldHint": ("reaches out", "closed world"),
}
"""MCP's hints on what a tool does, in words: where one is true, and where it is false."""
_WIDEST_KIND = 40


def describe_tool_listings(contexts: Sequence[ContextToolListings]) -> dict[str, Any]:
    """Describe what contexts offer as plain data, with definitions as the server wrote them."""
    return {
        "contexts": [
            {
                "context": each.label,
                "type": each.type,
                "from": each.origin,
                "interventions": list(each.interventions),
                "servers": [_server(listing, each) for listing in each.tool_listings],
            }
            for each in contexts
        ]
    }


def _server(listing: ToolListing, context: ContextToolListings) -> dict[str, Any]:
    tools = [{**definition, "estimated_tokens": definition_tokens(definition)} for definition in listing.definitions]
    told: dict[str, Any] = {
        "server": listing.server,
        "tools": tools or [{"name": name} for name in listing.tools],
        "instructions": listing.instructions,
        "sha256": listing.digest,
        "estimated_tokens": _tokens(listing) if tools else None,
    }
    if (original := ServerListing.original(listing)) is not None:
        told["original"] = {
            "tools": list(original.tools),
            "instructions": original.instructions,
            "sha256": listing.original_digest,
        }
        told["changes"] = [attrs.asdict(change) for change in _changes(listing, context)]
    if listing.sharing is not None:
        told["sharing"] = attrs.asdict(listing.sharing)
    return told


def print_tool_listings(contexts: Sequence[ContextToolListings], console: Console) -> None:
    """Print what contexts offer."""
    for position, each in enumerate(contexts):
        if position:
            console.print()
        title = Text(one_line(each.label), "bold").append(f"  {one_line(each.type)}", "dim")
        title.append(f"  from {one_line(each.origin)}" if each.origin else "", "dim")
        console.print(title if each.tool_listings else title.append("  no MCP server", "dim"), soft_wrap=True)
        for listing in each.tool_listings:
            print_sections([_lines(listing, each, console.width)], console)
    if any(listing.definitions for each in contexts for listing in each.tool_listings):
        console.print()
        told = "Tokens are estimates, of name, description and parameters as JSON: models differ in how they count."
        console.print(Text(told, "dim"), soft_wrap=True)


def _lines(listing: ToolListing, context: ContextToolListings, width: int) -> Iterator[Text]:
    tokens = f", about {_tokens(listing):,} tokens" if listing.definitions else ""
    yield Text(f"  server {one_line(listing.server)}: {counted(len(listing.tools), 'tool')}{tokens}")
    if listing.sharing is not None:
        yield from _folded(sharing_text(listing.sharing), width, 4)
    if listing.instructions:
        yield Text(f"    instructions: about {instruction_tokens(listing):,} tokens")
        yield from _block(listing.instructions, width, 6)
    if not listing.definitions:
        yield from _folded(f"{', '.join(map(one_line, listing.tools))} (their definitions are not known)", width, 4)
    for definition in listing.definitions:
        yield from _tool(definition, width)
    if context.interventions:
        yield Text("    changed by interventions:")
        for told in call_words(context.interventions):
            yield from _folded(told, width, 6, style="")
        for change in _changes(listing, context):
            yield from change_lines(change, width, indent=6)


def _changes(listing: ToolListing, context: ContextToolListings) -> list[ListingChange]:
    """Return what interventions change of what the server says."""
    before, after = ServerListing.original(listing), ServerListing.offered(listing)
    if before is None or after is None:
        return []
    return listing_changes(before, after, renamed_by(context.interventions))


def _tool(definition: Mapping[str, Any], width: int) -> Iterator[Text]:
    told = [f"about {definition_tokens(definition):,} tokens", *_hints(definition)]
    for line in folded(f"{one_line(str(definition['name']))}: {', '.join(told)}", width, indent=4, hanging=6):
        yield Text(line)
    yield from _block(str(definition.get("description") or "no description"), width, 6)
    for name, kind, words in _parameters(definition):
        yield from _folded(f"{one_line(name)} ({kind}){': ' if words else ''}{words}", width, 8)


def _hints(definition: Mapping[str, Any]) -> Iterator[str]:
    told = definition.get("annotations")
    for name, (yes, no) in _HINTS.items():
        if isinstance(told, Mapping) and isinstance(value := told.get(name), bool):
            yield yes if value else no
    if definition.get("outputSchema"):
        yield "has an output schema"


def _parameters(definition: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the kind and the description of each parameter."""
    schema = definition.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    required = schema.get("required", ()) if isinstance(schema, Mapping) else ()
    for name, told in properties.items() if isinstance(properties, Mapping) else ():
        part = told if isinstance(told, Mapping) else {}
        kind = _kind(part) + ("" if name in required else ", optional")
        yield name, kind, one_line(str(part.get("description") or ""))


def _kind(schema: Mapping[str, Any]) -> str:
    """Return in a few words what a JSON Schema allows."""
    if isinstance(choices := schema.get("enum"), list):
        told = " | ".join(map(repr, choices))
    elif isinstance(several := schema.get("anyOf") or schema.get("oneOf"), list):
        told = " | ".join(_kind(part) for part in several if isinstance(part, Mapping))
    elif isinstance(kind := schema.get("type"), list):
        told = " | ".join(map(str, kind))
    elif kind == "array" and isinstance(items := schema.get("items"), Mapping):
        told = f"array of {_kind(items)}"
    else:
        told = str(kind or "any")
    told = one_line(told)
    return told if len(told) <= _WIDEST_KIND else f"{told[: _WIDEST_KIND - 1]}…"


def _tokens(listing: ToolListing) -> int:
    return instruction_tokens(listing) + sum(map(definition_tokens, listing.definitions))


def _block(text: str, width: int, indent: int) -> Iterator[Text]:
    """Yield a text of others with its own lines."""
    for line in foreign(text.strip()).splitlines():
        yield from _folded(line, width, indent)


def _folded(text: str, width: int, indent: int, style: str = "dim") -> Iterator[Text]:
    yield from (Text(line, style) for line in folded(foreign(text), width, indent=indent, hanging=indent))
