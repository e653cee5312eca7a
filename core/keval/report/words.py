"""How a text was and is: the words that differ, with a few around them."""

from __future__ import annotations

from collections.abc import Sequence

from keval.report.lines import one_line

__all__ = ["changed_parts", "changed_words"]

_AROUND = 5
"""Words that are shown around what differs in long texts."""


def changed_words(before: str, now: str) -> str:
    """Return how something was and is, on one line: `before → now`, as `changed_parts` has them."""
    return " → ".join(changed_parts(before, now))


def changed_parts(before: str, now: str) -> tuple[str, str]:
    """Return how something was and is, each on one line. Of long texts, the words that differ, and a few around."""
    was, is_now = one_line(before).split(), one_line(now).split()
    shorter = min(len(was), len(is_now))
    begin = next((at for at in range(shorter) if was[at] != is_now[at]), shorter)
    end = next((at for at in range(shorter - begin) if was[-1 - at] != is_now[-1 - at]), shorter - begin)
    first, last = max(0, begin - _AROUND), max(0, end - _AROUND)
    if first + last <= _AROUND:
        return " ".join(was), " ".join(is_now)

    def part(words: Sequence[str]) -> str:
        return " ".join([*(["…"] if first else []), *words[first : len(words) - last], *(["…"] if last else [])])

    return part(was), part(is_now)
