"""Building a plan: plugins constructed, samples read, prompts checked; every problem and notice at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from keval.config.evaluation import TEMPLATE_MARKS, Budget, Evaluation
from keval.config.secrets import secret_notices
from keval.config.source import KeyPath
from keval.dataset.read import NO_DATASET, Dataset, read_dataset
from keval.dataset.samples import Samples
from keval.errors import ConfigError, PluginError, Problem, suggestion, typed
from keval.plan.check import PlanCheck, PlanReview
from keval.plan.construct import Constructor, DraftPlan, contexts_of
from keval.plan.plan import Arm, Plan, ResolvedPlugin, ScoringPlan
from keval.records.manifest import Manifest
from keval.records.trial import Sample
from keval.seams import registry
from keval.seams.contexts import works_in_workspace
from keval.seams.hooks import HookPlugin, Hooks
from keval.seams.interfaces import AgentChecker
from keval.seams.workspaces import Tasks, TextContext


def make_plan(
    evaluation: Evaluation,
    dataset: Dataset | None = None,
    *,
    played: bool = False,
    scored: bool = True,
    samples_checked: bool = False,
) -> Plan:
    """Construct every plugin, read the dataset unless it is given, check every prompt.

    If the plan is `played`, as a replay is, files that only live contexts need may be missing. If it need not be
    `scored`, it may have neither metrics nor judges. With `samples_checked`, no sample is read.

    Raises ConfigError with every problem.
    """
    constructor = Constructor(evaluation, list(evaluation.problems))
    problems = constructor.problems
    agents = constructor.plugins("keval.agents", evaluation.agents)
    contexts = contexts_of(constructor, played=played)
    middleware = constructor.plugins("keval.middleware", evaluation.middleware)
    executors = constructor.plugins("keval.executors", [evaluation.executor])
    _check_meters(constructor)
    hooks = _hooks(constructor)
    dataset = dataset or _dataset(evaluation, problems, constructor.notices)
    scorers = constructor.scorers(needed=scored, checks=dataset.checks)
    constructor.check_models((*agents, *contexts.values()))
    _check_characteristics(constructor, agents, scorers.metrics)
    samples = _samples(evaluation, dataset, problems)
    arms = _arms(constructor, () if samples_checked else samples)
    tasks = _tasks(DraftPlan(constructor, dataset, () if samples_checked else samples, agents, arms, contexts))
    constructor.notices += _check_recordings(evaluation, agents, dataset, samples, problems)
    problems += _expectation_problems(evaluation, dataset)
    found = registry.components("keval.plan_reviews") if not samples_checked else ()
    reviews: list[PlanReview] = [registry.load(component)() for component in found]
    check = PlanCheck(evaluation, scorers, agents, None if samples_checked or not scored else samples, played)
    for review in reviews:
        review.check(check, dataset, samples)
    _let_check(constructor, hooks, check)
    # Below this nothing is wrong, so no plugin is `None` and there is an executor.
    constructor.finish()
    plan = Plan(
        evaluation=evaluation,
        dataset=dataset,
        samples=samples,
        agents=agents,
        arms=arms,
        contexts=contexts,
        middleware=middleware,
        hooks=hooks,
        scorers=scorers,
        executor=executors[0],
        notices=(*evaluation.notices, *constructor.notices, *check.notices, *secret_notices(evaluation)),
        tasks=tasks,
    )
    return attrs.evolve(plan, notices=(*plan.notices, *(told for review in reviews for told in review.notices(plan))))


def _check_meters(constructor: Constructor) -> None:
    """Report a budget, or limits of trials, that nothing keeps, as the package that does so is not installed."""
    evaluation = constructor.evaluation
    asked = {("budget",): evaluation.budget != Budget(), ("execution", "limits"): bool(evaluation.execution.limits)}
    for path, is_asked in asked.items():
        try:
            if is_asked:
                registry.find("keval.meters", path[-1])
        except PluginError as error:
            constructor.problem(path, str(error))


def _tasks(draft: DraftPlan) -> Tasks | None:
    """Return the workspaces and checks of a plan, if anything asks for them."""
    asking = next(_asking_for_tasks(draft), None)
    maker = None if asking is None else draft.constructor.task_maker(asking)
    return None if maker is None else maker.tasks(draft)


def _asking_for_tasks(draft: DraftPlan) -> Iterator[KeyPath]:
    """Yield where checks, a workspace, or a server or a text that may be in one are asked for."""
    evaluation, dataset = draft.constructor.evaluation, draft.dataset
    header = evaluation.header
    asked = {"verify": header.verify, "workspace": header.workspace is not None, "sandbox": header.sandbox != "none"}
    yield from ((key,) for key, is_asked in asked.items() if is_asked)
    conditions = evaluation.conditions.items()
    yield from (("conditions", label, "workspace") for label, each in conditions if each.workspace is not None)
    for item in draft.contexts.values():
        if isinstance(item.plugin, TextContext) or works_in_workspace(item.plugin):
            yield item.path
    if dataset.checks or dataset.workspaces:
        yield ("dataset",)


def make_scoring_plan(evaluation: Evaluation, manifest: Manifest) -> ScoringPlan:
    """Construct what scores a run, the middleware and the hook plugins. Raises ConfigError with every problem."""
    constructor = Constructor(evaluation, list(evaluation.problems))
    scorers = constructor.scorers(checks=manifest.dataset.checks)
    middleware = constructor.plugins("keval.middleware", evaluation.middleware)
    executors = constructor.plugins("keval.executors", [evaluation.executor])
    hooks = _hooks(constructor)
    _let_check(constructor, hooks, PlanCheck(evaluation, scorers, manifest=manifest))
    constructor.finish()
    return ScoringPlan(evaluation, scorers, executors[0], middleware, hooks)


def _expectation_problems(evaluation: Evaluation, dataset: Dataset) -> Iterator[Problem]:
    """Yield the conditions that expectations of samples name and the config does not have."""
    known = evaluation.labels("conditions")
    for label, line in dataset.expected.items():
        if label not in known:
            hint = suggestion(label, known, "conditions")
            yield Problem(f"{dataset.path}:{line}", f"'expect' names no condition of the config: {label!r}{hint}")


def hook_plugins(resolved: Iterable[ResolvedPlugin]) -> list[HookPlugin]:
    """Return the hook plugins of a plan as their registration takes them."""
    return [
        HookPlugin(item.label, item.plugin, f"{item.component.distribution} {item.component.version}")
        for item in resolved
    ]


def _hooks(constructor: Constructor) -> tuple[ResolvedPlugin, ...]:
    """Construct the hook plugins that implement keval's hooks with the right parameters; another one is a problem."""
    fit = []
    for item in constructor.plugins("keval", constructor.evaluation.plugins):
        try:
            if item.plugin is not None:
                # One at a time, so that one that does not fit is told with its place in the config.
                Hooks.of(hook_plugins([item]))
                fit.append(item)
        except PluginError as error:
            constructor.problem(item.path or ("plugins",), str(error))
    return tuple(fit)


def section_hooks(evaluation: Evaluation) -> list[HookPlugin]:
    """Return the keys of a config that packages add as hook plugins."""
    return [HookPlugin(type(each).__name__, each) for each in evaluation.sections]


def _let_check(constructor: Constructor, hooks: Iterable[ResolvedPlugin], check: PlanCheck) -> None:
    """Let the keys of the config that packages add, and hook plugins, check a plan."""
    if known := [*section_hooks(check.evaluation), *hook_plugins(hooks)]:
        Hooks.of(known).step("keval_check_plan", check=check)
    constructor.problems += check.problems


def _check_characteristics(
    constructor: Constructor, agents: Iterable[ResolvedPlugin], metrics: Iterable[ResolvedPlugin]
) -> None:
    """Let the metrics that read the characteristics of agents check them; each problem is reported once."""
    checkers = [metric.plugin for metric in metrics if isinstance(metric.plugin, AgentChecker)]
    for agent in agents:
        found = [error for checker in checkers for error in checker.check_characteristics(agent.characteristics)]
        path = (*agent.path, "characteristics") if agent.path else ("agents",)
        for error in dict.fromkeys(found):
            constructor.problem((*path, *error.path), error.message, at_key=error.at_key)


def _dataset(evaluation: Evaluation, problems: list[Problem], notices: list[Problem]) -> Dataset:
    dataset = NO_DATASET
    if evaluation.dataset is not None:
        try:
            dataset = read_dataset(evaluation.dataset)
            if dataset.waiting or not dataset.samples:
                waiting = f"{dataset.waiting} question{'s are' if dataset.waiting > 1 else ' is'} not accepted yet"
                told = f"{waiting}: {typed('review', evaluation.source.name, '--questions')}"
                told = told if dataset.waiting else "every question is rejected; add others"
                (notices if dataset.samples else problems).append(Problem(str(dataset.path), told))
        except ConfigError as error:
            problems.extend(each.named_at(evaluation.source.place(("dataset", "path"))) for each in error.problems)
    return dataset


def _samples(evaluation: Evaluation, dataset: Dataset, problems: list[Problem]) -> Samples:
    """Narrow the dataset to the selected samples."""
    samples = dataset.samples
    if wanted := evaluation.sample_ids:
        for name in wanted:
            # Without any sample the dataset's own problem is told, and not one more for each id.
            if samples and name not in samples.ids:
                hint = suggestion(name, samples.ids) or f"; ids are such as {samples.ids[0]!r}"
                problems.append(Problem(f"--sample-id {name}", f"no sample has the id {name!r}{hint}"))
        samples = samples.pick([position for position, name in enumerate(samples.ids) if name in wanted])
    return samples if evaluation.limit is None else samples[: evaluation.limit]


def _arms(constructor: Constructor, samples: Iterable[Sample]) -> tuple[Arm, ...]:
    """Compile every condition's prompt and try it on every sample."""
    arms = []
    for label, condition in constructor.evaluation.conditions.items():
        template = None
        # A prompt without marks needs no package that has Jinja2.
        if condition.template and any(mark in condition.system_prompt for mark in TEMPLATE_MARKS):
            try:
                template = registry.load(registry.find("keval.templates", "prompt"))(condition.system_prompt)
            except (PluginError, ValueError) as error:
                constructor.problem(("conditions", label, "system_prompt"), str(error))
        arms.append(Arm(label, condition, template))
    templates = [arm for arm in arms if arm.template]
    failures: dict[str, list[str]] = {}
    # Samples are the outer loop, because each is read from its file.
    for sample in samples if templates else ():
        for arm in templates:
            try:
                arm.system_prompt(sample)
            except ValueError as error:
                failures.setdefault(arm.label, []).append(str(error))
    for label, (first, *others) in failures.items():
        more = f" (and {len(others)} more samples)" if others else ""
        told = f"{first}{more}; give it a default, or the samples a value"
        constructor.problem(("conditions", label, "system_prompt"), told)
    return tuple(arms)


def _check_recordings(
    evaluation: Evaluation,
    agents: Iterable[ResolvedPlugin],
    dataset: Dataset,
    samples: Samples,
    problems: list[Problem],
) -> list[Problem]:
    """Check recorded answers against the dataset; returns notices about samples without an answer."""
    notices: list[Problem] = []
    for label, place, agent in ((agent.label, agent.place, agent.prerecorded) for agent in agents):
        # What lacks samples or conditions has a problem already, and each answer would be one more.
        if agent is None or not dataset.samples or not evaluation.conditions:
            continue
        # By all of the dataset and the config: answers that flags leave out are not wrong.
        wrong = list(agent.check_answers(dataset.samples.positions.keys(), {*evaluation.labels("conditions")}))
        problems += [each.named_at(place) for each in wrong]
        notices += [
            Problem(dataset.place(name), f"{label!r} has no answer to {name!r} under {condition!r}")
            for name in (() if wrong or getattr(agent, "partial", False) else samples.ids)
            for condition in evaluation.conditions
            if not agent.count_answers(name, condition)
        ]
    return notices
