"""Texts of which a reader sees nothing, though they may have characters."""

from __future__ import annotations

import re
import unicodedata

_BLANK_CATEGORIES = {"Cc", "Cf", "Zl", "Zp", "Zs"}
"""Categories of Unicode that leave no mark: control and format characters, and all kinds of space."""
_DRAWN = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
"""Format characters that are drawn all the same: those with the property Prepended_Concatenation_Mark."""
_IGNORABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2060-\u206f\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U000e0000-\U000e0fff\u2800\U0001d159]"
)
"""Characters of other categories that leave no mark.

Those with the property Default_Ignorable_Code_Point: joiners of graphemes, fillers of Hangul, vowels of Khmer that are
not written, variation selectors, and code points that are reserved for such; and two symbols that are empty by
definition, the braille pattern without dots and the musical note without a head.
"""


def is_blank(text: str) -> bool:
    """Return whether a reader sees nothing of a text: it is empty, or only characters that leave no mark."""
    return not any(map(_is_drawn, text))


def _is_drawn(character: str) -> bool:
    if unicodedata.category(character) in _BLANK_CATEGORIES:
        return character in _DRAWN
    return _IGNORABLE.match(character) is None
