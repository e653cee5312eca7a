"""Reads what each entry of `contexts:` changes, and from which other context it derives."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import attrs

from keval.config.evaluation import PluginSpec
from keval.config.source import KeyPath, Source
from keval.config.structure import options_class, structure
from keval.errors import FieldError, suggestion
from keval.records.interventions import Intervention

CHANGES = tuple(field.name for field in attrs.fields(Intervention))
"""The keys by which an entry changes its context."""


def is_derived(entry: Any) -> bool:
    """Return whether an entry of `contexts:` derives from another one."""
    return isinstance(entry, dict) and "from" in entry


def derive(source: Source, specs: Iterable[PluginSpec]) -> tuple[tuple[PluginSpec, ...], list[FieldError]]:
    """Return every context with its interventions, in the order of the config, and what is wrong with these.

    `specs` are the entries that name a server, with all their options. Entries that derive from others are read here. A
    plugin whose own options have a name of `CHANGES` keeps it.
    """
    reader = _Reader(source, {spec.label: spec for spec in specs})
    entries = source.data.get("contexts")
    labels = [*entries] if isinstance(entries, dict) else []
    found = [spec for label in labels if (spec := reader.context(label)) is not None]
    return tuple(found), reader.errors


def with_bases(specs: Iterable[PluginSpec], labels: Collection[str]) -> set[str]:
    """Return these labels, and those of all contexts that these derive from."""
    bases = {spec.label: spec.base for spec in specs}
    wanted: set[str] = set()
    for label in labels:
        following: str | None = label
        while following is not None and following not in wanted:
            wanted.add(following)
            following = bases.get(following)
    return wanted


class _Reader:
    """Reads the entries of `contexts:` in any order, each once, and collects what is wrong."""

    def __init__(self, source: Source, servers: Mapping[str, PluginSpec]) -> None:
        self.source = source
        self.errors: list[FieldError] = []
        self._servers = servers
        self._read: dict[str, PluginSpec | None] = {}

    def context(self, label: str, chain: tuple[str, ...] = ()) -> PluginSpec | None:
        """Return a context, from which those in `chain` derive; `None` where what is wrong with it is reported."""
        if label not in self._read:
            entry = self.source.data["contexts"][label]
            of_server = not is_derived(entry)
            self._read[label] = self._changed(label) if of_server else self._derived(label, entry, (*chain, label))
        return self._read[label]

    def _changed(self, label: str) -> PluginSpec | None:
        spec = self._servers.get(label)
        if spec is None or not any(key in CHANGES for key in spec.options):
            return spec
        plugin = options_class("keval.contexts", spec.type)
        kept = [field.name for field in attrs.fields(plugin) if field.init] if plugin else ()
        changes = {key: value for key, value in spec.options.items() if key in CHANGES and key not in kept}
        if not changes:
            return spec
        options = {key: value for key, value in spec.options.items() if key not in changes}
        return self._with_change(attrs.evolve(spec, options=options, changes=changes), changes)

    def _derived(self, label: str, entry: Mapping[str, Any], chain: tuple[str, ...]) -> PluginSpec | None:
        path: KeyPath = ("contexts", label)
        base, labels = entry["from"], self.source.data["contexts"]
        changes = {key: value for key, value in entry.items() if key != "from"}
        for key in changes:
            if key not in CHANGES:
                hint = suggestion(key, CHANGES, "it can change")
                problem = f"unknown key {key!r}: a context with `from:` takes only what it changes{hint}"
                self.errors.append(FieldError((*path, key), problem, at_key=True))
        if not isinstance(base, str) or base not in labels:
            hint = suggestion(str(base), [each for each in labels if each != label], "contexts")
            self.errors.append(FieldError((*path, "from"), f"no context named {base!r}{hint}"))
            return None
        if base in chain:
            circle = " → ".join([*chain[chain.index(base) :], base])
            problem = f"the contexts derive from each other ({circle}); one of them must define a server"
            self.errors.append(FieldError((*path, "from"), problem))
            return None
        spec = self.context(base, chain)
        if spec is None:
            return None
        changed = attrs.evolve(spec, label=label, path=path, origin=spec.origin or base, changes=dict(entry))
        return self._with_change(changed, {key: value for key, value in changes.items() if key in CHANGES})

    def _with_change(self, spec: PluginSpec, changes: Mapping[str, Any]) -> PluginSpec | None:
        intervention, errors = structure(Intervention, _unfolded(changes), spec.path, self.source.base)
        self.errors += errors
        if intervention is None:
            return None
        interventions, places = (*spec.interventions, intervention), (*spec.changed_at, spec.path)
        return attrs.evolve(spec, interventions=interventions, changed_at=places)


def _unfolded(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Write a tool's new description, where that is all that is given of it, as the mapping that it stands for."""
    words = changes.get("describe")
    if not isinstance(words, dict):
        return dict(changes)
    unfolded = {tool: {"description": told} if isinstance(told, str) else told for tool, told in words.items()}
    return {**changes, "describe": unfolded}
