"""Preflight: models reachable, servers up and listing their tools, before the first trial and before money is spent."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs

from keval import registry
from keval.contexts import ToolOffer
from keval.errors import PreflightError
from keval.interfaces import Agent, ContextSource, Judge, Preparable
from keval.models import Endpoint
from keval.run.keeper import Keeper
from keval.run.plan import Plan, Planned

__all__ = ["Ready", "begin", "preflight", "resolve_models"]


@attrs.frozen
class Ready:
    """What a run needs, up and running. `sources` and `offers` are by condition."""

    agents: Mapping[str, Agent]
    judges: Mapping[str, Judge]
    sources: Mapping[str, tuple[ContextSource, ...]]
    endpoints: Mapping[str, Endpoint]

    def offers(self) -> dict[str, list[ToolOffer]]:
        """What each condition's servers offer."""
        return {
            label: [offer for source in sources for offer in source.offers] for label, sources in self.sources.items()
        }


async def preflight(plan: Plan, keeper: Keeper) -> Ready:
    """Bring everything up at once, held by `keeper`. Raises PreflightError with every problem."""
    asked = any(agent.recording is None for agent in plan.agents)
    wanted = [(arm.label, label) for arm in plan.arms for label in arm.contexts if asked]
    opening = [_started(plan.contexts[label], keeper) for _, label in wanted]
    endpoints, *sources = await _all(
        [resolve_models((*plan.agents, *plan.scorers.judges), plan.evaluation.execution.seed, keeper), *opening],
    )
    by_condition = {
        arm.label: tuple(
            source for (condition, _), source in zip(wanted, sources, strict=True) if condition == arm.label
        )
        for arm in plan.arms
    }
    problems = [problem for label, found in by_condition.items() for problem in _clashes(label, found)]
    if problems:
        raise PreflightError(problems)
    agents = await begin(plan.agents, endpoints, keeper)
    judges = await begin(plan.scorers.judges, endpoints, keeper)
    return Ready(agents, judges, by_condition, endpoints)


async def begin(planned: Iterable[Planned], endpoints: Mapping[str, Endpoint], keeper: Keeper) -> dict[str, Any]:
    """Give agents or judges their models and let those begin that want to; `keeper` closes them at the end.

    Raises PreflightError with every problem.
    """
    items = list(planned)
    plugins = dict(
        zip((item.label for item in items), await _all([_served(item, endpoints) for item in items]), strict=True)
    )
    for plugin in plugins.values():
        keeper.close_later(plugin)
    await _all([_prepared(item, plugins[item.label]) for item in items])
    return plugins


async def _prepared(planned: Planned, plugin: object) -> None:
    if isinstance(plugin, Preparable):
        with _told(planned):
            await plugin.prepare()


async def _started(context: Planned, keeper: Keeper) -> ContextSource:
    with _told(context):
        source: ContextSource = await keeper.enter(context.plugin.start(context.label))
    return source


@contextmanager
def _told(planned: Planned) -> Iterator[None]:
    """Say where the plugin stands in the config, and tell its defects like any other reason not to begin."""
    place = f"{planned.place}: " if planned.place else ""
    try:
        yield
    except PreflightError as error:
        raise PreflightError([f"{place}{problem}" for problem in error.problems]) from error
    except Exception as error:
        component = planned.component
        owner = f"the {component.kind} {planned.label!r} of {component.distribution} {component.version}"
        raise PreflightError(f"{place}{owner} does not start: {type(error).__name__}: {error}") from error


async def resolve_models(planned: Iterable[Planned], seed: int, keeper: Keeper) -> dict[str, Endpoint]:
    """Find the endpoints of the models that these plugins name. Raises PreflightError with every problem."""
    names: dict[str, list[str]] = {}
    for item in planned:
        for model in item.unserved.values():
            if model.name not in names.setdefault(model.provider, []):
                names[model.provider].append(model.name)
    providers = {name: registry.load(registry.find("keval.models", name))() for name in names}
    found = await _all([keeper.enter(providers[name].open(models, seed)) for name, models in names.items()])
    return {
        f"{provider}/{name}": endpoint
        for provider, endpoints in zip(names, found, strict=True)
        for name, endpoint in endpoints.items()
    }


async def _served(planned: Planned, endpoints: Mapping[str, Endpoint]) -> Any:
    """Return the plugin with an endpoint in each of its models; it may refuse one that does not speak its protocol."""
    with _told(planned):
        return _with_endpoints(planned, endpoints)


def _with_endpoints(planned: Planned, endpoints: Mapping[str, Endpoint]) -> Any:
    changes = {field: attrs.evolve(model, endpoint=endpoints[str(model)]) for field, model in planned.unserved.items()}
    return attrs.evolve(planned.plugin, **changes) if changes else planned.plugin


async def _all(coroutines: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Await all; raises PreflightError with the problems of every one that failed so."""
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


def _clashes(condition: str, sources: Iterable[ContextSource]) -> list[str]:
    """Two servers of a condition that offer a tool of one name: the agent could not tell them apart."""
    owner: dict[str, str] = {}
    problems = []
    for offer in (offer for source in sources for offer in source.offers):
        for tool in offer.tools:
            if tool in owner:
                problems.append(
                    f"condition {condition!r}: the servers {owner[tool]!r} and {offer.server!r} both offer a tool"
                    f" named {tool!r}; put them into separate conditions"
                )
            owner.setdefault(tool, offer.server)
    return problems
