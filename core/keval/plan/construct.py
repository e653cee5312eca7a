"""Constructing the plugins of a config: found by name, structured from their options, checked against their seam."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import attrs

from keval.config.evaluation import Evaluation, PluginSpec
from keval.config.load import read_rubric
from keval.config.source import KeyPath
from keval.config.structure import structure
from keval.config.variables import interpolate
from keval.errors import ConfigError, PluginError, Problem, RunError
from keval.plan.plan import ResolvedPlugin, Scorers
from keval.records.scores import Rubric, Scale
from keval.seams import registry

DEFAULT_RUBRICS = ("factual_adherence", "completeness", "helpfulness_and_clarity")
"""The rubrics of a config that names none."""


@attrs.define
class Constructor:
    """Constructs the plugins of an evaluation and collects what is wrong with them."""

    evaluation: Evaluation
    problems: list[Problem]

    def plugins(self, group: str, specs: Iterable[PluginSpec], *methods: str) -> list[ResolvedPlugin]:
        """Load and construct plugins; each must have one of the `methods`, if any are named."""
        resolved: dict[str, ResolvedPlugin] = {}
        # A derived context comes after its origin, whose plugin it shares.
        for spec in sorted(specs, key=lambda spec: spec.origin is not None):
            try:
                if (base := resolved.get(spec.origin or "")) is not None:
                    resolved[spec.label] = self._derived(base, spec)
                    continue
                chosen = registry.select(group, spec.type)
                if len(chosen) > 1 and spec.options:
                    raise PluginError(
                        f"{spec.type!r} names {len(chosen)} plugins; give options to one by its full name"
                    )
                for component in chosen:
                    label = spec.label if len(chosen) == 1 else registry.label(group, component.name)
                    plugin = self._constructed(component, spec)
                    if plugin is not None:
                        _check_interface(component, plugin, methods)
                    # A plugin that is listed with options replaces the same one of its vendor's group.
                    if label not in resolved or spec.options:
                        place = self.evaluation.source.place(spec.path, key=True) if spec.path else ""
                        about = self._characteristics(plugin, spec) if group == "keval.agents" else {}
                        resolved[label] = ResolvedPlugin(
                            label, component, plugin, place, about, spec.interventions, spec.changed_at
                        )
            except PluginError as error:
                self.problem(spec.path, str(error), at_key=True)
        return list(resolved.values())

    def scorers(self, *, needed: bool = True) -> Scorers:
        """Construct metrics and judges, and read the rubrics; if they are `needed`, none is a problem."""
        metrics = self.plugins("keval.metrics", self.evaluation.metrics, "score")
        judges = self.plugins("keval.judges", self.evaluation.judges, "grade")
        rubrics, shipped = self._rubrics() if judges or self.evaluation.rubrics else ([], [])
        if needed and not self.evaluation.metrics and not self.evaluation.judges and not self.problems:
            self.problem((), "nothing scores the answers; add `metrics:` or `judges:`")
        self.check_models(judges, self.evaluation.judges)
        return Scorers(tuple(metrics), tuple(judges), tuple(rubrics), tuple(shipped))

    def check_models(self, resolved: Iterable[ResolvedPlugin], specs: Iterable[PluginSpec]) -> None:
        """Check that the providers of all models are installed."""
        by_label = {spec.label: spec for spec in specs}
        for item in resolved:
            # Plugins that were named together, by their vendor, have no place of their own.
            path = by_label[item.label].path if item.label in by_label else ()
            for field, model in item.unserved.items():
                try:
                    registry.find("keval.models", model.provider)
                except PluginError as error:
                    self.problem((*path, field), f"{model}: {error}")

    def problem(self, path: KeyPath, message: str, *, at_key: bool = False) -> None:
        """Add a problem at a path of the config."""
        self.problems.append(Problem(self.evaluation.source.place(path, key=at_key), message))

    def _derived(self, base: ResolvedPlugin, spec: PluginSpec) -> ResolvedPlugin:
        return attrs.evolve(
            base,
            label=spec.label,
            place=self.evaluation.source.place(spec.path, key=True),
            interventions=spec.interventions,
            changed_at=spec.changed_at,
            origin=base.label,
        )

    def _constructed(self, component: registry.Component, spec: PluginSpec) -> Any:
        target = registry.load(component)
        if isinstance(target, type) and attrs.has(target):
            source = self.evaluation.source
            plugin, errors = structure(target, dict(spec.options), spec.path, source.base)
            # When a run is scored again, there is no line by which to tell two plugins of one type apart.
            same = spec.label == component.name
            whose = repr(component.name) if same else f"{spec.label!r} of type {component.name!r}"
            for error in errors:
                self.problem(error.path, f"{error.message} ({component.kind} {whose})", at_key=error.at_key)
            return plugin
        if spec.options:
            raise PluginError(f"the {component.kind} {component.name!r} takes no options")
        try:
            return target() if isinstance(target, type) else target
        except Exception as error:  # a constructor of a plugin may raise anything
            raise PluginError(
                f"{component.target} of {component.distribution} cannot be constructed: {error}"
            ) from error

    def _characteristics(self, plugin: Any, spec: PluginSpec) -> Mapping[str, Any]:
        """Return the characteristics of an agent: those of its plugin, overridden by those of the config."""
        path = (*spec.path, "characteristics")
        shipped = getattr(type(plugin), "characteristics", {}) if plugin is not None else {}
        given: Mapping[str, Any] = {}
        if isinstance(spec.characteristics, str):
            shipped = self._shipped(spec.characteristics, path)
        elif spec.characteristics is not None:
            given = spec.characteristics
        filled, unset = interpolate(dict(given), path)
        for at, message in unset:
            self.problem(at, message)
        return {**(shipped if isinstance(shipped, Mapping) else {}), **filled}

    def _shipped(self, agent: str, path: KeyPath) -> Mapping[str, Any]:
        try:
            target = registry.load(registry.find("keval.agents", agent))
        except PluginError as error:
            remedy = "install the adapter that ships the table, or give the characteristics key by key"
            self.problem(path, f"{error} ({remedy})")
            return {}
        shipped = getattr(target, "characteristics", None)
        if isinstance(shipped, Mapping) and shipped:
            return shipped
        self.problem(path, f"the agent {agent!r} says nothing of its framework's characteristics; give them key by key")
        return {}

    def _rubrics(self) -> tuple[list[Rubric], list[registry.Component]]:
        """Read the rubrics, and find the packages that ship them."""
        found: dict[str, Rubric] = {}
        shipped: dict[str, registry.Component] = {}
        specs = self.evaluation.rubrics or [PluginSpec(name, name) for name in DEFAULT_RUBRICS]
        # A rubric that is written out, or in a file, replaces the same one of its vendor's group.
        for spec in sorted(specs, key=_is_own):
            if _is_own(spec):
                for rubric in self._own_rubric(spec):
                    if rubric.name in found and rubric.name not in shipped:
                        self.problem(spec.path, f"another rubric is named {rubric.name!r}; keep one")
                    found[rubric.name] = rubric
                    shipped.pop(rubric.name, None)
                continue
            try:
                for component in registry.select("keval.rubrics", spec.type):
                    rubric = registry.load(component)
                    if not isinstance(rubric, Rubric):
                        raise PluginError(f"{component.target} of {component.distribution} is no Rubric")
                    found[component.name] = attrs.evolve(rubric, name=component.name)
                    shipped[component.name] = component
            except PluginError as error:
                self.problem(spec.path, str(error))
        for name in found.keys() & {spec.label for spec in self.evaluation.metrics}:
            self.problem(("rubrics",), f"a metric is named {name!r} too; name the rubric otherwise", at_key=True)
        return [*found.values()], [*shipped.values()]

    def _own_rubric(self, spec: PluginSpec) -> list[Rubric]:
        """Read a rubric that is written in the config, or in a file beside it."""
        base: Path = self.evaluation.source.base
        if not spec.options:
            try:
                return [read_rubric(base / spec.type)]
            except ConfigError as unreadable:
                self.problems.extend(unreadable.problems)
                return []
        rubric, errors = structure(Rubric, {"name": spec.label, **spec.options}, spec.path, base)
        for error in errors:
            self.problem(error.path, error.message, at_key=error.at_key)
        return [rubric] if rubric else []


def _check_interface(component: registry.Component, plugin: Any, methods: tuple[str, ...]) -> None:
    """Raise PluginError unless a plugin has one of the methods of its seam, and a proper scale."""
    if methods and not any(callable(getattr(plugin, method, None)) for method in methods):
        lacking = " or ".join(f"{method}()" for method in methods)
        raise PluginError(
            f"{component.target} of {component.distribution} is no {component.kind}: it has no"
            f" method {lacking}; see the interfaces that keval documents"
        )
    if not isinstance(getattr(plugin, "scale", Scale()), Scale):
        raise PluginError(f"the scale of {component.target} of {component.distribution} is no keval.Scale")


def _is_own(spec: PluginSpec) -> bool:
    return bool(spec.options) or spec.type.endswith((".yaml", ".yml"))


UNTAPPED = (
    "agents connect to this server themselves, so nothing about it can be changed; let keval connect to it"
    " (leave out `tap: false`), or leave this out"
)
"""What is wrong with an intervention where no tap is."""


@runtime_checkable
class _Tappable(Protocol):
    """A context whose agents reach its servers through the tap, unless `tap` is false."""

    tap: bool


def contexts_of(constructor: Constructor, *, played: bool = False) -> Mapping[str, ResolvedPlugin]:
    """Construct the contexts, by label; what is wrong is added to the constructor's problems.

    If they are `played`, in a replay, the recordings that they name are not needed.
    """
    resolved = constructor.plugins("keval.contexts", constructor.evaluation.contexts, "start")
    for item in resolved:
        if item.changed_at and isinstance(item.plugin, _Tappable) and not item.plugin.tap:
            constructor.problem(item.changed_at[-1], UNTAPPED, at_key=True)
        if not played:
            _check_recorded(constructor, item)
    found = {item.label: item for item in resolved}
    for label, condition in constructor.evaluation.conditions.items():
        first: dict[str, str] = {}
        for index, name in enumerate(condition.contexts):
            if name not in found:
                continue
            origin = found[name].origin or name
            if first.get(origin, name) != name:
                told = (
                    f"{name!r} and {first[origin]!r} are the same server, changed differently; put them into separate"
                    " conditions"
                )
                constructor.problem(("conditions", label, "contexts", index), told)
            first.setdefault(origin, name)
    return found


def _check_recorded(constructor: Constructor, context: ResolvedPlugin) -> None:
    """Add a problem where a recorded run that a context names has no recording that can be read, or a second one is."""
    found = [
        (place, change.recorded)
        for place, change in zip(context.changed_at, context.interventions, strict=True)
        if change.recorded is not None
    ]
    for place, results in found[:1]:
        try:
            from keval.recording.loose import open_loose  # only a run that asks for recorded results reads any

            open_loose(results)
        except RunError as error:
            constructor.problem((*place, "results", "recorded"), str(error))
    for place, _ in found[1:]:
        told = "the results are recorded ones already; derive from the context before that"
        constructor.problem((*place, "results"), told, at_key=True)
