"""Agents that are tried before they are written into a config: made ready, and asked nothing."""

from __future__ import annotations

import attrs

from keval.config.evaluation import Evaluation
from keval.errors import PreflightError
from keval.execute.bringup.resources import ResourceScope
from keval.plan.construct import Constructor
from keval.seams.interfaces import Preparable, RefusesServers


@attrs.frozen
class TriedAgent:
    """An agent that is ready. `servers_refusal` says why it cannot be given MCP servers; `None` if it can."""

    label: str
    servers_refusal: str | None


async def try_agents(evaluation: Evaluation) -> list[TriedAgent]:
    """Construct the agents of an evaluation and prepare those that can be. Their models are not resolved.

    Raises:
        ConfigError: an agent is not installed, or has wrong options.
        PreflightError: what an agent needs is not there; with every problem.
    """
    constructor = Constructor(evaluation, list(evaluation.problems))
    agents = constructor.plugins("keval.agents", evaluation.agents)
    constructor.finish()
    scope = ResourceScope()
    problems: list[str] = []
    try:
        for agent in agents:
            # Before it is prepared, so that what it began is closed if that fails.
            scope.close_later(agent.plugin)
            try:
                if isinstance(agent.plugin, Preparable):
                    await agent.plugin.prepare()
            except PreflightError as error:
                problems += error.problems
    finally:
        await scope.close()
    if problems:
        raise PreflightError(problems)
    return [
        TriedAgent(each.label, each.plugin.servers_refusal() if isinstance(each.plugin, RefusesServers) else None)
        for each in agents
    ]
