"""Narrowing an evaluation by the flags of the command line: the same config, part of it, or with a plugin added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from keval.config.evaluation import Evaluation, PluginSpec
from keval.config.sections import implied_judge
from keval.config.structure import read_model
from keval.errors import HINT, PluginError, Problem, suggestion
from keval.seams import registry


@attrs.frozen
class Selection:
    """What the flags of `keval run` ask for. Empty means everything."""

    agents: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    sample_ids: tuple[str, ...] = ()
    limit: int | None = None
    repetitions: int | None = None
    judge_repetitions: int | None = None
    max_concurrent: int | None = None
    executor: str | None = None
    max_failures: str | None = None
    budget: Mapping[str, float] = attrs.field(factory=dict)


def select(evaluation: Evaluation, selection: Selection) -> Evaluation:
    """Return the evaluation that the selection leaves, with the problems of both."""
    # A config without agents is a problem only as long as no flag names one.
    evaluation = evaluation.needing_no("agents") if selection.agents else evaluation
    problems = [*evaluation.problems]
    agents = _chosen("--agent", "keval.agents", evaluation.agents, selection.agents, problems)
    metrics = _chosen("--metric", "keval.metrics", evaluation.metrics, selection.metrics, problems)
    judges = _chosen("--judge", "keval.judges", evaluation.judges, selection.judges, problems)
    plugins = _plugins(evaluation.plugins, selection.plugins, problems)
    for label in selection.conditions:
        if label not in evaluation.conditions:
            hint = suggestion(label, evaluation.conditions, "conditions")
            problems.append(Problem(f"--condition {label}", f"no condition named {label!r}{hint}"))
    conditions, contexts = evaluation.conditions, evaluation.contexts
    if selection.conditions:
        conditions = {label: each for label, each in conditions.items() if label in selection.conditions}
        # A derived context needs its origin, though no condition may name that.
        used = evaluation.with_bases({label for arm in conditions.values() for label in arm.contexts})
        contexts = tuple(spec for spec in contexts if spec.label in used)
    agents, judges = _with_models(agents, judges, selection.models, problems)
    executor = evaluation.execution.executor
    # The chosen one has the options of the config if that names the same one.
    same = isinstance(executor, Mapping) and executor["type"] == selection.executor
    execution = attrs.evolve(
        evaluation.execution,
        num_repetitions=selection.repetitions or evaluation.execution.num_repetitions,
        judge_repetitions=selection.judge_repetitions or evaluation.execution.judge_repetitions,
        max_concurrent=selection.max_concurrent or evaluation.execution.max_concurrent,
        executor=executor if same else selection.executor or executor,
    )
    if selection.max_failures is not None:
        try:
            execution = attrs.evolve(execution, max_failures=selection.max_failures)
        except ValueError as error:
            problems.append(Problem("--max-failures", str(error)))
    header = evaluation.header
    # Without a baseline, the first of the chosen conditions is what the others are compared with.
    baseline = header.baseline if header.baseline in conditions else None
    caps: dict[str, Any] = {**selection.budget}
    return attrs.evolve(
        evaluation,
        header=attrs.evolve(header, baseline=baseline),
        agents=agents,
        contexts=contexts,
        metrics=metrics,
        judges=judges,
        plugins=plugins,
        conditions=conditions,
        execution=execution,
        budget=attrs.evolve(evaluation.budget, **caps),
        limit=selection.limit,
        sample_ids=selection.sample_ids,
        problems=tuple(problems),
    )


def _chosen(
    flag: str, group: str, specs: Sequence[PluginSpec], names: Iterable[str], problems: list[Problem]
) -> tuple[PluginSpec, ...]:
    """Pick specs by label, else by type, else add an installed plugin that the config does not name."""
    chosen: dict[str, PluginSpec] = {}
    for name in names:
        matching = [spec for spec in specs if spec.label == name] or [spec for spec in specs if spec.type == name]
        if not matching:
            try:
                matching = [_added(flag, group, name, specs, chosen.values())]
            except PluginError as error:
                # The label of the config that is meant is told in place of all that is installed.
                near = "" if HINT in str(error) else suggestion(name, [spec.label for spec in specs])
                told = f"no {flag[2:]} is labelled {name!r}{near}" if near else str(error)
                problems.append(Problem(f"{flag} {name}", told))
        chosen.update((spec.label, spec) for spec in matching)
    return tuple(chosen.values()) if names else tuple(specs)


def _added(flag: str, group: str, name: str, specs: Sequence[PluginSpec], chosen: Iterable[PluginSpec]) -> PluginSpec:
    """Return what a flag adds: an agent gets the model of the config's first, or as `TYPE:TEXT` its `flag_option`."""
    kind, _, text = name.partition(":") if group == "keval.agents" else (name, "", "")
    label, plugin = registry.label(group, kind), registry.load(registry.select(group, kind)[0])
    if not text:
        takes_model = group == "keval.agents" and attrs.has(plugin) and "model" in attrs.fields_dict(plugin)
        models = [spec.options["model"] for spec in specs if "model" in spec.options and takes_model]
        return PluginSpec(label, kind, {"model": models[0]} if models else {}, (flag, name))
    if not hasattr(plugin, "flag_option"):
        raise PluginError(f"the agent {kind!r} takes no text after its name; write its options into the config")
    # Two flags may add agents of one type, which need labels of their own.
    earlier = sum(spec.type == kind for spec in chosen)
    return PluginSpec(f"{label}-{earlier + 1}" if earlier else label, kind, {plugin.flag_option: text}, (flag, name))


def _plugins(specs: Sequence[PluginSpec], flags: Iterable[str], problems: list[Problem]) -> tuple[PluginSpec, ...]:
    chosen = {spec.label: spec for named in specs for spec in _each_of_vendor(named)}
    for flag in flags:
        blocked = flag.removeprefix("no:")
        if blocked == flag:
            for spec in _each_of_vendor(PluginSpec(flag, flag, path=("-p", flag))):
                # A plugin that the config lists keeps the options that it has there.
                chosen.setdefault(spec.label, spec)
            continue
        out = [label for label in chosen if label == blocked or label.startswith(f"{blocked}/")]
        if not out:
            told = f"the plugin {blocked!r} is not selected, so it cannot be blocked; remove the flag"
            problems.append(Problem(f"-p {flag}", told))
        for label in out:
            del chosen[label]
    return tuple(chosen.values())


def _each_of_vendor(spec: PluginSpec) -> list[PluginSpec]:
    """Unfold a vendor's name into its plugins. An unknown name stays, and is reported when the plan is made."""
    try:
        components = registry.select("keval", spec.type)
    except PluginError:
        return [spec]
    return [spec] if len(components) == 1 else [attrs.evolve(spec, label=c.name, type=c.name) for c in components]


def _with_models(
    agents: tuple[PluginSpec, ...], judges: tuple[PluginSpec, ...], flags: Iterable[str], problems: list[Problem]
) -> tuple[tuple[PluginSpec, ...], tuple[PluginSpec, ...]]:
    """Give agents and judges the models of the flags `LABEL=provider/name`, or `agents.LABEL=…` where both have it.

    A flag without a label is for all that name the model that they ask.
    """
    models: dict[str, str] = {}
    labelled = {f"agents.{spec.label}": spec for spec in agents} | {f"judges.{spec.label}": spec for spec in judges}
    labels = [full.partition(".")[2] for full in labelled]
    for flag in sorted(flags, key=lambda each: "=" in each):  # one with a label counts more
        label, equals, model = flag.partition("=")
        meant = [full for full in labelled if label in (full, full.partition(".")[2])]
        if not meant:  # an implied judge can be named by its plugin, too
            implied = (spec for spec in judges if spec.implied and label in (spec.type, f"judges.{spec.type}"))
            meant = [f"judges.{spec.label}" for spec in implied]
        if not equals:
            meant, model = [full for full, spec in labelled.items() if _asks_model(full, spec)], flag
        try:
            read_model(model)
            if not meant:
                hint = suggestion(label, labels, "labels")
                raise ValueError(f"no agent or judge {f'is labelled {label!r}{hint}' if equals else 'names a model'}")
            if equals and len(meant) > 1:
                either = " or ".join(f"{full}=…" for full in meant)
                raise ValueError(f"an agent and a judge are labelled {label!r}; write {either}")
        except ValueError as error:
            problems.append(Problem(f"--model {flag}", str(error)))
            continue
        models |= dict.fromkeys(meant, model)

    def with_model(section: str, spec: PluginSpec) -> PluginSpec:
        if (model := models.get(f"{section}.{spec.label}")) is None:
            return spec
        options = {**spec.options, "model": model}
        # The new model chooses an implied judge.
        return attrs.evolve(spec, options=options, type=implied_judge(options) if spec.implied else spec.type)

    return tuple(with_model("agents", spec) for spec in agents), tuple(with_model("judges", spec) for spec in judges)


def _asks_model(full: str, spec: PluginSpec) -> bool:
    """Return whether a plugin asks the model that it names; that of answers which exist has answered already."""
    group = f"keval.{full.partition('.')[0]}"
    return "model" in spec.options and not hasattr(registry.load(registry.find(group, spec.type)), "count_answers")
