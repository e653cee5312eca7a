"""Preflight: models are resolved, servers started and their tools listed, before the first trial costs money."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal

import attrs

from keval.config.evaluation import Evaluation, Execution, size
from keval.errors import InterventionError, PluginError, PreflightError, TrialError
from keval.execute.bringup.resources import ResourceScope
from keval.execute.bringup.servers import OpenedContext, aliases_of, changes_placed, server_proxy
from keval.execute.limits import RunLimits
from keval.execute.models.exchange import MakeGate, ModelExchange, ModelField, all_of, lead, learn_keys, resolve_models
from keval.plan.build import hook_plugins
from keval.plan.plan import Arm, Plan, ResolvedPlugin, ScoringPlan
from keval.records.models import Asker, Endpoint, Model
from keval.records.servers import McpServer, ToolListing
from keval.records.trial import Sample, TrialKey
from keval.redaction import Redactor
from keval.seams.contexts import ServerSpec, TrialInfo
from keval.seams.distribution import Limits
from keval.seams.hooks import Hooks
from keval.seams.infrastructure import ServerProxy
from keval.seams.interfaces import Agent, ContextSource, Judge, Preparable, RefusesServers
from keval.seams.interventions import context_changes
from keval.seams.traffic import RunTraffic, recorded_servers
from keval.seams.workspaces import TextContext, WorkspaceProvider


@attrs.frozen
class Ready:
    """What a run needs, up and running. `contexts` are by condition, all else by label."""

    agents: Mapping[str, Agent]
    judges: Mapping[str, Judge]
    contexts: Mapping[str, tuple[OpenedContext, ...]]
    endpoints: Mapping[str, Endpoint]
    exchange: ModelExchange
    hooks: Hooks

    def tool_listings(self, condition: str) -> list[ToolListing]:
        """Return what a condition's servers offer."""
        return [tool_listing for context in self.contexts[condition] for tool_listing in context.tool_listings]


async def preflight(
    plan: ScoringPlan,
    scope: ResourceScope,
    redactor: Redactor | None = None,
    hooks: Hooks | None = None,
    *,
    done: Collection[TrialKey] = (),
    trials_elsewhere: bool = False,
    traffic: RunTraffic | None = None,
    gate: MakeGate | None = None,
    limits: Limits | None = None,
) -> Ready:
    """Bring everything up at once, held by `scope`, for grading and for the trials that are not `done`.

    `redactor` learns the keys of models, and the tokens for servers, before they are used. `hooks` are those of the
    plan and of who watches the run. All `traffic` passes where it can be kept or played, and requests to models pass a
    `gate`, if it is given, in place of those of their endpoints. `limits` are those of the run. If all trials are run
    `elsewhere`, nothing is started ahead of them.

    Raises:
        PreflightError: with every problem.
    """
    hooks = hooks or Hooks.of(hook_plugins(plan.hooks))
    redactor = redactor or Redactor()
    execution = plan.evaluation.execution
    # Agents whose answers are recorded get no context: if all are, no server is started.
    asked = any(agent.prerecorded is None for agent in plan.agents)
    # A hook that prepares a trial must run before the trial's servers start.
    later = hooks.prepare_trials or trials_elsewhere
    ahead = plan.count_left(done) if isinstance(plan, Plan) and not later else {}
    # One for all contexts, and only if one has servers: the proxy need not be installed for others.
    proxy = cache(server_proxy)

    async def opened(arm: Arm) -> list[OpenedContext]:
        workspace = plan.tasks.asked_for(arm.label) if plan.tasks is not None else None
        opening = [
            open_context(
                plan.contexts[label],
                plan.evaluation,
                scope,
                redactor,
                ahead=ahead.get(arm.label, 0),
                proxy=proxy,
                traffic=traffic,
                condition=arm.label,
                workspace=workspace,
            )
            for label in arm.contexts
            if asked
        ]
        return await all_of(opening)

    begin = asyncio.ensure_future
    middleware = begin(_begin_middleware(plan.middleware, execution, scope, traffic, gate, limits=limits))
    resolved = begin(resolve_models(plan.askers, plan.evaluation, scope, traffic))
    workspaces = [begin(plan.tasks.prepare(scope.close_later))] if plan.tasks is not None and asked else []
    by_arm = {arm.label: begin(opened(arm)) for arm in plan.arms}
    await all_of([middleware, resolved, *workspaces, *by_arm.values()])
    exchange, endpoints = middleware.result(), resolved.result()
    learn_keys(redactor, endpoints.values(), [item.plugin for item in plan.askers])
    contexts = _named({label: found.result() for label, found in by_arm.items()})
    most = size(execution.max_reply_bytes)
    models = await lead(plan.askers, endpoints, exchange, scope, most=most)
    for arm in plan.arms:  # not strict, as below
        for item, each in zip(map(plan.contexts.__getitem__, arm.contexts), contexts[arm.label], strict=False):
            each.models.update({field: models[item.asker, field] for field in item.models})
    agents = await _begin("agent", plan.agents, models, scope)
    if refused := [*_servers_refused(plan, agents, contexts)]:
        raise PreflightError(refused)
    judges = await _begin("judge", plan.scorers.judges, models, scope)
    learn_keys(redactor, (), agents.values(), judges.values())
    return Ready(agents, judges, contexts, endpoints, exchange, hooks)


def _named(contexts: Mapping[str, Sequence[OpenedContext]]) -> dict[str, tuple[OpenedContext, ...]]:
    """Give the tools of each condition names that differ. Raises PreflightError where that cannot be."""
    named: dict[str, tuple[OpenedContext, ...]] = {}
    problems: list[str] = []
    for condition, found in contexts.items():
        tapped = {name for context in found for name in context.tapped}
        aliases, wrong = aliases_of(condition, [each for context in found for each in context.tool_listings], tapped)
        named[condition] = tuple(context.named(aliases) for context in found)
        problems += wrong
    if problems:
        raise PreflightError(problems)
    return named


async def _begin_middleware(
    middleware: Sequence[ResolvedPlugin],
    execution: Execution,
    scope: ResourceScope,
    traffic: RunTraffic | None,
    gate: MakeGate | None = None,
    *,
    limits: Limits | None,
) -> ModelExchange:
    for item in middleware:
        scope.close_later(item.plugin)
        await _prepared(item, item.plugin)
    labelled = {item.label: item.plugin for item in middleware}
    limits = limits or RunLimits(execution.retry, execution.rates)
    return ModelExchange(labelled, execution.retry, execution.seed, traffic, limits, gate)


async def _begin(
    role: Literal["agent", "judge"],
    resolved: Sequence[ResolvedPlugin],
    models: Mapping[ModelField, Model],
    scope: ResourceScope,
) -> dict[str, Any]:
    """Give agents or judges their models and prepare those that are `Preparable`; `scope` closes them at the end."""
    served = await all_of([_served(Asker(role, item.label), item, models) for item in resolved])
    plugins = dict(zip((item.label for item in resolved), served, strict=True))
    # Before they are prepared: if one cannot be, the others are closed all the same.
    for plugin in plugins.values():
        scope.close_later(plugin)
    await all_of([_prepared(item, plugins[item.label]) for item in resolved])
    return plugins


def _servers_refused(
    plan: ScoringPlan, ready: Mapping[str, Agent], contexts: Mapping[str, Sequence[OpenedContext]]
) -> Iterator[str]:
    """Yield why agents cannot be given the MCP servers of the first condition with any."""
    # A context of texts has a server only for agents that it gives no files.
    # Not strict: if all answers are recorded, no context is open.
    served = (
        arm.label
        for arm in plan.arms
        for name, found in zip(arm.contexts, contexts[arm.label], strict=False)
        if found.tool_listings and not isinstance(plan.contexts[name].plugin, TextContext)
    )
    condition = next(served, None)
    for item in plan.agents if condition is not None else ():
        agent = ready[item.label]
        if isinstance(agent, RefusesServers) and (refusal := agent.servers_refusal()):
            yield f"{item.place}: condition {condition!r} has MCP servers, and {item.label!r} can have none: {refusal}"


async def _prepared(resolved: ResolvedPlugin, plugin: object) -> None:
    if isinstance(plugin, Preparable):
        with _placed(resolved):
            await plugin.prepare()


async def open_context(
    context: ResolvedPlugin,
    evaluation: Evaluation,
    scope: ResourceScope,
    redactor: Redactor,
    *,
    ahead: int = 0,
    proxy: Callable[[], ServerProxy] | None = None,
    traffic: RunTraffic | None = None,
    condition: str | None = None,
    workspace: WorkspaceProvider | None = None,
) -> OpenedContext:
    """Start a context, connect to its servers and list their tools; `ahead` processes may be started before trials.

    A server is named after the context that it is from in the end, so that agents cannot tell a changed one by that.
    `condition` is the one that it is started for.
    """
    with changes_placed(context, evaluation.source), _placed(context):
        source: ContextSource = await scope.enter(context.plugin.start(context.origin or context.label))
        if not isinstance(source, ContextSource):
            raise TypeError(f"start() yields {source!r:.100}, which is no ContextSource (servers and open())")
        changed_servers = () if isinstance(context.plugin, TextContext) else context.interventions
        opened = OpenedContext(source, changed_servers)
        results = next((change.recorded for change in context.interventions if change.recorded is not None), None)
        # A replay answers in place of the servers already.
        if results is not None and (traffic is None or not traffic.plays):
            opened = attrs.evolve(opened, recorded=recorded_servers(results, redactor))
        for each in source.servers:
            use = each if isinstance(each, McpServer) else opened.given(each, evaluation.execution)
            use = use if opened.recorded is None else opened.recorded.listing(use, condition)
            use = use if traffic is None else traffic.listing(use, condition)
            if isinstance(use, McpServer):  # the context itself is connected to it
                opened.tool_listings.append(ToolListing(use.name, use.tools))
                continue
            server = use.server
            if server.login is not None:
                server.login.learn_with(redactor.learn)
            if server.uses_workspace:
                server = server.in_workspace(await _probed(workspace, server, scope))
            use = attrs.evolve(use, server=server, start_ahead=ahead)
            opened.servers[use.name] = connected = await scope.enter((proxy or server_proxy)().connect(use))
            opened.tool_listings.append(connected.tool_listing)
            answers = traffic.answers(use.name, condition) if traffic is not None else None
            if entry := opened.recorded.entry if opened.recorded is not None else answers:
                opened.answers[use.name] = entry
        if changed_servers:
            context_changes().check(context, opened.tool_listings, opened.tapped)
        return opened


async def _probed(workspace: WorkspaceProvider | None, server: ServerSpec, scope: ResourceScope) -> Path:
    """Make a workspace for a server that is started for its tools to be listed. Raises PreflightError."""
    if workspace is None:
        raise PreflightError(
            f"server '{server.name}' works in {{workspace}}, and its condition has none; add `workspace: {{}}`"
        )
    try:
        made = await scope.enter(workspace.open(TrialInfo("preflight", Sample("preflight", ""), "", "")))
    except TrialError as error:
        raise PreflightError(f"server '{server.name}': {error}") from error
    return made.folder


@contextmanager
def _placed(resolved: ResolvedPlugin) -> Iterator[None]:
    """Add the plugin's place in the config to errors, and report its defects as PreflightError, too."""
    place = f"{resolved.place}: " if resolved.place else ""
    try:
        yield
    except InterventionError:
        raise  # it has places of its own
    except PreflightError as error:
        raise PreflightError([f"{place}{problem}" for problem in error.problems]) from error
    except PluginError as error:
        raise PreflightError(f"{place}{error}") from error
    except Exception as error:
        component = resolved.component
        owner = f"the {component.kind} {resolved.label!r} of {component.distribution} {component.version}"
        raise PreflightError(f"{place}{owner} does not start: {type(error).__name__}: {error}") from error


async def _served(asker: Asker, resolved: ResolvedPlugin, models: Mapping[ModelField, Model]) -> Any:
    """Return the plugin with an endpoint in each of its models. It may refuse an endpoint of another protocol."""
    with _placed(resolved):
        changes: dict[str, Any] = {}
        for field, was in resolved.models.items():
            model, (name, dot, _) = models[asker, field], field.partition(".")
            if dot:
                changes[name] = (*changes.get(name, ()), model)
            elif model.endpoint is not was.endpoint:
                changes[name] = model
        return attrs.evolve(resolved.plugin, **changes) if changes else resolved.plugin
