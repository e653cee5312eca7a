"""Arguments: do those of a tool call agree with the expected ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from keval_metrics_basic.normalisation import Normalisation

__all__ = ["Comparison", "agree"]

Comparison: TypeAlias = Literal["ignore", "subset", "exact"]
"""`subset`: each expected argument is there with an equal value; `exact`: and there are no others."""

_NORMAL = Normalisation(ignore_whitespace=False)
_DEEPEST = 50
"""Models make up arguments; nothing nested deeper is taken to agree."""


def agree(expected: Any, found: Any, how: Comparison, depth: int = 0) -> bool:
    """Compare values of JSON: 5 equals 5.0, texts without case and outer space, mappings at any depth by `how`."""
    if how == "ignore":
        return True
    if depth > _DEEPEST:
        return False
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        if how == "exact" and expected.keys() != found.keys():
            return False
        return all(key in found and agree(value, found[key], how, depth + 1) for key, value in expected.items())
    if isinstance(expected, list | tuple) and isinstance(found, list | tuple):
        pairs = zip(expected, found, strict=False)
        return len(expected) == len(found) and all(agree(ours, theirs, how, depth + 1) for ours, theirs in pairs)
    if isinstance(expected, str) and isinstance(found, str):
        return _folded(expected) == _folded(found)
    # True is 1 in Python and is not in JSON.
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    return bool(expected == found)


def _folded(text: str) -> str:
    return _NORMAL.apply(text).strip()
