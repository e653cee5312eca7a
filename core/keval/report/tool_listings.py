"""What servers offer, for people and for machines: tools with their parameters, hints, instructions and tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
from rich.console import Console
from rich.text import Text

from keval.analysis.listing_changes import ListingChange, listing_changes, renamed_by
from keval.execute.bringup.tool_listings import ContextOffers, definition_tokens, instruction_tokens
from keval.records.servers import ServerListing, ToolOffer
from keval.report.contexts import call_words, change_lines
from keval.report.figures import counted
from keval.report.lines import folded, one_line
from keval.report.terminal import foreign
from keval.report.tools import sharing_text

_HINTS = {
    "readOnlyHint": ("read-only", "writes"),
    "destructiveHint": ("may destroy", "destroys nothing"),
    "idempotentHint": ("may be repeated", "counts each call"),
    "openWorldHint": ("reaches out", "closed world"),
}
"""MCP's hints on what a tool does, in words: where one is true, and where it is false."""
_WIDEST_KIND = 40


def describe_offers(contexts: Sequence[ContextOffers]) -> dict[str, Any]:
    """Describe what contexts offer as plain data, with definitions as the server wrote them."""
    return {
        "contexts": [
            {
                "context": each.label,
                "type": each.type,
                "from": each.origin,
                "interventions": list(each.interventions),
                "servers": [_server(offer, each) for offer in each.offers],
            }
            for each in contexts
        ]
    }


def _server(offer: ToolOffer, context: ContextOffers) -> dict[str, Any]:
    tools = [{**definition, "estimated_tokens": definition_tokens(definition)} for definition in offer.definitions]
    told: dict[str, Any] = {
        "server": offer.server,
        "tools": tools or [{"name": name} for name in offer.tools],
        "instructions": offer.instructions,
        "sha256": offer.digest,
        "estimated_tokens": _tokens(offer) if tools else None,
    }
    if (original := ServerListing.original(offer)) is not None:
        told["original"] = {
            "tools": list(original.tools),
            "instructions": original.instructions,
            "sha256": offer.original_digest,
        }
        told["changes"] = [attrs.asdict(change) for change in _changes(offer, context)]
    if offer.sharing is not None:
        told["sharing"] = attrs.asdict(offer.sharing)
    return told


def print_offers(contexts: Sequence[ContextOffers], console: Console) -> None:
    """Print what contexts offer."""
    for position, each in enumerate(contexts):
        if position:
            console.print()
        title = Text(one_line(each.label), "bold").append(f"  {one_line(each.type)}", "dim")
        title.append(f"  from {one_line(each.origin)}" if each.origin else "", "dim")
        console.print(title if each.offers else title.append("  no MCP server", "dim"), soft_wrap=True)
        for offer in each.offers:
            for line in _lines(offer, each, console.width):
                console.print(line, soft_wrap=True)
    if any(offer.definitions for each in contexts for offer in each.offers):
        console.print()
        told = "Tokens are estimates, of name, description and parameters as JSON: models differ in how they count."
        console.print(Text(told, "dim"), soft_wrap=True)


def _lines(offer: ToolOffer, context: ContextOffers, width: int) -> Iterator[Text]:
    tokens = f", about {_tokens(offer):,} tokens" if offer.definitions else ""
    yield Text(f"  server {one_line(offer.server)}: {counted(len(offer.tools), 'tool')}{tokens}")
    if offer.sharing is not None:
        yield from _folded(sharing_text(offer.sharing), width, 4)
    if offer.instructions:
        yield Text(f"    instructions: about {instruction_tokens(offer):,} tokens")
        yield from _block(offer.instructions, width, 6)
    if not offer.definitions:
        yield from _folded(f"{', '.join(map(one_line, offer.tools))} (their definitions are not known)", width, 4)
    for definition in offer.definitions:
        yield from _tool(definition, width)
    if context.interventions:
        yield Text("    changed from what the server says:")
        for told in call_words(context.interventions):
            yield from _folded(told, width, 6, style="")
        for change in _changes(offer, context):
            yield from change_lines(change, width, indent=6)


def _changes(offer: ToolOffer, context: ContextOffers) -> list[ListingChange]:
    """Return what interventions change of what the server says."""
    before, after = ServerListing.original(offer), ServerListing.offered(offer)
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


def _tokens(offer: ToolOffer) -> int:
    return instruction_tokens(offer) + sum(map(definition_tokens, offer.definitions))


def _block(text: str, width: int, indent: int) -> Iterator[Text]:
    """Yield a text of others with its own lines."""
    for line in foreign(text.strip()).splitlines():
        yield from _folded(line, width, indent)


def _folded(text: str, width: int, indent: int, style: str = "dim") -> Iterator[Text]:
    yield from (Text(line, style) for line in folded(foreign(text), width, indent=indent, hanging=indent))
