"""Evidence: what was found, short enough for a reason or a detail."""

from __future__ import annotations

from collections.abc import Iterable

from keval import Score

__all__ = ["NO_TRANSCRIPT", "excerpt", "listed", "quoted"]

NO_TRANSCRIPT = Score(None, "the trial has no transcript, so there is no answer to look at")

_LONGEST = 80
_MOST = 5


def excerpt(text: str, longest: int = _LONGEST) -> str:
    """Return a text on one line, cut to `longest` characters."""
    # The rest is not looked at: an answer may be a megabyte.
    line = " ".join(text[: 2 * longest].split())
    if len(line) <= longest and len(text) <= 2 * longest:
        return line
    return line[: longest - 1] + "…"


def quoted(texts: Iterable[str]) -> str:
    """Return texts in quotes, as a list to read."""
    return listed([f"'{excerpt(text)}'" for text in texts])


def listed(items: Iterable[str]) -> str:
    """Return items as a list to read, the first five of them."""
    every = list(items)
    more = f" and {len(every) - _MOST} more" if len(every) > _MOST else ""
    return ", ".join(every[:_MOST]) + more
