"""Building a plan: plugins are loaded and constructed, samples read, prompts checked; every problem at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import attrs

from keval import registry
from keval.config.dataset import Dataset, read_dataset
from keval.config.evaluation import Evaluation, PluginUse
from keval.config.prompt import Prompt, compile_prompt
from keval.config.rubric import read_rubric
from keval.config.samples import Samples
from keval.config.source import KeyPath
from keval.config.structure import structure
from keval.errors import ConfigError, PluginError, Problem
from keval.nearest import suggestion
from keval.records import Sample
from keval.run.notices import idle_keys, missing_golden_answers
from keval.run.plan import Arm, Plan, Planned, Scorers
from keval.scores import Rubric, Scale

__all__ = ["DEFAULT_RUBRICS", "make_plan", "make_scorers"]

DEFAULT_RUBRICS = ("factual_adherence", "completeness", "helpfulness_and_clarity")
"""What judges grade by when a config names no rubrics."""

T = TypeVar("T")


def make_plan(evaluation: Evaluation) -> Plan:
    """Construct every plugin, read the dataset, check every prompt. Raises ConfigError with every problem."""
    builder = _Builder(evaluation, list(evaluation.problems))
    agents = builder.construct("keval.agents", evaluation.agents, "run")
    contexts = builder.construct("keval.contexts", evaluation.contexts, "start")
    hooks = builder.construct("keval", evaluation.plugins, None)
    scorers = builder.scorers()
    builder.check_models(agents, evaluation.agents)
    builder.check_models(scorers.judges, evaluation.judges)
    dataset = builder.dataset()
    samples = builder.samples(dataset)
    arms = builder.arms(samples)
    notices = [
        *builder.check_recordings(agents, dataset, samples),
        *missing_golden_answers(evaluation, dataset, samples, scorers),
        *([] if builder.problems else idle_keys(evaluation)),
    ]
    return builder.finished(
        lambda: Plan(
            evaluation,
            dataset,
            samples,
            tuple(agents),
            arms,
            {item.label: item for item in contexts},
            tuple(hooks),
            scorers,
            tuple(notices),
        )
    )


def make_scorers(evaluation: Evaluation) -> tuple[Scorers, tuple[Planned, ...]]:
    """Construct what scores, and the hook plugins that watch. Raises ConfigError with every problem."""
    builder = _Builder(evaluation, list(evaluation.problems))
    scorers = builder.scorers()
    builder.check_models(scorers.judges, evaluation.judges)
    hooks = builder.construct("keval", evaluation.plugins, None)
    return builder.finished(lambda: (scorers, tuple(hooks)))


@attrs.define
class _Builder:
    """Collects problems while the parts of a plan are built."""

    evaluation: Evaluation
    problems: list[Problem]

    def finished(self, make: Callable[[], T]) -> T:
        if self.problems:
            raise ConfigError(sorted(self.problems, key=_position))
        return make()

    def dataset(self) -> Dataset:
        if self.evaluation.dataset is not None:
            try:
                return read_dataset(self.evaluation.dataset)
            except ConfigError as error:
                self.problems.extend(error.problems)
        return Dataset(None, Samples.of(()), "")

    def construct(self, group: str, uses: Iterable[PluginUse], method: str | None) -> list[Planned]:
        """Load and construct plugins; each must have `method`, if one is named."""
        planned: dict[str, Planned] = {}
        for use in uses:
            try:
                chosen = registry.select(group, use.type)
                if len(chosen) > 1 and use.options:
                    raise PluginError(f"{use.type!r} names {len(chosen)} plugins; give options to one by its full name")
                for component in chosen:
                    label = use.label if len(chosen) == 1 else registry.label(group, component.name)
                    plugin = self._constructed(component, use)
                    if method and plugin is not None and not callable(getattr(plugin, method, None)):
                        raise PluginError(
                            f"{component.target} of {component.distribution} is no {component.kind}: it has no"
                            f" method {method}(); see the interfaces that keval documents"
                        )
                    if not isinstance(getattr(plugin, "scale", Scale()), Scale):
                        raise PluginError(
                            f"the scale of {component.target} of {component.distribution} is no keval.Scale"
                        )
                    # A plugin named with options wins over the same one in its vendor's group.
                    if label not in planned or use.options:
                        place = self.evaluation.source.place(use.path, key=True) if use.path else ""
                        planned[label] = Planned(label, component, plugin, place)
            except PluginError as error:
                self._problem(use.path, str(error), at_key=True)
        return list(planned.values())

    def _constructed(self, component: registry.Component, use: PluginUse) -> Any:
        target = registry.load(component)
        if isinstance(target, type) and attrs.has(target):
            source = self.evaluation.source
            plugin, misfits = structure(target, dict(use.options), use.path, source.base)
            # Where a run is scored again there is no line to tell one of a type from another.
            whose = repr(component.name) if use.label == component.name else f"{use.label!r} of type {component.name!r}"
            for misfit in misfits:
                self._problem(misfit.path, f"{misfit.message} ({component.kind} {whose})", at_key=misfit.at_key)
            return plugin
        if use.options:
            raise PluginError(f"the {component.kind} {component.name!r} takes no options")
        try:
            return target() if isinstance(target, type) else target
        except Exception as error:  # a constructor of a plugin may raise anything
            raise PluginError(
                f"{component.target} of {component.distribution} cannot be constructed: {error}"
            ) from error

    def scorers(self) -> Scorers:
        metrics = self.construct("keval.metrics", self.evaluation.metrics, "score")
        judges = self.construct("keval.judges", self.evaluation.judges, "grade")
        rubrics, shipped = self._rubrics() if judges or self.evaluation.rubrics else ([], [])
        if not self.evaluation.metrics and not self.evaluation.judges and not self.problems:
            self._problem((), "nothing scores the answers; add `metrics:` or `judges:`")
        return Scorers(tuple(metrics), tuple(judges), tuple(rubrics), tuple(shipped))

    def _rubrics(self) -> tuple[list[Rubric], list[registry.Component]]:
        """Read what judges grade by, and find who ships it; k-eval's three when the config names none."""
        found: dict[str, Rubric] = {}
        shipped: dict[str, registry.Component] = {}
        uses = self.evaluation.rubrics or [PluginUse(name, name) for name in DEFAULT_RUBRICS]
        # One written out or in a file of its own wins over the same one in its vendor's group.
        for use in sorted(uses, key=_is_own):
            if _is_own(use):
                for rubric in self._own_rubric(use):
                    if rubric.name in found and rubric.name not in shipped:
                        self._problem(use.path, f"another rubric is named {rubric.name!r}; keep one")
                    found[rubric.name] = rubric
                    shipped.pop(rubric.name, None)
                continue
            try:
                for component in registry.select("keval.rubrics", use.type):
                    rubric = registry.load(component)
                    if not isinstance(rubric, Rubric):
                        raise PluginError(f"{component.target} of {component.distribution} is no Rubric")
                    found[component.name] = attrs.evolve(rubric, name=component.name)
                    shipped[component.name] = component
            except PluginError as error:
                self._problem(use.path, str(error))
        for name in found.keys() & {use.label for use in self.evaluation.metrics}:
            self._problem(("rubrics",), f"a metric is named {name!r} too; name the rubric otherwise", at_key=True)
        return [*found.values()], [*shipped.values()]

    def _own_rubric(self, use: PluginUse) -> list[Rubric]:
        """Read a rubric that is written out in the config, or stands in a file beside it."""
        if not use.options:
            try:
                return [read_rubric(self.evaluation.source.base / use.type)]
            except ConfigError as error:
                self.problems.extend(error.problems)
                return []
        rubric, misfits = structure(Rubric, {"name": use.label, **use.options}, use.path, self.evaluation.source.base)
        for misfit in misfits:
            self._problem(misfit.path, misfit.message, at_key=misfit.at_key)
        return [rubric] if rubric else []

    def check_models(self, planned: Iterable[Planned], named: Iterable[PluginUse]) -> None:
        uses = {use.label: use for use in named}
        for item in planned:
            # Of a vendor's plugins, named together, none has a place of its own.
            path = uses[item.label].path if item.label in uses else ()
            for field, model in item.unserved.items():
                try:
                    registry.find("keval.models", model.provider)
                except PluginError as error:
                    self._problem((*path, field), f"{model}: {error}")

    def samples(self, dataset: Dataset) -> Samples:
        """Narrow the dataset to what the selection asks for."""
        samples = dataset.samples
        if wanted := self.evaluation.sample_ids:
            for name in wanted:
                if samples and name not in samples.ids:
                    hint = suggestion(name, samples.ids) or f"; the dataset has {len(samples)} others"
                    self.problems.append(Problem(f"--sample-id {name}", f"no sample has the id {name!r}{hint}"))
            samples = samples.pick([position for position, name in enumerate(samples.ids) if name in wanted])
        limit = self.evaluation.limit
        return samples if limit is None else samples[:limit]

    def arms(self, samples: Iterable[Sample]) -> tuple[Arm, ...]:
        """Compile every condition's prompt and try it on every sample."""
        arms = []
        for label, condition in self.evaluation.conditions.items():
            try:
                prompt = compile_prompt(condition.system_prompt)
            except ValueError as error:
                self._problem(("conditions", label, "system_prompt"), str(error))
                prompt = Prompt("")
            arms.append(Arm(label, prompt, condition))
        templates = [arm for arm in arms if arm.prompt.varies]
        failures: dict[str, list[str]] = {}
        for sample in samples if templates else ():
            for arm in templates:
                try:
                    arm.prompt.render(sample)
                except ValueError as error:
                    failures.setdefault(arm.label, []).append(str(error))
        for label, (first, *others) in failures.items():
            more = f" (and {len(others)} more samples)" if others else ""
            problem = f"{first}{more}; give it a default, or the samples a value"
            self._problem(("conditions", label, "system_prompt"), problem)
        return tuple(arms)

    def check_recordings(self, agents: Iterable[Planned], dataset: Dataset, samples: Samples) -> list[Problem]:
        """Hold what recorded agents have against the dataset; returns which of the `samples` they do not answer."""
        conditions = self.evaluation.conditions
        written = self.evaluation.source.data.get("conditions")
        known = {*conditions, *(written if isinstance(written, dict) else ())}  # a flag may have narrowed them
        positions = {name: position for position, name in enumerate(dataset.samples.ids)}
        notices: list[Problem] = []
        for label, recording in ((agent.label, agent.recording) for agent in agents):
            if recording is None or not positions or not conditions:
                continue
            wrong = list(recording.check_answers(positions.keys(), known))
            self.problems.extend(wrong)
            notices += [
                Problem(dataset.place(positions[name]), f"{label!r} has no answer to {name!r} under {condition!r}")
                for name in (() if wrong else samples.ids)
                for condition in conditions
                if not recording.count_answers(name, condition)
            ]
        return notices

    def _problem(self, path: KeyPath, message: str, *, at_key: bool = False) -> None:
        self.problems.append(Problem(self.evaluation.source.place(path, key=at_key), message))


def _is_own(use: PluginUse) -> bool:
    return bool(use.options) or use.type.endswith((".yaml", ".yml"))


def _position(problem: Problem) -> tuple[str, tuple[int, ...]]:
    file, *numbers = re.split(r":(?=\d)", problem.place)
    return file, tuple(int(number) for number in numbers if number.isdecimal())
