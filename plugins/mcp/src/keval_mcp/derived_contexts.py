"""Contexts that a config changes, or derives from others: read, made, and checked against what servers list."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import attrs

from keval.config.evaluation import PluginSpec
from keval.config.source import Source
from keval.config.structure import structure
from keval.errors import HINT, FieldError, InterventionError, PluginError, PreflightError, suggestion
from keval.plan.construct import Constructor
from keval.plan.plan import ResolvedPlugin
from keval.records.interventions import Intervention
from keval.records.servers import ToolListing
from keval.redaction import Redactor
from keval.seams import registry
from keval.seams.traffic import recorded_servers
from keval.seams.workspaces import TextContext

_CHANGES = (*attrs.fields_dict(Intervention),)
_UNTAPPED = (
    "agents connect to this server themselves, so nothing about it can be changed; let keval connect to it"
    " (leave out `tap: false`), or leave this out"
)
"""What is wrong with an intervention where no tap is."""


class DerivedContexts:
    """Derives contexts from others, and changes them."""

    def read(self, source: Source, specs: Sequence[PluginSpec]) -> tuple[tuple[PluginSpec, ...], list[FieldError]]:
        """Return every context with its interventions, in their order, and what is wrong with these."""
        reader = _Reader(source, {spec.label: spec for spec in specs})
        found = [spec for each in specs if (spec := reader.context(each.label)) is not None]
        return tuple(found), reader.errors

    def make(
        self, constructor: Constructor, contexts: Sequence[ResolvedPlugin], *, played: bool
    ) -> tuple[ResolvedPlugin, ...]:
        """Return contexts, those of texts with their changes made; problems are told to the constructor."""
        specs = {spec.label: spec for spec in constructor.evaluation.contexts}
        offered = [_offering(constructor, specs, item) for item in contexts]
        found = {item.label: _changed_text(constructor, item) for item in offered}
        for item in found.values():
            if item.changed_at and not getattr(item.plugin, "tap", True):
                constructor.problem(item.changed_at[-1], _UNTAPPED, at_key=True)
            if not played:
                _check_recorded(constructor, item)
        for label, condition in constructor.evaluation.conditions.items():
            first: dict[str, str] = {}
            for index, name in enumerate(condition.contexts):
                origin = found[name].origin or name if name in found else name
                if first.get(origin, name) != name:
                    told = (
                        f"{name!r} and {first[origin]!r} are the same server, changed differently; put them into"
                        " separate conditions"
                    )
                    constructor.problem(("conditions", label, "contexts", index), told)
                first.setdefault(origin, name)
        return tuple(found.values())

    def check(self, context: ResolvedPlugin, tool_listings: Sequence[ToolListing], tapped: Collection[str]) -> None:
        """Raise InterventionError where a context's interventions change nothing, or leave nothing."""
        last = len(context.interventions) - 1
        if any(listing.server not in tapped for listing in tool_listings):
            raise InterventionError([FieldError((last,), _UNTAPPED)])
        if errors := [*_unmatched_by_all(tool_listings)]:
            raise InterventionError(errors)
        if not any(listing.tools for listing in tool_listings):
            told = f"the context {context.label!r} would have no tool left; keep at least one"
            raise InterventionError([FieldError((last,), told)])


class _Reader:
    """Reads the entries of `contexts:` in any order, each once, and collects what is wrong."""

    def __init__(self, source: Source, specs: Mapping[str, PluginSpec]) -> None:
        self.source = source
        self.errors: list[FieldError] = []
        self._specs = specs
        self._read: dict[str, PluginSpec | None] = {}

    def context(self, label: str, chain: tuple[str, ...] = ()) -> PluginSpec | None:
        """Return a context, from which those in `chain` derive; `None` where what is wrong with it is reported."""
        if label not in self._read:
            spec = self._specs.get(label)
            if spec is not None and "from" in spec.changes:
                spec = self._derived(spec, (*chain, label))
            elif spec is not None and spec.changes:
                spec = self._with_change(spec, spec.changes)
            self._read[label] = spec
        return self._read[label]

    def _derived(self, spec: PluginSpec, chain: tuple[str, ...]) -> PluginSpec | None:
        base, labels = spec.changes["from"], self.source.data["contexts"]
        offer = spec.changes.get("offer")
        # `--against` writes what a context was at another commit.
        revision = spec.changes.get("revision") if isinstance(spec.changes.get("revision"), dict) else None
        own = ("from", "offer", "revision") if revision else ("from", "offer")
        changes = {key: value for key, value in spec.changes.items() if key not in own}
        if offer not in (None, "tools", "skills"):
            problem = f"'offer' of a context with `from:` is tools or skills, got {offer!r}"
            self.errors.append(FieldError((*spec.path, "offer"), problem))
        for key in changes:
            if key not in _CHANGES:
                hint = suggestion(key, _CHANGES, "it can change")
                problem = f"unknown key {key!r}: a context with `from:` takes only what it changes{hint}"
                self.errors.append(FieldError((*spec.path, key), problem, at_key=True))
        if not isinstance(base, str) or base not in labels:
            hint = suggestion(str(base), [each for each in labels if each != spec.label], "contexts")
            self.errors.append(FieldError((*spec.path, "from"), f"no context named {base!r}{hint}"))
            return None
        if base in chain:
            circle = " → ".join([*chain[chain.index(base) :], base])
            problem = f"the contexts derive from each other ({circle}); one of them must define a server"
            self.errors.append(FieldError((*spec.path, "from"), problem))
            return None
        parent = self.context(base, chain)
        if parent is None:
            return None
        # The origin is the first context of the chain, by which two changed ones are known to be the same server.
        changed = attrs.evolve(
            parent, label=spec.label, path=spec.path, origin=parent.origin or base, changes=spec.changes
        )
        if offer == "skills":  # a context of its own, beside that of the server, whose changes are those of its tools
            changed = attrs.evolve(changed, origin=None, interventions=(), changed_at=())
        if revision:
            options = {key: value for key, value in revision.items() if key != "type"}
            kind = str(revision.get("type", parent.type))
            changed = attrs.evolve(changed, type=kind, options=options, interventions=(), changed_at=())
        known = {key: value for key, value in changes.items() if key in _CHANGES}
        return changed if (offer or revision) and not known else self._with_change(changed, known)

    def _with_change(self, spec: PluginSpec, changes: Mapping[str, Any]) -> PluginSpec | None:
        words = changes.get("describe")
        if isinstance(words, dict):  # a text alone is a tool's new description
            told = {tool: {"description": each} if isinstance(each, str) else each for tool, each in words.items()}
            changes = {**changes, "describe": told}
        intervention, errors = structure(Intervention, dict(changes), spec.path, self.source.base)
        self.errors += errors
        if intervention is None:
            return None
        interventions, places = (*spec.interventions, intervention), (*spec.changed_at, spec.path)
        return attrs.evolve(spec, interventions=interventions, changed_at=places)


def _offering(constructor: Constructor, specs: Mapping[str, PluginSpec], item: ResolvedPlugin) -> ResolvedPlugin:
    """Return a context, as the `offer` of its entry, or of one that it derives from, says."""
    chain = [specs[item.label]]
    while chain[-1].base in specs:
        chain.append(specs[chain[-1].base or ""])
    if revised := next((spec for spec in chain if "revision" in spec.changes), None):
        # By itself, as one that has an origin shares its plugin.
        made = constructor.plugins("keval.contexts", [attrs.evolve(revised, origin=None)])
        now = (made[0].component, made[0].plugin) if made else (item.component, None)
        item = attrs.evolve(item, component=now[0], plugin=now[1])
    offers = [spec.changes["offer"] for spec in chain if "offer" in spec.changes]
    if item.plugin is None or not offers:
        return item
    try:
        if offers[0] == "tools":
            return attrs.evolve(item, plugin=attrs.evolve(item.plugin, offer="tools"))
        provider = registry.load(registry.find("keval.offers", "skills"))
        return attrs.evolve(item, plugin=provider(item.plugin, chain[-1].label))
    except (PluginError, TypeError, ValueError) as error:
        constructor.problem((*item.path, "offer"), str(error))
        return attrs.evolve(item, plugin=None)


def _changed_text(constructor: Constructor, context: ResolvedPlugin) -> ResolvedPlugin:
    """Return a context of texts with its changes made; add a problem where a change is none of texts, or of servers."""
    if context.plugin is None:
        return context
    if not isinstance(context.plugin, TextContext):
        for place, change in zip(context.changed_at, context.interventions, strict=True):
            if change.text is not None:
                told = "only a context of texts, such as instructions, takes `text:`; a server takes `results:`"
                constructor.problem((*place, "text"), told, at_key=True)
        return context
    try:
        return attrs.evolve(context, plugin=context.plugin.changed(context.interventions))
    except InterventionError as error:
        for (number, *rest), message, at_key in error.errors:
            constructor.problem((*context.changed_at[int(number)], *rest), message, at_key=at_key or not rest)
        return attrs.evolve(context, plugin=None)


def _check_recorded(constructor: Constructor, context: ResolvedPlugin) -> None:
    """Add a problem where a recorded run that a context names has no recording that can be read, or a second one is."""
    found = [
        (place, change.recorded)
        for place, change in zip(context.changed_at, context.interventions, strict=True)
        if change.recorded is not None
    ]
    for place, results in found[:1]:
        try:
            recorded_servers(results, Redactor())
        except (PluginError, PreflightError) as error:
            constructor.problem((*place, "results", "recorded"), str(error))
    for place, _ in found[1:]:
        told = "the results are recorded results; derive from the context that does not replace them"
        constructor.problem((*place, "results"), told, at_key=True)


def _unmatched_by_all(tool_listings: Collection[ToolListing]) -> Iterator[FieldError]:
    """Yield an error for each name that no server of a context has, preferably one with a hint."""
    found: dict[tuple[str | int, ...], list[FieldError]] = {}
    for error in (error for listing in tool_listings for error in listing.unmatched):
        found.setdefault(error.path, []).append(error)
    for errors in found.values():
        if len(errors) == len(tool_listings):
            yield next((error for error in errors if HINT in error.message), errors[0])
