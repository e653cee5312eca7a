"""What differs between two listings of one server: tools, names, descriptions, parameters, hints, instructions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import attrs

from keval.records.servers import ServerListing
from keval_analysis.texts import diff_of, words_of

ChangeKind: TypeAlias = Literal["added", "left out", "renamed", "description", "definition", "instructions"]


@attrs.frozen
class ListingChange:
    """One difference. `tool` is the tool's name after it, or before it where it is left out.

    `before` and `after` are what stands there; `None` where there is nothing.
    """

    kind: ChangeKind
    tool: str | None = None
    before: str | None = None
    after: str | None = None

    @property
    def diff(self) -> tuple[str, ...]:
        """The lines in which the texts differ, as `diff_of` returns them; none where it is no text that changed."""
        if self.kind in ("added", "left out", "renamed"):
            return ()
        return diff_of(self.before or "", self.after or "", around=int(self.kind != "definition"))


def listing_changes(
    before: ServerListing, after: ServerListing, renamed: Mapping[str, str] | None = None
) -> list[ListingChange]:
    """Return what differs, tool by tool in the order of `before`; tools that are new come last.

    `renamed` maps names before to names after, where that is known. Otherwise a tool that is the same but for its name
    counts as renamed.
    """
    names = {**_renamed(before, after), **(renamed or {})}
    told = ListingChange("instructions", None, before.instructions, after.instructions)
    return [*([told] if told.before != told.after else []), *_tools(before, after, names)]


def renamed_by(interventions: Iterable[Mapping[str, Any]], aliases: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the names that agents get for the tools that are renamed, by the names that the server gives them.

    `interventions` are as a config writes them, first to last. `aliases` maps the names that these lead to on to those
    that agents get.
    """
    found: dict[str, str] = {}
    for change in interventions:
        names = dict(change.get("rename", {}))
        # A tool that is renamed again goes by the name that it was given before.
        earlier = {first: names.pop(now, now) for first, now in found.items()}
        found = {**names, **earlier}
    known = aliases or {}
    reached = {first: known.get(now, now) for first, now in found.items()}
    return {**{name: alias for name, alias in known.items() if name not in found.values()}, **reached}


_WORDS: tuple[ChangeKind, ...] = ("description", "definition")
"""What `words_of` returns of a tool."""


def _tools(before: ServerListing, after: ServerListing, names: Mapping[str, str]) -> Iterator[ListingChange]:
    old = {str(tool.get("name")): tool for tool in before.tools}
    new = {str(tool.get("name")): tool for tool in after.tools}
    for name, tool in old.items():
        now = names.get(name, name)
        if now not in new:
            yield ListingChange("left out", name, words_of(tool)[0])
            continue
        if now != name:
            yield ListingChange("renamed", now, name, now)
        for kind, told, is_now in zip(_WORDS, words_of(tool), words_of(new[now]), strict=True):
            if told != is_now:
                yield ListingChange(kind, now, told, is_now)
    kept = {names.get(name, name) for name in old}
    yield from (ListingChange("added", name, None, words_of(tool)[0]) for name, tool in new.items() if name not in kept)


def _renamed(before: ServerListing, after: ServerListing) -> dict[str, str]:
    """Return the tools that are the same in both but for their names, by their old names."""
    old, new = ({str(tool.get("name")): words_of(tool) for tool in each.tools} for each in (before, after))
    added = {rest: name for name, rest in new.items() if name not in old}
    return {name: added[rest] for name, rest in old.items() if name not in new and rest in added}
