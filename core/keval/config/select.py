"""Narrowing an evaluation by the flags of the command line: the same config, part of it, or with a plugin added."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from keval import registry
from keval.config.evaluation import Evaluation, PluginUse
from keval.config.judge_type import implied_judge
from keval.config.load import AGENT_ALIASES
from keval.errors import PluginError, Problem
from keval.models import Model
from keval.nearest import suggestion

__all__ = ["Selection", "select"]


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


def select(evaluation: Evaluation, selection: Selection) -> Evaluation:
    """Return the evaluation that the selection leaves, with the problems of both."""
    problems: list[Problem] = []
    wanted = [AGENT_ALIASES.get(name, name) for name in selection.agents]
    agents = _chosen("--agent", "keval.agents", evaluation.agents, wanted, problems)
    metrics = _chosen("--metric", "keval.metrics", evaluation.metrics, selection.metrics, problems)
    judges = _chosen("--judge", "keval.judges", evaluation.judges, selection.judges, problems)
    plugins = _plugins(evaluation.plugins, selection.plugins, problems)
    for label in selection.conditions:
        if label not in evaluation.conditions:
            hint = suggestion(label, evaluation.conditions) or f"; conditions: {', '.join(evaluation.conditions)}"
            problems.append(Problem(f"--condition {label}", f"no condition named {label!r}{hint}"))
    conditions = {
        label: condition
        for label, condition in evaluation.conditions.items()
        if not selection.conditions or label in selection.conditions
    }
    used = {label for condition in conditions.values() for label in condition.contexts}
    contexts = tuple(use for use in evaluation.contexts if not selection.conditions or use.label in used)
    agents, judges = _with_models(agents, judges, selection.models, problems)
    execution = attrs.evolve(
        evaluation.execution,
        num_repetitions=selection.repetitions or evaluation.execution.num_repetitions,
        judge_repetitions=selection.judge_repetitions or evaluation.execution.judge_repetitions,
        max_concurrent=selection.max_concurrent or evaluation.execution.max_concurrent,
    )
    header = evaluation.header
    if header.baseline not in conditions:
        header = attrs.evolve(header, baseline=None)
    return attrs.evolve(
        evaluation,
        header=header,
        agents=agents,
        contexts=contexts,
        metrics=metrics,
        judges=judges,
        plugins=plugins,
        conditions=conditions,
        execution=execution,
        limit=selection.limit,
        sample_ids=selection.sample_ids,
        problems=(*evaluation.problems, *problems),
    )


def _chosen(
    flag: str, group: str, uses: Sequence[PluginUse], names: Iterable[str], problems: list[Problem]
) -> tuple[PluginUse, ...]:
    """Pick uses by label, else by plugin name, else add an installed plugin that the config does not use."""
    chosen: dict[str, PluginUse] = {}
    for name in names:
        matching = [use for use in uses if use.label == name] or [use for use in uses if use.type == name]
        if not matching:
            try:
                components = registry.select(group, name)
                matching = [PluginUse(registry.label(group, name), name, _shared_model(components[0], uses))]
            except PluginError as error:
                hint = "" if "did you mean" in str(error) else suggestion(name, [use.label for use in uses])
                problems.append(Problem(f"{flag} {name}", f"{error}{hint}"))
        chosen.update((use.label, use) for use in matching)
    return tuple(chosen.values()) if names else tuple(uses)


def _shared_model(component: registry.Component, uses: Sequence[PluginUse]) -> dict[str, str]:
    """An agent that a flag adds is asked with the model of the config's first, so that only the agent differs."""
    models = [use.options["model"] for use in uses if "model" in use.options]
    if component.group != "keval.agents" or not models:
        return {}
    plugin = registry.load(component)
    return {"model": models[0]} if attrs.has(plugin) and "model" in attrs.fields_dict(plugin) else {}


def _plugins(uses: Sequence[PluginUse], flags: Iterable[str], problems: list[Problem]) -> tuple[PluginUse, ...]:
    chosen = {use.label: use for named in uses for use in _each_of_vendor(named)}
    for flag in flags:
        blocked = flag.removeprefix("no:")
        if blocked == flag:
            for use in _each_of_vendor(PluginUse(flag, flag)):
                chosen.setdefault(use.label, use)
            continue
        out = [label for label in chosen if label == blocked or label.startswith(f"{blocked}/")]
        if not out:
            problems.append(Problem(f"-p {flag}", f"the plugin {blocked!r} is not loaded; leave the flag out"))
        for label in out:
            del chosen[label]
    return tuple(chosen.values())


def _each_of_vendor(use: PluginUse) -> list[PluginUse]:
    """Unfold a vendor's name into its plugins; a name that is unknown stays, and the plan tells of it."""
    try:
        components = registry.select("keval", use.type)
    except PluginError:
        return [use]
    return [use] if len(components) == 1 else [attrs.evolve(use, label=c.name, type=c.name) for c in components]


def _with_models(
    agents: tuple[PluginUse, ...], judges: tuple[PluginUse, ...], flags: Iterable[str], problems: list[Problem]
) -> tuple[tuple[PluginUse, ...], tuple[PluginUse, ...]]:
    models: dict[str, str] = {}
    labelled = [f"agents.{use.label}" for use in agents] + [f"judges.{use.label}" for use in judges]
    labels = [full.partition(".")[2] for full in labelled]
    for flag in flags:
        label, equals, model = flag.partition("=")
        try:
            if not equals:
                raise ValueError(f"expected LABEL=provider/name, such as --model {(labels or ['gadk'])[0]}=…")
            Model.parse(model)
        except ValueError as error:
            problems.append(Problem(f"--model {flag}", str(error)))
            continue
        meant = [full for full in labelled if label in (full, full.partition(".")[2])]
        if not meant:
            hint = suggestion(label, labels) or f"; labels: {', '.join(labels)}"
            problems.append(Problem(f"--model {flag}", f"no agent or judge is labelled {label!r}{hint}"))
        elif len(meant) > 1:
            problem = f"an agent and a judge are labelled {label!r}; write {' or '.join(f'{full}=…' for full in meant)}"
            problems.append(Problem(f"--model {flag}", problem))
        models.update(dict.fromkeys(meant, model))

    def with_model(section: str, use: PluginUse) -> PluginUse:
        model = models.get(f"{section}.{use.label}")
        if model is None:
            return use
        options = {**use.options, "model": model}
        # A judge that was not named but meant by its model is the one that the new model means.
        return attrs.evolve(use, options=options, type=implied_judge(options) if use.implied else use.type)

    return tuple(with_model("agents", use) for use in agents), tuple(with_model("judges", use) for use in judges)
