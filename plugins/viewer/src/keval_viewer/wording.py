"""Wording: how the words of one answer differ from those of another."""

from __future__ import annotations

import difflib
import re
from typing import Literal, TypeAlias

import attrs

MOST_WORDS = 3_000
"""Of longer answers, the differences are not looked for: that may take a time that grows with the square."""

Difference: TypeAlias = Literal["same", "more", "less"]

_WORD = re.compile(r"\s*\S+")


@attrs.frozen
class Wording:
    """A piece of text that both answers have, that only this one has (`more`), or only the other one (`less`)."""

    text: str
    difference: Difference = "same"

    @property
    def space(self) -> str:
        """The white space that it begins with."""
        return self.text[: len(self.text) - len(self.words)]

    @property
    def words(self) -> str:
        """All else of it."""
        return self.text.lstrip()


def differing(answer: str, other: str) -> list[Wording] | None:
    """Return an answer in pieces, with what the other answer says instead; `None` if one of them is too long.

    What an answer has more keeps its white space, so that all but `less` joins to the answer.
    """
    new, old = _words(answer), _words(other)
    if max(len(new), len(old)) > MOST_WORDS:
        return None
    compared = difflib.SequenceMatcher(None, [*map(str.strip, old)], [*map(str.strip, new)], autojunk=False)
    pieces: list[Wording] = []
    for kind, a, b, c, d in compared.get_opcodes():
        if kind == "equal":
            pieces.append(Wording("".join(new[c:d])))
            continue
        if b > a:
            pieces.append(Wording("".join(old[a:b]), "less"))
        if d > c:
            pieces.append(Wording("".join(new[c:d]), "more"))
    return pieces


def _words(text: str) -> list[str]:
    """Return the words of a text, each with the white space before it; the last one has that after it, too."""
    words = _WORD.findall(text)
    rest = text[sum(map(len, words)) :]
    return [*words[:-1], words[-1] + rest] if words else []


def word_diff(before: str | None, after: str | None) -> list[tuple[str, str]]:
    """Return the words of two texts with what happened to each piece: ` ` stayed, `+` added, `-` left out."""
    old, new = (before or "").split(), (after or "").split()
    pieces: list[tuple[str, str]] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            pieces.append((" ", " ".join(old[a:b])))
            continue
        pieces += [("-", " ".join(old[a:b]))] if b > a else []
        pieces += [("+", " ".join(new[c:d]))] if d > c else []
    return pieces
