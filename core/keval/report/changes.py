"""What an experiment changes, in words and lines: listings of servers, results, faults."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.text import Text

from keval.listing_changes import ListingChange
from keval.manifest import AnswersEntry
from keval.report.lines import folded, one_line
from keval.tokens import estimated_tokens

__all__ = ["call_words", "change_lines", "change_words", "intervention_words", "word_diff"]


def change_words(change: ListingChange) -> str:
    """Return in a few words what differs, without the texts themselves."""
    tool, parameter = one_line(change.tool or ""), one_line(change.parameter or "")
    match change.kind:
        case "added":
            return f"{tool} is added"
        case "left out":
            return f"{tool} is left out"
        case "renamed":
            return f"{one_line(change.before or '')} is named {tool}"
        case "description":
            return f"{tool} is described otherwise ({_sizes(change)})"
        case "parameter":
            return f"{parameter} of {tool} is described otherwise ({_sizes(change)})"
        case "instructions":
            return f"the server's instructions are {'hidden' if change.after is None else 'others'} ({_sizes(change)})"
        case "definition":
            return f"{parameter} of {tool} {'is left out' if change.after is None else 'differs'}"


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
    """Yield what interventions, as a config writes them, do to calls: to their results, and to whether they succeed.

    `answers` says which recorded run the results are from, where that is known.
    """
    for change in interventions:
        results, faults = change.get("results"), change.get("faults")
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
                yield f"{share:.0%} of calls fail"
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


def word_diff(before: str | None, after: str | None) -> list[tuple[str, str]]:
    """Return the words of two texts with what happened to each piece: ` ` stayed, `+` added, `-` left out."""
    old, new = (before or "").split(), (after or "").split()
    pieces: list[tuple[str, str]] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            pieces.append((" ", " ".join(old[a:b])))
            continue
        pieces += [("-", " ".join(old[a:b]))] if b > a else []
        pieces += [("+", " ".join(new[c:d]))] if d > c else []
    return pieces


def _sizes(change: ListingChange) -> str:
    sizes = [0 if text is None else estimated_tokens(text) for text in (change.before, change.after)]
    return f"about {sizes[0]:,} → {sizes[1]:,} tokens"
