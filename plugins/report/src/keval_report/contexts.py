"""What contexts offer, with estimates of tokens, and what those of conditions differ in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import orjson
from rich.console import Console
from rich.text import Text

from keval.cli.console import safe
from keval.cli.messages import foreign
from keval.records.formats import counted, percent
from keval.records.manifest import AnswersEntry, ServerEntry
from keval.records.servers import ContextToolListings, ServerListing, Sharing, ToolListing
from keval.store.run import Run
from keval_analysis.findings.summary import Summary
from keval_analysis.listings import ListingChange, listing_changes, renamed_by
from keval_analysis.stats.contrasts import contrasts_of
from keval_analysis.texts import listing_of
from keval_report.terminal.console import print_sections
from keval_report.words import folded, one_line


def change_words(change: ListingChange) -> str:
    """Return in a few words what differs, without the texts themselves."""
    tool = one_line(change.tool or "")
    match change.kind:
        case "added":
            return f"{tool} is added"
        case "left out":
            return f"{tool} is removed"
        case "renamed":
            return f"{one_line(change.before or '')} is named {tool}"
        case "description":
            return f"{tool} has a different description ({_sizes(change)})"
        case "instructions":
            told = "hidden" if change.after is None else "replaced"
            return f"the server's instructions are {told} ({_sizes(change)})"
        case "definition":
            return f"{tool} has a different definition"


def intervention_words(interventions: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what interventions, as a config writes them, change of a listing."""
    for change in interventions:
        if files := change.get("files"):
            yield one_line("; ".join(files))
        if tools := change.get("tools"):
            yield f"only the tools {', '.join(map(one_line, tools))}"
        if without := change.get("without"):
            yield f"without {', '.join(map(one_line, without))}"
        if words := change.get("describe"):
            yield f"other words for {', '.join(map(one_line, words))}"
        if names := change.get("rename"):
            yield ", ".join(f"{one_line(old)} is named {one_line(new)}" for old, new in names.items())
        if (told := change.get("server_instructions", True)) is not True:
            yield f"the server's instructions are {'others' if told else 'hidden'}"


def call_words(interventions: Iterable[Mapping[str, Any]], answers: AnswersEntry | None = None) -> Iterator[str]:
    """Yield what interventions, as a config writes them, do to texts, and to results of calls and their success.

    `answers` says which recorded run the results are from, where that is known.
    """
    for change in interventions:
        results, faults, text = change.get("results"), change.get("faults"), change.get("text")
        if text is not None:
            fixed = isinstance(text, Mapping)
            yield f"the text is {one_line(str(text.get('fixed')))!r}" if fixed else f"the text is {one_line(str(text))}"
        if isinstance(results, Mapping) and "recorded" in results:
            run = one_line(answers.run if answers else str(results["recorded"]))
            since = f" {answers.recorded[:10]}" if answers and answers.recorded else ""
            yield f"answers recorded{since} in run {run}"
            if becomes := {"live": "are made", "error": "are errors"}.get(str(results.get("misses"))):
                yield f"calls that this run does not have {becomes}"
        elif isinstance(results, Mapping):
            yield f"every result is {one_line(str(results.get('fixed')))!r}"
        elif results is not None:
            yield f"results are {one_line(str(results))}"
        if isinstance(faults, Mapping):
            if share := faults.get("error"):
                yield f"{percent(share)} of calls fail"
            if seconds := faults.get("delay_seconds"):
                yield f"calls wait {seconds:g} s"


def change_lines(change: ListingChange, width: int, *, indent: int) -> Iterator[Text]:
    """Yield what differs, and below it the lines that do, where texts differ."""
    yield from (Text(line) for line in folded(change_words(change), width, indent=indent))
    yield from diff_lines(change.diff, width, indent=indent + 2)


def diff_lines(
    diff: Iterable[str], width: int, *, indent: int, most: int | None = None, more: str = ""
) -> Iterator[Text]:
    """Yield the lines in which two texts differ, each after its mark.

    With `most`, so many are yielded, and how many more there are, beside which `more` is told.
    """
    lines = [
        Text(row, {"-": "red", "+": "green"}.get(line[0], "dim"))
        for line in diff
        for row in folded(
            f"{line[0]} {one_line(line[1:])}", width, indent=indent + 2 * (line[0] == " "), hanging=indent + 2
        )
    ]
    if most is not None and len(lines) > most + 1:  # a line that says that there is one more is no shorter
        lines[most:] = [Text(f"{' ' * indent}+{len(lines) - most} more lines{more}", "dim")]
    yield from lines


def _sizes(change: ListingChange) -> str:
    sizes = [0 if text is None else estimated_tokens(text) for text in (change.before, change.after)]
    return f"about {sizes[0]:,} → {sizes[1]:,} tokens"


_ITSELF = "what the server says"
SHORT = 8
"""Lines of a diff that are shown where it is one thing among others."""


@attrs.frozen
class ServerDifference:
    """How a server of a condition differs from another condition's, or, where `against` is none, from itself.

    `kind` is `added` or `left out` for a server that only one of them has. `calls` says in words what becomes of calls.
    `changes` are those of the listing; `None` if a run does not tell.
    """

    condition: str
    server: str
    against: str | None
    kind: str = "changed"
    tools: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    changes: tuple[ListingChange, ...] | None = ()

    @property
    def differs(self) -> bool:
        """Whether anything differs, or may."""
        return bool(self.calls or self.changes or self.changes is None)


def server_differences(run: Run) -> list[ServerDifference]:
    """Return how the servers of each condition differ from those of the baseline.

    A server that the baseline lacks is held against the condition that this one was changed from, if there is one, and
    against what the server itself says otherwise. Raises RunError.
    """
    return [difference for label in run.manifest.conditions for difference in _of_condition(run, label)]


def servers_between(run: Run, label: str, against: Run, base: str) -> list[ServerDifference]:
    """Return how the servers of a condition differ from those of another condition, perhaps of another run.

    Raises RunError.
    """
    here, there = run.manifest.conditions[label].servers, against.manifest.conditions[base].servers
    found = [ServerDifference(label, name, base, "added", here[name].tools) for name in here if name not in there]
    for name, server in here.items():
        if name in there:
            told = _between(run, ServerDifference(label, name, base), there[name], server, against)
            found += [told] if told.differs else []
    gone = (name for name in there if name not in here)
    return [*found, *(ServerDifference(label, name, base, "left out", there[name].tools) for name in gone)]


def difference_texts(run: Run) -> Iterator[tuple[str, str]]:
    """Yield each condition with a changed server, and in words how it differs. Raises RunError."""
    for each in server_differences(run):
        changes = (
            ": ".join(filter(None, (change_words(one), " ".join(one.diff[:SHORT])))) for one in each.changes or ()
        )
        if words := [*each.calls, *changes]:
            yield f"{one_line(each.condition)}, {one_line(each.server)} against {_against(each)}", "; ".join(words)


def print_differences(run: Run, console: Console) -> None:
    """Print the differences, with the texts that differ. Raises RunError."""
    found = server_differences(run)
    if not found:
        console.print(Text("The conditions have the same servers, and nothing about them is changed.", "dim"))
    for position, each in enumerate(found):
        if position:
            console.print()
        server = one_line(each.server)
        told = f"{server} is {each.kind}" if each.kind != "changed" else f"{server} against {_against(each)}"
        console.print(Text(f"{one_line(each.condition)}: {told}", "bold"), soft_wrap=True)
        print_sections([_difference_lines(each, console.width)], console)


def _difference_lines(each: ServerDifference, width: int) -> Iterator[Text]:
    if each.tools:
        yield from (Text(line) for line in folded(f"tools: {', '.join(map(one_line, each.tools))}", width, indent=2))
    yield from (Text(line) for words in each.calls for line in folded(words, width, indent=2))
    if each.changes is None:
        yield Text("  what it listed is not in the run", "dim")
    for change in each.changes or ():
        yield from change_lines(change, width, indent=2)


def _against(each: ServerDifference) -> str:
    return _ITSELF if each.against is None else one_line(each.against)


def _of_condition(run: Run, label: str) -> Iterator[ServerDifference]:
    manifest = run.manifest
    base, entry = manifest.conditions[manifest.baseline], manifest.conditions[label]
    origin = {each.condition: each.against for each in contrasts_of(manifest)}.get(label)
    for name, server in entry.servers.items():
        if label != manifest.baseline and name in base.servers:
            against = ServerDifference(label, name, manifest.baseline)
            found: ServerDifference | None = _between(run, against, base.servers[name], server)
        elif origin is not None and name in manifest.conditions[origin].servers:
            against = ServerDifference(label, name, origin)
            found = _between(run, against, manifest.conditions[origin].servers[name], server)
        else:
            found = _from_itself(run, label, name, server)
            if label != manifest.baseline:
                yield ServerDifference(label, name, manifest.baseline, "added", server.tools)
        if found is not None and found.differs:
            yield found
    for name in base.servers:
        if name not in entry.servers:
            yield ServerDifference(label, name, manifest.baseline, "left out", base.servers[name].tools)


def _between(
    run: Run, sides: ServerDifference, before: ServerEntry, after: ServerEntry, against: Run | None = None
) -> ServerDifference:
    """Return what differs between two entries of one server; `sides` says whose they are, `against` has `before`."""
    # A listing is in the blobs of the run that it was listed in.
    old, new = listing_of(against or run, before.listing), listing_of(run, after.listing)
    count = len(before.interventions)
    # A condition that was changed from the other has all of its interventions first, and then its own.
    follows = [*after.interventions[:count]] == [*before.interventions]
    added = after.interventions[count:] if follows else after.interventions
    calls = [*call_words(added, after.answers)]
    if not follows and (undone := [*call_words(before.interventions, before.answers)]):
        calls = [*calls, f"and not: {', '.join(undone)}"]
    changes: tuple[ListingChange, ...] | None = None
    if old is not None and new is not None:
        # What the names of both were before tells which tool is which.
        first, second = (renamed_by(each.interventions, each.aliases) for each in (before, after))
        renamed = {first.get(name, name): second.get(name, name) for name in {**first, **second}}
        changes = tuple(listing_changes(old, new, renamed))
    elif before.tools == after.tools and before.sha256 == after.sha256:
        changes = ()
    return attrs.evolve(sides, calls=tuple(calls), changes=changes)


def _from_itself(run: Run, label: str, name: str, server: ServerEntry) -> ServerDifference | None:
    if not server.interventions:
        return None
    # Without a digest, so that nobody takes what is not in the run to be the same.
    said = attrs.evolve(server, listing=server.original_listing, sha256="", interventions=(), aliases={}, answers=None)
    return _between(run, ServerDifference(label, name, None), said, server)


_PIECE = re.compile(r"(?P<word>[A-Za-z]+)|(?P<letters>[^\W\d_]+)|(?P<digits>\d+)|(?P<marks>[^\w\s]+|_+)|\n+|[ \t]{2,}")
"""What byte-pair encoders split a text into first; a single space belongs to the word after it."""
_LONGEST_WORD = 14
"""ASCII letters that are one token at most times."""


def estimated_tokens(text: str) -> int:
    """Return about how many tokens a text is.

    Measured against the encodings cl100k and o200k of OpenAI, it is within an eighth for definitions of tools as JSON
    and for English prose; other languages may take a third more or less, and every vendor's tokenizer is another one.
    """
    count = 0.0
    for piece in _PIECE.finditer(text):
        length = len(piece[0])
        match piece.lastgroup:
            case "word":
                # Rounded up, as `//` rounds down.
                count += -(-length // _LONGEST_WORD)
            case "letters":
                count += max(1.0, length / 2)
            case "digits":
                count += -(-length // 3)
            case "marks":
                count += max(1.0, length / 3)
            case _:
                count += 1
    return round(count)


def definition_tokens(definition: Mapping[str, Any]) -> int:
    """Return about how many tokens a tool takes in a model request: its name, description and parameters as JSON.

    That is what model APIs get. They write it down in forms of their own, which are not published.
    """
    seen = {"name": "name", "description": "description", "parameters": "inputSchema"}
    return estimated_tokens(orjson.dumps({key: definition.get(name) for key, name in seen.items()}).decode())


def instruction_tokens(listing: ToolListing) -> int:
    """Return about how many tokens the instructions of a server take."""
    return estimated_tokens(listing.instructions or "")


def sharing_text(sharing: Sharing | None) -> str:
    """Return whether trials share a server, and why; `None` is what shows when it starts."""
    if sharing is None:
        return "shared if every tool is read-only by its hint and gives equal results, which shows when it starts"
    told = f"{'shared by trials' if sharing.shared else 'one for each trial'} ({sharing.why})"
    return told if sharing.verified else f"{told}; whether it isolates trials is not verified"


def entry_text(entry: ServerEntry) -> str | None:
    """Return the same of a server of a run, and in which revision it was spoken to; `None` if the run does not say."""
    if entry.shared is None:
        return None
    told = sharing_text(Sharing(entry.shared, entry.sharing or "unknown", entry.isolation_verified is not False))
    return told if entry.protocol is None else f"{told}; MCP {entry.protocol}"


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


def revision_lines(summary: Summary) -> Iterator[Text]:
    """Yield in which revision of MCP each server was spoken to, and which agents spoke another with the tap."""
    for each in summary.revisions:
        others = [f"{agent} {revision}" for agent, revision in each.agents.items() if revision != each.protocol]
        more = f"; with the tap, agents spoke another: {', '.join(others)}" if others else ""
        yield safe(f"server {each.server} of {each.condition}: MCP {each.protocol}{more}", "dim")


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
                "servers": [_described_server(listing, each) for listing in each.tool_listings],
            }
            for each in contexts
        ]
    }


def _described_server(listing: ToolListing, context: ContextToolListings) -> dict[str, Any]:
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
            print_sections([_listing_lines(listing, each, console.width)], console)
    if any(listing.definitions for each in contexts for listing in each.tool_listings):
        console.print()
        told = "Tokens are estimates, of name, description and parameters as JSON: models differ in how they count."
        console.print(Text(told, "dim"), soft_wrap=True)


def _listing_lines(listing: ToolListing, context: ContextToolListings, width: int) -> Iterator[Text]:
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
