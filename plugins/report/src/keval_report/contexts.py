"""What the contexts of conditions differ in: servers, tools, their words, instructions, results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs
import orjson
from rich.console import Console
from rich.text import Text

from keval.cli.console import print_sections
from keval.errors import RunError
from keval.records.formats import percent
from keval.records.manifest import AnswersEntry, ServerEntry
from keval.records.servers import ServerListing, ToolListing
from keval.store.run import Run
from keval_analysis.listings import ListingChange, listing_changes, renamed_by
from keval_analysis.stats.contrasts import contrasts_of
from keval_report.words import folded, one_line


def change_words(change: ListingChange) -> str:
    """Return in a few words what differs, without the texts themselves."""
    tool, parameter = one_line(change.tool or ""), one_line(change.parameter or "")
    match change.kind:
        case "added":
            return f"{tool} is added"
        case "left out":
            return f"{tool} is removed"
        case "renamed":
            return f"{one_line(change.before or '')} is named {tool}"
        case "description":
            return f"{tool} has a different description ({_sizes(change)})"
        case "parameter":
            return f"{parameter} of {tool} has a different description ({_sizes(change)})"
        case "instructions":
            return (
                f"the server's instructions are {'hidden' if change.after is None else 'replaced'} ({_sizes(change)})"
            )
        case "definition":
            return f"{parameter} of {tool} {'is removed' if change.after is None else 'differs'}"


def intervention_words(interventions: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what interventions, as a config writes them, change of a listing."""
    for change in interventions:
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
    """Yield what differs, and below it the old text and the new one, where texts differ."""
    yield from (Text(line) for line in folded(change_words(change), width, indent=indent))
    if change.kind in ("added", "left out", "renamed"):
        return
    for mark, text, style in (("-", change.before, "red"), ("+", change.after, "green")):
        if text is not None:
            for line in folded(f"{mark} {one_line(text)}", width, indent=indent + 2, hanging=indent + 4):
                yield Text(line, style)


def _sizes(change: ListingChange) -> str:
    sizes = [0 if text is None else estimated_tokens(text) for text in (change.before, change.after)]
    return f"about {sizes[0]:,} → {sizes[1]:,} tokens"


_ITSELF = "what the server says"


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
        if words := [*each.calls, *map(change_words, each.changes or ())]:
            yield f"{one_line(each.condition)}, {one_line(each.server)} against {_against(each)}", "; ".join(words)


def describe_differences(run: Run) -> list[dict[str, Any]]:
    """Describe the differences as plain data. Raises RunError."""
    return [attrs.asdict(each) for each in server_differences(run)]


def print_differences(run: Run, console: Console) -> None:
    """Print the differences, with the texts that differ. Raises RunError."""
    found = server_differences(run)
    if not found:
        console.print(Text("The conditions have the same servers, and nothing about them is changed.", "dim"))
    print_server_differences(found, console)


def print_server_differences(found: Iterable[ServerDifference], console: Console) -> None:
    """Print differences of servers, with the texts that differ."""
    for position, each in enumerate(found):
        if position:
            console.print()
        server = one_line(each.server)
        told = f"{server} is {each.kind}" if each.kind != "changed" else f"{server} against {_against(each)}"
        console.print(Text(f"{one_line(each.condition)}: {told}", "bold"), soft_wrap=True)
        print_sections([_lines(each, console.width)], console)


def _lines(each: ServerDifference, width: int) -> Iterator[Text]:
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
    old, new = _listing(against or run, before.listing), _listing(run, after.listing)
    count = len(before.interventions)
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
    old, new = _listing(run, server.original_listing), _listing(run, server.listing)
    changes: tuple[ListingChange, ...] | None = None
    if old is not None and new is not None:
        changes = tuple(listing_changes(old, new, renamed_by(server.interventions, server.aliases)))
    calls = tuple(call_words(server.interventions, server.answers))
    return ServerDifference(label, name, None, calls=calls, changes=changes)


def _listing(run: Run, sha256: str | None) -> ServerListing | None:
    """Return a listing that the run keeps; `None` if it keeps none. Raises RunError."""
    if sha256 is None:
        return None
    try:
        return ServerListing.parse(run.blob(sha256))
    except ValueError as error:
        raise RunError(f"{run.path / 'blobs' / sha256} is no listing of a server: {error}") from error


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
