"""References: the place in a sample that an answer is held against."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from keval import Sample, Score

__all__ = ["is_place", "no_reference", "texts_at", "value_at"]

_PLACE = re.compile(r"answer|(?:facts|metadata)(?:\.[^.]+)+")


def is_place(instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    """Check, as an attrs validator, that an option names a place in a sample."""
    if not _PLACE.fullmatch(value):
        raise ValueError(f"{attribute.name!r} must be answer, facts.<key> or metadata.<key>, got {value!r}")


def value_at(sample: Sample, place: str) -> Any:
    """Return what stands at `answer`, or at the keys of `facts.a.b`; `None` when nothing does."""
    if place == "answer":
        return sample.answer
    root, *keys = place.split(".")
    value: Any = sample.facts if root == "facts" else sample.metadata
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def texts_at(sample: Sample, place: str) -> tuple[str, ...]:
    """Return the text, number or list of them at a place; empty when there is none, or one that is blank."""
    value = value_at(sample, place)
    items = value if isinstance(value, list | tuple) else (value,)
    texts = [_text(item) for item in items]
    return tuple(text for text in texts if text) if all(texts) else ()


def _text(value: Any) -> str | None:
    """Return a scalar as JSON writes it, but 25.0 as 25; `None` for anything else, and for a blank text."""
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, int | float) else None


def no_reference(sample: Sample, place: str, wanted: str, options: str) -> Score:
    """Return the unscored score of a trial that there is nothing to compare with, with the remedy."""
    missing = f"the sample has no {place}"
    if not _blank(value_at(sample, place)):
        missing = f"{place} of the sample is not {wanted}"
    return Score(None, f"nothing to compare with: {missing}; give it {wanted}, or the metric {options}")


def _blank(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, list | tuple) and not value)
