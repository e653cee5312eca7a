"""Constructing the plugins of a config: found by name, structured from their options, checked against their seam."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from keval.config.evaluation import Evaluation, PluginSpec
from keval.config.load import read_rubric
from keval.config.source import KeyPath
from keval.config.structure import structure
from keval.config.variables import interpolate
from keval.dataset.read import Dataset
from keval.dataset.samples import Samples
from keval.errors import ConfigError, PluginError, Problem, suggestion
from keval.plan.plan import Arm, ResolvedPlugin, Scorers, kinds_of
from keval.records.scores import Rubric, RubricKind, Scale
from keval.seams import registry
from keval.seams.interfaces import ComparingJudge
from keval.seams.interventions import context_changes
from keval.seams.remedies import remedy
from keval.seams.workspaces import TaskMaker

DEFAULT_RUBRICS: Mapping[RubricKind, tuple[str, ...]] = {
    "levels": ("factual_adherence", "completeness", "helpfulness_and_clarity"),
    "preference": ("preference",),
}
"""The rubrics, by kind, of a judge that no rubric of the config is for."""


METHODS = {
    "keval.agents": ("run",),
    "keval.contexts": ("start",),
    "keval.middleware": ("handle",),
    # An executor of workers elsewhere has `open` alone.
    "keval.executors": ("execute", "open"),
    "keval.metrics": ("score",),
    "keval.judges": ("grade",),
}
"""The methods of each seam, one of which its plugins have; a hook plugin has none in particular."""


@attrs.define
class Constructor:
    """Constructs the plugins of an evaluation and collects what is wrong with them."""

    evaluation: Evaluation
    problems: list[Problem]
    notices: list[Problem] = attrs.field(factory=list)

    def plugins(self, group: str, specs: Iterable[PluginSpec]) -> tuple[ResolvedPlugin, ...]:
        """Load and construct plugins."""
        resolved: dict[str, ResolvedPlugin] = {}
        # A derived context comes after its origin, whose plugin it shares.
        for spec in sorted(specs, key=lambda spec: spec.origin is not None):
            origin = resolved.get(spec.origin or "")
            place = self.evaluation.source.place(spec.path, key=True) if spec.path else ""
            try:
                chosen = [origin.component] if origin else registry.select(group, spec.type)
                if len(chosen) > 1 and spec.options:
                    raise PluginError(
                        f"{spec.type!r} names {len(chosen)} plugins; give options to one by its full name"
                    )
                for component in chosen:
                    label, path = spec.label, spec.path
                    if len(chosen) > 1:  # plugins that were named together, by their vendor, have no place of their own
                        label, path = registry.label(group, component.name), ()
                    plugin = origin.plugin if origin else self._constructed(component, spec)
                    # A plugin that is listed with options replaces the same one of its vendor's group.
                    if label not in resolved or spec.options:
                        resolved[label] = ResolvedPlugin(
                            label,
                            component,
                            plugin,
                            place,
                            path,
                            self._characteristics(plugin, spec) if group == "keval.agents" else {},
                            spec.interventions,
                            spec.changed_at,
                            origin.label if origin else None,
                        )
            except PluginError as error:
                # A better remedy than the list of all that is installed.
                said, listed, _ = str(error).partition("; installed:")
                told = remedy("plugin", group, spec, self.evaluation.source.base) if listed else ""
                self.problem(spec.path, said + told if told else str(error), at_key=True)
        return tuple(resolved.values())

    def scorers(self, *, needed: bool = True, checks: Iterable[str] = ()) -> Scorers:
        """Construct metrics and judges, and read the rubrics; if they are `needed`, none is a problem.

        Each check of the evaluation is a metric, too; `checks` are the names of those that samples have.
        """
        metrics = self.plugins("keval.metrics", self.evaluation.metrics)
        entries = self.evaluation.header.verify
        if (entries or checks) and (maker := self.task_maker(("verify",) if entries else ("dataset",))) is not None:
            component = registry.find("keval.metrics", "verify")
            scores = maker.scores(entries, checks)
            metrics += tuple(ResolvedPlugin(label, component, plugin) for label, plugin in scores.items())
        judges = tuple(map(self._comparing, self.plugins("keval.judges", self.evaluation.judges)))
        rubrics, shipped = self._rubrics(judges)
        for name in {rubric.name for rubric in rubrics} & {metric.label for metric in metrics}:
            self.problem(("rubrics",), f"a metric has the same name {name!r}; rename the rubric", at_key=True)
        # A scorer that cannot be constructed is a problem already.
        if needed and not metrics and not self.evaluation.metrics and not judges and not self.problems:
            told = "nothing scores the answers; add `metrics:`, `judge: {model: provider/name}` or `verify:`"
            self.problem(("rubrics",) if self.evaluation.rubrics else ("metrics",), told, at_key=True)
        self.check_models(judges)
        return Scorers(metrics, judges, tuple(rubrics), tuple(shipped))

    def task_maker(self, path: KeyPath) -> TaskMaker | None:
        """Return what makes workspaces and checks, which `path` asks for; if it is not installed, that is a problem."""
        try:
            maker: TaskMaker = registry.load(registry.find("keval.task_makers", "tasks"))()
        except PluginError as error:
            missing = self.evaluation.source.problem(path, str(error), at_key=True)
            self.problems += [missing] if missing not in self.problems else []
            return None
        return maker

    def _comparing(self, judge: ResolvedPlugin) -> ResolvedPlugin:
        """Return a judge that compares with the label of the condition in place of `baseline`."""
        known, plugin = self.evaluation.labels("conditions"), judge.plugin
        if "preference" not in kinds_of(plugin) or not self.evaluation.conditions:
            return judge
        if not isinstance(plugin, ComparingJudge):
            told = f"{judge.component.target} of {judge.component.distribution} has no attribute `against`"
            self.problem(judge.path, f"{told}, and grades by preference")
            return judge
        label = plugin.against
        # A condition that is labelled so is meant before the baseline.
        if label == "baseline" and label not in known:
            label = self.evaluation.baseline
        if label not in known:
            hint = suggestion(label, known, "conditions")
            self.problem((*judge.path, "against"), f"no condition named {label!r}{hint}")
        elif label not in self.evaluation.conditions:
            told = f"the judge {judge.label!r} compares with {label!r}, which is left out, and will score nothing"
            self.notices.append(self.evaluation.source.problem(judge.path, told))
        elif {*self.evaluation.conditions} == {label}:
            told = f"the judge {judge.label!r} compares conditions, and there is none besides {label!r}; add one"
            self.notices.append(self.evaluation.source.problem(judge.path, told))
        return attrs.evolve(judge, plugin=attrs.evolve(judge.plugin, against=label))

    def check_models(self, resolved: Iterable[ResolvedPlugin]) -> None:
        """Check that the providers of all models are installed."""
        for item in resolved:
            for field, model in item.unserved.items():
                try:
                    registry.find("keval.models", model.provider)
                except PluginError as error:
                    # A model in a list has its position in the name of its field: `models.0`.
                    path = (*item.path, *(int(step) if step.isdigit() else step for step in field.split(".")))
                    self.problem(path, f"{model}: {error}")

    def problem(self, path: KeyPath, message: str, *, at_key: bool = False) -> None:
        """Add a problem at a path of the config."""
        self.problems.append(self.evaluation.source.problem(path, message, at_key=at_key))

    def finish(self) -> None:
        """Raise ConfigError with all problems, in the order of their places, if there are any."""
        if self.problems:
            raise ConfigError(sorted(self.problems, key=_position))

    def _constructed(self, component: registry.Component, spec: PluginSpec) -> Any:
        """Construct a plugin; `None` if its options are wrong. Raises PluginError if it is none of its seam."""
        target, whose = registry.load(component), f"{component.target} of {component.distribution}"
        if isinstance(target, type) and attrs.has(target):
            plugin, errors = structure(target, dict(spec.options), spec.path, self.evaluation.source.base)
            # When a run is scored again, there is no line by which to tell two plugins of one type apart.
            same = spec.label == component.name
            named = repr(component.name) if same else f"{spec.label!r} of type {component.name!r}"
            for error in errors:
                told = f"{error.message}{remedy('path', spec, error, self.evaluation.source.base)}"
                self.problem(error.path, f"{told} ({component.kind} {named})", at_key=error.at_key)
            if plugin is None:
                return None
        elif spec.options:
            raise PluginError(f"the {component.kind} {component.name!r} takes no options")
        else:
            try:
                plugin = target() if isinstance(target, type) else target
            except Exception as error:  # a constructor of a plugin may raise anything
                raise PluginError(f"{whose} cannot be constructed: {error}") from error
        methods = METHODS.get(component.group, ())
        if methods and not any(callable(getattr(plugin, method, None)) for method in methods):
            wanted = " or ".join(f"{method}()" for method in methods)
            raise PluginError(
                f"{whose} is no {component.kind}: it has no method {wanted}; see the interfaces that keval documents"
            )
        if not isinstance(getattr(plugin, "scale", Scale()), Scale):
            raise PluginError(f"the scale of {whose} is no keval.Scale")
        return plugin

    def _characteristics(self, plugin: Any, spec: PluginSpec) -> Mapping[str, Any]:
        """Return the characteristics of an agent: those of its plugin, overridden by those of the config."""
        path = (*spec.path, "characteristics")
        given = {} if spec.characteristics is None or isinstance(spec.characteristics, str) else spec.characteristics
        shipped = getattr(type(plugin), "characteristics", None)
        if isinstance(spec.characteristics, str):
            shipped = self._shipped(spec.characteristics, path)
        filled, unset = interpolate(dict(given), path)
        self.problems += self.evaluation.source.problems(unset)
        return {**(shipped if isinstance(shipped, Mapping) else {}), **filled}

    def _shipped(self, agent: str, path: KeyPath) -> Any:
        try:
            shipped = getattr(registry.load(registry.find("keval.agents", agent)), "characteristics", None)
            if not isinstance(shipped, Mapping) or not shipped:
                told = f"the agent {agent!r} says nothing of its framework's characteristics; give them key by key"
                self.problem(path, told)
            return shipped
        except PluginError as error:
            remedy = "install the adapter that ships the table, or give the characteristics key by key"
            self.problem(path, f"{error} ({remedy})")
            return None

    def _rubrics(self, judges: Iterable[ResolvedPlugin]) -> tuple[list[Rubric], list[registry.Component]]:
        """Read the rubrics, those of judges that the config has none for included, and find who ships them."""
        found: dict[str, Rubric] = {}
        shipped: dict[str, registry.Component] = {}
        self._read_rubrics(self.evaluation.rubrics, found, shipped)
        for kinds in (kinds_of(judge.plugin) for judge in judges):
            if not any(rubric.kind in kinds for rubric in found.values()):
                names = [name for kind in kinds for name in DEFAULT_RUBRICS.get(kind, ())]
                self._read_rubrics([PluginSpec(name, name) for name in names], found, shipped)
        return [*found.values()], [*shipped.values()]

    def _read_rubrics(
        self, specs: Iterable[PluginSpec], found: dict[str, Rubric], shipped: dict[str, registry.Component]
    ) -> None:
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

    def _own_rubric(self, spec: PluginSpec) -> list[Rubric]:
        """Read a rubric that is written in the config, or in a file beside it."""
        base: Path = self.evaluation.source.base
        if not spec.options:
            try:
                return [read_rubric(base / spec.type)]
            except ConfigError as unreadable:
                place = self.evaluation.source.place(spec.path)
                self.problems += [each.named_at(place) for each in unreadable.problems]
                return []
        rubric, errors = structure(Rubric, {"name": spec.label, **spec.options}, spec.path, base)
        self.problems += self.evaluation.source.problems(errors)
        return [rubric] if rubric else []


@attrs.frozen
class DraftPlan:
    """What a plan is made of so far, while its constructor still collects what is wrong."""

    constructor: Constructor
    dataset: Dataset
    samples: Samples | tuple[()]
    agents: tuple[ResolvedPlugin, ...]
    arms: tuple[Arm, ...]
    contexts: Mapping[str, ResolvedPlugin]


def _position(problem: Problem) -> tuple[str, tuple[int, ...]]:
    # Lines and columns as numbers, so that line 10 comes after line 9.
    file, *numbers = re.split(r":(?=\d)", problem.place)
    return file, tuple(int(number) for number in numbers if number.isdecimal())


def _is_own(spec: PluginSpec) -> bool:
    return bool(spec.options) or spec.type.endswith((".yaml", ".yml"))


def contexts_of(constructor: Constructor, *, played: bool = False) -> Mapping[str, ResolvedPlugin]:
    """Construct the contexts, by label; what is wrong is added to the constructor's problems.

    If they are `played`, in a replay, the recordings that they name are not needed.
    """
    resolved = constructor.plugins("keval.contexts", constructor.evaluation.contexts)
    # Only a config that changes contexts imports what does so.
    if any(spec.changes for spec in constructor.evaluation.contexts):
        resolved = context_changes().make(constructor, resolved, played=played)
    return {item.label: item for item in resolved}
