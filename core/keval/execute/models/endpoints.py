"""The models of agents and judges: found by their providers, or played, and led through the middleware of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from keval.config.evaluation import Execution
from keval.errors import PreflightError
from keval.execute.bringup.resources import ResourceScope
from keval.execute.models.exchange import ModelExchange, applies_middleware, needs_proxy
from keval.plan.plan import Plan, ResolvedPlugin, models_of
from keval.recording.player import Player
from keval.records.cassettes import Volatile
from keval.records.models import Asker, Endpoint, Model
from keval.seams import registry
from keval.seams.infrastructure import ProxyRoute
from keval.seams.interfaces import DeclaresVolatile


def endpoints_by_model(askers: Iterable[ResolvedPlugin], endpoints: Mapping[str, Endpoint]) -> dict[str, Endpoint]:
    """Return the endpoint of each model that these agents and judges ask, by `provider/name`."""
    models = [model for item in askers for model in item.models.values()]
    return {str(model): model.endpoint or endpoints[str(model)] for model in models}


def endpoints_of(endpoints: Mapping[str, Endpoint], *plugins: Iterable[object]) -> list[Endpoint]:
    """Return every endpoint that a run asks, by the plugins and by what providers found.

    Behind a proxy a plugin has another key than the one that it was constructed with.
    """
    models = (model for group in plugins for plugin in group for model in models_of(plugin).values())
    return [*endpoints.values(), *(model.endpoint for model in models if model.endpoint is not None)]


ModelField: TypeAlias = tuple[Asker, str]
"""A field of an agent or judge that names a model."""


async def resolve_models(
    resolved: Iterable[ResolvedPlugin], execution: Execution, scope: ResourceScope, player: Player | None = None
) -> dict[str, Endpoint]:
    """Ask the providers for the endpoints of these plugins' models, but for those that a `player` plays.

    Raises PreflightError with every problem.
    """
    names: dict[str, list[str]] = {}
    known: dict[str, Endpoint] = {}
    for item in resolved:
        for model in item.unserved.values():
            if player is not None and player.plays(str(model)):
                known[str(model)] = player.endpoint(str(model))
            elif model.name not in names.setdefault(model.provider, []):
                names[model.provider].append(model.name)
    providers = {name: registry.load(registry.find("keval.models", name))() for name in names}
    found = await all_of([scope.enter(providers[name].open(models, execution.seed)) for name, models in names.items()])
    for provider, endpoints in zip(names, found, strict=True):
        known.update((f"{provider}/{name}", endpoint) for name, endpoint in endpoints.items())
    return {model: attrs.evolve(each, max_reply_bytes=execution.largest_reply) for model, each in known.items()}


async def lead(
    agents: Iterable[ResolvedPlugin],
    judges: Iterable[ResolvedPlugin],
    endpoints: Mapping[str, Endpoint],
    exchange: ModelExchange,
    scope: ResourceScope,
) -> Mapping[ModelField, Model]:
    """Route every model through the middleware: in process if its plugin can, otherwise by one proxy for all."""
    models: dict[ModelField, Model] = {}
    proxied: dict[ModelField, ProxyRoute] = {}
    askers = [(Asker("agent", item.label), item) for item in agents]
    askers += [(Asker("judge", item.label), item) for item in judges]
    for asker, item in askers:
        for field, model in item.models.items():
            endpoint = model.endpoint or endpoints[str(model)]
            if exchange.leads(endpoint) or needs_proxy(item.plugin):
                route = exchange.route(asker, endpoint)
                if applies_middleware(item.plugin):
                    endpoint = attrs.evolve(endpoint, exchange=route.exchange)
                else:
                    proxied[asker, field] = route
            models[asker, field] = attrs.evolve(model, endpoint=endpoint)
    if proxied:
        proxy = registry.load(registry.find("keval.proxies", "models"))()
        for key, endpoint in zip(proxied, await scope.enter(proxy.open([*proxied.values()])), strict=True):
            models[key] = attrs.evolve(models[key], endpoint=endpoint)
    return models


def volatile_of(plan: Plan) -> dict[tuple[str, str], Sequence[Volatile]]:
    """Return what agents and judges declare as volatile, by role and label."""
    askers = [("agent", item) for item in plan.agents] + [("judge", item) for item in plan.scorers.judges]
    declared = [(role, item.label, item.plugin) for role, item in askers]
    return {(role, label): plugin.volatile for role, label, plugin in declared if isinstance(plugin, DeclaresVolatile)}


async def all_of(coroutines: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Await all; raises one PreflightError with the problems of all that raised one."""
    outcomes = await asyncio.gather(*coroutines, return_exceptions=True)
    problems: dict[str, None] = {}
    for outcome in outcomes:
        if isinstance(outcome, PreflightError):
            problems.update(dict.fromkeys(outcome.problems))
        elif isinstance(outcome, BaseException):
            raise outcome
    if problems:
        raise PreflightError(problems)
    return list(outcomes)
