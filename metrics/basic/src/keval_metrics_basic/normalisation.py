"""Normalisation: the differences between two texts that do not count."""

from __future__ import annotations

import unicodedata

import attrs
import regex

__all__ = ["Normalisation"]

_PLAIN = str.maketrans(
    dict.fromkeys("’‘ʼ‛", "'")
    | dict.fromkeys("“”„‟«»", '"')
    | dict.fromkeys("‐‑‒–—―−", "-")
    # What nobody sees: soft hyphen, zero-width space, word joiner, byte order mark.
    | dict.fromkeys("\u00ad\u200b\u2060\ufeff")
)
# Ordering a run of combining marks takes quadratic time, so a long run is cut by a joiner (UAX #15, section 13,
# Stream-Safe Text Format). U+FF9E and U+FF9F are no marks, but decompose to such.
_LONG_RUN = regex.compile(r"[\p{M}\uFF9E\uFF9F]{30}(?=[\p{M}\uFF9E\uFF9F])")
_WITHIN_WORD = regex.compile(r"(?<=\p{L})['.](?=\p{L})")
_DECIMAL = r"(?!(?<=\d)[.,](?=\d))"
_SIGN = r"(?!(?<!\w)-(?=\d))"
_PUNCTUATION = regex.compile(rf"{_DECIMAL}{_SIGN}[[\p{{P}}\p{{Sk}}]--[%‰]]", regex.V1)
_FINAL_STOP = regex.compile(r"(?<=[^\s./\\])[.。]\Z")


@attrs.frozen
class Normalisation:
    """Says what is ignored; compatibility forms (NFKC), typographic quotes and dashes always are.

    Punctuation counts as a space, an apostrophe or full stop between letters as nothing; the decimal mark and the
    minus of a number, and `%`, stay.
    """

    ignore_case: bool = True
    ignore_whitespace: bool = True
    ignore_punctuation: bool = False

    def apply(self, text: str) -> str:
        """Return a text without what is ignored; takes linear time."""
        plain = _compatible(text).translate(_PLAIN)
        if self.ignore_case:
            plain = _compatible(plain.casefold())
        if self.ignore_punctuation:
            plain = _PUNCTUATION.sub(" ", _WITHIN_WORD.sub("", plain))
        return " ".join(plain.split()) if self.ignore_whitespace else plain

    def phrase(self, text: str) -> str:
        """Return a text without what is ignored and without the full stop of its last sentence."""
        return _FINAL_STOP.sub("", self.apply(text))


def _compatible(text: str) -> str:
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", _LONG_RUN.sub("\\g<0>\u034f", text))
