"""What differs between two listings of one server: tools, names, descriptions, parameters, hints, instructions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import attrs
import orjson

from keval.records.servers import ServerListing
from keval_analysis.texts import diff_of

ChangeKind: TypeAlias = Literal[
    "added", "left out", "renamed", "description", "parameter", "definition", "instructions"
]

_WORDS = ("name", "description", "inputSchema")
"""The keys of a definition that are compared by themselves."""


@attrs.frozen
class ListingChange:
    """One difference. `tool` is the tool's name after it, or before it where it is left out.

    `before` and `after` are what stands there; `None` where there is nothing. `parameter` is the name of the parameter
    whose description differs, or of the key of the definition that does.
    """

    kind: ChangeKind
    tool: str | None = None
    before: str | None = None
    after: str | None = None
    parameter: str | None = None

    @property
    def diff(self) -> tuple[str, ...]:
        """The lines in which the texts differ, as `diff_of` returns them; none where it is no text that changed."""
        return () if self.kind in ("added", "left out", "renamed") else diff_of(self.before or "", self.after or "")


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


def _tools(before: ServerListing, after: ServerListing, names: Mapping[str, str]) -> Iterator[ListingChange]:
    old = {str(tool.get("name")): tool for tool in before.tools}
    new = {str(tool.get("name")): tool for tool in after.tools}
    for name, tool in old.items():
        now = names.get(name, name)
        if now not in new:
            yield ListingChange("left out", name, _description(tool))
            continue
        if now != name:
            yield ListingChange("renamed", now, name, now)
        yield from _definition(now, tool, new[now])
    kept = {names.get(name, name) for name in old}
    yield from (
        ListingChange("added", name, None, _description(tool)) for name, tool in new.items() if name not in kept
    )


def _definition(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[ListingChange]:
    if (was := _description(before)) != (now := _description(after)):
        yield ListingChange("description", name, was, now)
    old, new = _parameters(before), _parameters(after)
    for parameter in [*old, *(key for key in new if key not in old)]:
        was, now = _description(old.get(parameter, {})), _description(new.get(parameter, {}))
        if was != now:
            yield ListingChange("parameter", name, was, now, parameter)
    if (was := _schema(before)) != (now := _schema(after)):
        yield ListingChange("definition", name, was, now, "inputSchema")
    for key in dict.fromkeys([*before, *after]):
        if key not in _WORDS and before.get(key) != after.get(key):
            yield ListingChange("definition", name, _written(before.get(key)), _written(after.get(key)), key)


def _renamed(before: ServerListing, after: ServerListing) -> dict[str, str]:
    """Return the tools that are the same in both but for their names, by their old names."""
    old, new = (
        {str(tool.get("name")): _written({**tool, "name": None}) for tool in each.tools} for each in (before, after)
    )
    added = {rest: name for name, rest in new.items() if name not in old}
    return {name: added[rest] for name, rest in old.items() if name not in new and rest in added}


def _description(part: Any) -> str | None:
    told = part.get("description") if isinstance(part, Mapping) else None
    return None if told is None else str(told)


def _parameters(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = tool.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return properties if isinstance(properties, Mapping) else {}


def _schema(tool: Mapping[str, Any]) -> str | None:
    """Return the input schema as JSON, without the descriptions of its parameters."""
    schema = tool.get("inputSchema")
    if not isinstance(schema, Mapping):
        return _written(schema)
    parameters = {
        name: {key: value for key, value in part.items() if key != "description"} if isinstance(part, Mapping) else part
        for name, part in _parameters(tool).items()
    }
    return _written({**schema, **({"properties": parameters} if parameters else {})})


def _written(value: Any) -> str | None:
    return None if value is None else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
