"""Which judges grade late: after the last trial, as their requests would be in the way of trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keval.config.evaluation import Budget
from keval.models import Endpoint
from keval.plan.plan import ResolvedPlugin

__all__ = ["late_judges"]


def late_judges(
    judges: Sequence[ResolvedPlugin],
    agents: Sequence[ResolvedPlugin],
    endpoints: Mapping[str, Endpoint],
    budget: Budget,
) -> set[str]:
    """Return the labels of the judges that must not grade while trials run.

    A judge that asks a model of an agent would lengthen that agent's response times. A budget of tokens or US dollars
    is for trials first. `endpoints` are those that model providers found, by `provider/name`.
    """
    if budget.tokens is not None or budget.usd is not None:
        return {judge.label for judge in judges}
    measured = {place for agent in agents for place in _asked(agent, endpoints)}
    return {judge.label for judge in judges if measured & _asked(judge, endpoints)}


def _asked(asker: ResolvedPlugin, endpoints: Mapping[str, Endpoint]) -> set[tuple[str, ...]]:
    """Return the models that a plugin asks, each by its name and where it is reached."""
    found = [model.endpoint or endpoints.get(str(model)) for model in asker.models.values()]
    return {(each.model, *sorted(each.urls.values())) for each in found if each is not None}
