"""The implied judge of a config that names a model and no judge: the judge that lists the model's provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keval import registry
from keval.config.model_names import provider_of
from keval.config.variables import interpolate
from keval.errors import PluginError

__all__ = ["implied_judge", "implies_judge"]


def implies_judge(label: str, options: Mapping[str, Any]) -> bool:
    """Return whether a labelled judge is chosen by its model: it names one, and its label is not a judge's name."""
    named = any(label == component.name for component in registry.components("keval.judges"))
    return not named and isinstance(options.get("model"), str)


def implied_judge(options: Mapping[str, Any]) -> str:
    """Return the name of the judge for the model of these options, by the `providers` that judges list.

    If no judge lists the model's provider, return the provider's name, so that the error can say what to install.
    """
    filled, _ = interpolate(options.get("model"), ())
    name, slash, _ = str(filled).partition("/")
    provider = name if slash else provider_of(name)
    for wanted in (provider, "*"):
        for component in registry.components("keval.judges"):
            try:
                judge = registry.load(component)
            except PluginError:  # a broken judge breaks only the runs that name it
                continue
            if wanted is not None and wanted in getattr(judge, "providers", ()):
                return component.name
    return provider or name
