"""Text: what the text metrics share: normalisation, words, the reference in the sample, and short evidence."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import regex

from keval import Sample, Score

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


_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
LETTER = rf"[\w--[{_UNSPACED}]]"
# A number is one word with its minus and decimal marks: 5 is neither in 2.5 nor in -5.
_WORD = rf"(?:(?<!\w)-(?=\d))?{LETTER}+(?:(?<=\d)[.,](?=\d){LETTER}+)*"
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


_PLACE = re.compile(r"answer|(?:facts|metadata)(?:\.[^.]+)+")


def is_place(instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    """Check, as an attrs validator, that an option names a place in a sample."""
    if not _PLACE.fullmatch(value):
        raise ValueError(f"{attribute.name!r} must be answer, facts.<key> or metadata.<key>, got {value!r}")


def value_at(sample: Sample, place: str) -> Any:
    """Return what stands at `answer`, or at the keys of `facts.a.b`; `None` when nothing does.

    Of several golden answers, it is a tuple.
    """
    if place == "answer":
        return sample.answers if sample.other_answers else sample.answer
    root, *keys = place.split(".")
    value: Any = sample.facts if root == "facts" else sample.metadata
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def texts_at(sample: Sample, place: str) -> tuple[str, ...]:
    """Return the text, number or list of them at a place; empty when there is none, or one that is blank."""
    value = value_at(sample, place)
    items = value if isinstance(value, list | tuple) else (value,)
    texts = [_text(item) for item in items]
    return tuple(text for text in texts if text) if all(texts) else ()


def _text(value: Any) -> str | None:
    """Return a scalar as JSON writes it, but 25.0 as 25; `None` for anything else, and for a blank text."""
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, int | float) else None


def no_reference(sample: Sample, place: str, wanted: str, options: str) -> Score:
    """Return the unscored score of a trial that there is nothing to compare with, with the remedy."""
    value = value_at(sample, place)
    is_blank = not value.strip() if isinstance(value, str) else value is None or value in ((), [])
    missing = f"the sample has no {place}" if is_blank else f"{place} of the sample is not {wanted}"
    return Score(None, f"nothing to compare with: {missing}; give it {wanted}, or the metric {options}")
