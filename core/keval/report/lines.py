"""Lines of text that keep to a width in terminal cells, and the words that differ between two texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len, chop_cells, set_cell_size

from keval.report.terminal import foreign


def one_line(text: str) -> str:
    """Return text of others for a line of a terminal: as `foreign` makes it, on one line."""
    return " ".join(foreign(text).split())


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Return a text that is exactly so many cells wide: filled with spaces, or cut with `…` at its end."""
    lacking = width - cell_len(text)
    if lacking < 0:
        return set_cell_size(text, width - 1) + "…"
    return " " * lacking + text if right else text + " " * lacking


def folded(text: str, width: int, *, indent: int = 0, hanging: int | None = None) -> Iterator[str]:
    """Yield lines of at most `width` cells, folded at spaces; a longer word is cut.

    The first line begins after `indent` spaces, the others after `hanging`, two more unless it says otherwise.
    """
    start = " " * indent
    rest = " " * (indent + 2 if hanging is None else hanging)
    line, begun = start, False
    for word in text.split():
        if begun and cell_len(line) + 1 + cell_len(word) > width:
            yield line
            line, begun = rest, False
        pieces = chop_cells(word, max(1, width - len(rest))) if cell_len(line) + cell_len(word) > width else [word]
        for piece in pieces[:-1]:
            yield line + piece
            line = rest
        line, begun = (f"{line} " if begun else line) + pieces[-1], True
    if begun:
        yield line


def flowed(parts: Iterable[str], width: int, *, gap: str = "   ") -> Iterator[str]:
    """Yield lines of as many parts as fit, with a gap between; a part that is longer than a line is folded."""
    line = ""
    for part in parts:
        if line and cell_len(line) + len(gap) + cell_len(part) > width:
            yield from folded(line, width) if cell_len(line) > width else [line]
            line = part
        else:
            line = f"{line}{gap}{part}" if line else part
    if line:
        yield from folded(line, width) if cell_len(line) > width else [line]


def joined(parts: Sequence[str], last: str = "and") -> str:
    """Join parts as a sentence does: `a, b and c`."""
    return "".join(parts) if len(parts) < 2 else f"{', '.join(parts[:-1])} {last} {parts[-1]}"


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
