"""The judge that a config means when it does not say which: the one that speaks to its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keval import registry
from keval.config.source import interpolate
from keval.models import vendor_of

__all__ = ["implied_judge"]


def implied_judge(label: str, options: Mapping[str, Any]) -> str:
    """Return the judge of that name, or else the one that speaks to the model of its options.

    Anthropic's models are asked by `anthropic`, and all others by `openai`, whose protocol most endpoints speak.
    """
    model = options.get("model")
    if not isinstance(model, str) or any(label == component.name for component in registry.components("keval.judges")):
        return label
    filled, _ = interpolate(model, ())
    provider, slash, _ = str(filled).partition("/")
    vendor = provider if slash else vendor_of(provider)
    return "anthropic" if vendor == "anthropic" else "openai"
