"""Values as text: what the format leaves open takes strings only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keval.plugin import dump

__all__ = ["as_text", "as_texts"]


def as_text(value: Any) -> str:
    """A text as it is, and anything else as JSON."""
    return value if isinstance(value, str) else dump(value).decode()


def as_texts(values: Mapping[str, Any]) -> dict[str, str]:
    """The values as text, without those that are `None`."""
    return {str(name): as_text(value) for name, value in values.items() if value is not None}
