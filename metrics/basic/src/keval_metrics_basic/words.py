"""Words: where they begin and end in a normalised text, in scripts with spaces and without."""

from __future__ import annotations

import regex

__all__ = ["bounded", "tokens"]

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_LETTER = rf"[\w--[{_UNSPACED}]]"
# A number is one word with its minus and decimal marks: 5 is neither in 2.5 nor in -5.
_WORD = rf"(?:(?<!\w)-(?=\d))?{_LETTER}+(?:(?<=\d)[.,](?=\d){_LETTER}+)*"
_WORDS = regex.compile(_WORD, regex.V1)
_TOKENS = regex.compile(rf"[{_UNSPACED}]|{_WORD}|\S", regex.V1)


def bounded(text: str) -> str:
    """Put a mark at both ends of each word, so that a part of a word is not found in it; in linear time.

    A bounded text contains a bounded phrase if it does so in whole words; where a script has no spaces, anywhere.
    """
    return _WORDS.sub("\0\\g<0>\0", text)


def tokens(text: str) -> list[str]:
    """Split a text into words and numbers, single symbols, and single characters of scripts without spaces."""
    return _TOKENS.findall(text)
