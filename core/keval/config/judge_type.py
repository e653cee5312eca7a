"""The judge that a config means when it does not say which: the one that speaks to its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keval import registry
from keval.config.source import interpolate
from keval.models import vendor_of

__all__ = ["implied_judge", "implies_judge"]


def implies_judge(label: str, options: Mapping[str, Any]) -> bool:
    """Whether a labelled judge is meant by its model: it has one, and its label is no judge's name."""
    named = any(label == component.name for component in registry.components("keval.judges"))
    return not named and isinstance(options.get("model"), str)


def implied_judge(options: Mapping[str, Any]) -> str:
    """Return the judge that speaks to the model of these options.

    Anthropic's models are asked by `anthropic`, and all others by `openai`, whose protocol most endpoints speak.
    """
    filled, _ = interpolate(options.get("model"), ())
    provider, slash, _ = str(filled).partition("/")
    vendor = provider if slash else vendor_of(provider)
    return "anthropic" if vendor == "anthropic" else "openai"
