"""What agents are offered of a server's tools after interventions, and which tool of the server each one is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

import attrs

from keval.errors import FieldError, InterventionError, suggestion
from keval.records.interventions import Intervention

Definition: TypeAlias = Mapping[str, Any]
"""A tool as `tools/list` writes it."""


@attrs.frozen
class Offering:
    """Tools and instructions as one side of the interventions has them.

    `tools` are the definitions by name, and `origins` the server's own names. `unmatched` are the names in
    interventions that no tool has, as an `InterventionError` tells of them.
    """

    tools: Mapping[str, Definition]
    instructions: str | None = None
    origins: Mapping[str, str] = attrs.field(factory=dict)
    unmatched: tuple[FieldError, ...] = ()

    @classmethod
    def of(cls, tools: Iterable[Definition], instructions: str | None) -> Offering:
        """Return what the server itself offers."""
        named = {tool["name"]: tool for tool in tools}
        return cls(named, instructions, {name: name for name in named})

    def changed(self, intervention: Intervention, number: int) -> Offering:
        """Return the offering after one intervention, which has this number among those of its server.

        Raises:
            InterventionError: two tools would have one name.
        """
        step = _Step(self, intervention, number)
        kept = step.kept()
        described = {name: step.described(name) for name in kept}
        names = step.names(kept)
        told = intervention.server_instructions
        return Offering(
            tools={names[name]: tool for name, tool in described.items()},
            instructions=self.instructions if told is True else told or None,
            origins={names[name]: self.origins[name] for name in kept},
            unmatched=(*self.unmatched, *step.unmatched),
        )


@attrs.define
class _Step:
    """One intervention on an offering."""

    before: Offering
    change: Intervention
    number: int
    unmatched: list[FieldError] = attrs.field(factory=list)

    def kept(self) -> list[str]:
        """Return the names that are chosen and not left out."""
        chosen = [*self.before.tools]
        if self.change.tools is not None:
            wanted = self._matching("tools", self.change.tools)
            chosen = [name for name in chosen if name in wanted]
        out = self._matching("without", self.change.without)
        return [name for name in chosen if name not in out]

    def names(self, kept: Sequence[str]) -> dict[str, str]:
        """Return the new name of each tool that is kept."""
        names = {name: self.change.rename.get(name, name) for name in kept}
        for key in ("rename", "describe"):
            for name in getattr(self.change, key):
                if name not in kept:
                    self._miss((self.number, key, name), name, kept, at_key=True)
        errors = []
        for name, new in names.items():
            same = next((other for other in kept if other != name and names[other] == new), None)
            if same is not None and name in self.change.rename:
                told = f"another tool, {same!r}, has the name {new!r}; rename {name!r} otherwise"
                errors.append(FieldError((self.number, "rename", name), told))
        if errors:
            raise InterventionError(errors)
        return names

    def described(self, name: str) -> Definition:
        """Return a tool's definition under its new name, with its new words, and as its new results are declared."""
        tool: dict[str, Any] = {**self.before.tools[name], "name": self.change.rename.get(name, name)}
        words = self.change.describe.get(name)
        if words is not None:
            if words.description is not None:
                tool["description"] = words.description
            tool["inputSchema"] = self._with_words(name, tool["inputSchema"], words.parameters)
        if self.change.results not in (None, "scrambled", "shuffled", self.change.recorded):
            # A result without structured content would break the schema.
            tool.pop("outputSchema", None)
        return tool

    def _with_words(self, tool: str, schema: Mapping[str, Any], words: Mapping[str, str]) -> Mapping[str, Any]:
        known = schema.get("properties")
        properties = dict(known) if isinstance(known, dict) else {}
        for name, text in words.items():
            if name in properties:
                described = properties[name] if isinstance(properties[name], dict) else {}
                properties[name] = {**described, "description": text}
            else:
                hint = suggestion(name, properties) or f"; it has {', '.join(properties) or 'none'}"
                path = (self.number, "describe", tool, "parameters", name)
                told = f"the tool {tool!r} has no parameter {name!r}{hint}"
                self.unmatched.append(FieldError(path, told, at_key=True))
        return {**schema, "properties": properties} if words else schema

    def _matching(self, key: str, patterns: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for index, pattern in enumerate(patterns):
            matching = [name for name in self.before.tools if fnmatchcase(name, pattern)]
            if not matching:
                self._miss((self.number, key, index), pattern, self.before.tools)
            found.update(matching)
        return found

    def _miss(self, path: tuple[str | int, ...], name: str, known: Iterable[str], *, at_key: bool = False) -> None:
        known = list(known)
        if name in self.before.tools:
            told = f"the tool {name!r} is left out here, so nothing else can be changed about it"
        else:
            hint = suggestion(name, known) or f"; tools: {', '.join(known) or 'none'}"
            told = f"the server has no tool {name!r}{hint}"
        self.unmatched.append(FieldError(path, told, at_key=at_key))
