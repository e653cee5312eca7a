"""The endpoints that a run asks: those that providers found, and those that plugins know themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from keval.models import Endpoint
from keval.plan.plan import ResolvedPlugin, models_of

__all__ = ["endpoints_by_model", "endpoints_of"]


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
