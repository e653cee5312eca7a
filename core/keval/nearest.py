"""Did you mean: the nearest known name to one that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["suggestion"]


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the nearest of the known names, or an empty text when none is near."""
    near = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""
