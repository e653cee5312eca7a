"""Facts: what of a text can be looked up: numbers with units, code, flags, paths, names, and the form to find it in."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import takewhile

import attrs
import regex

from keval_metrics_basic.text import LETTER, Normalisation, bounded

_THOUSANDS = regex.compile(
    r"(?<![\w.,])\d{1,3}(?:(?:,\d{3}(?!\d))+|(?:['’_\u00a0\u2009\u202f]\d{3}(?!\d))+|(?:[. ]\d{3}(?!\d)){2,})"
)
_MARKS = regex.compile(r"[*`]|^[ \t]*(?:\d{1,3}[.)]|[-+•])(?=[ \t])", regex.MULTILINE)
"""Emphasis, marks of code, and the bullets and numbers of lists, which state nothing."""
_FENCED = regex.compile(r"```\w*\n(.*?)```", regex.DOTALL)
_ZERO = regex.compile(r"(?<![\w:.])0(?=\d:\d\d)")
_UNITS = {
    "millisecond": "ms milliseconds", "second": "s sec secs seconds", "minute": "min mins minutes",
    "hour": "h hr hrs hours", "day": "d days", "week": "weeks", "month": "months", "year": "years", "%": "percent",
    "kb": "", "mb": "", "gb": "", "tb": "", "kib": "", "mib": "", "gib": "", "tib": "", "°c": "", "°f": "",
    "m": "metre metres meter meters", "km": "kilometre kilometres kilometer kilometers",
}  # fmt: skip
_UNIT_OF = {form: unit for unit, forms in _UNITS.items() for form in (unit, *forms.split())}
_UNIT = rf"[ -]?(?:{'|'.join(sorted(map(regex.escape, _UNIT_OF), key=len, reverse=True))})(?!\w)"
_AMOUNT = regex.compile(rf"(?<=\d){_UNIT}")
_FLAG = r"(?<![\w-])--?\p{L}(?:-?\w)*"
_TERMS = regex.compile(
    r"`(?P<code>[^`\n]+)`"
    r"|(?P<path>(?:\w+://|(?<![\w/])(?:~|\.{1,2})?/)[\w.~%/\#?=&:@+-]*[\w/])"
    rf"|(?P<flag>{_FLAG})"
    rf"|(?P<number>\d{{4}}-\d\d(?:-\d\d)?|(?:(?<!\w)-)?\d+(?:[.,:]\d+)*(?:(?i:{_UNIT})|{LETTER}*))"
    rf"|(?P<name>{LETTER}+(?:(?:[-'/.]|(?<=\d),(?=\d)){LETTER}+)*)",
    regex.V1,
)
_TELLING = regex.compile(r"[\d_]|(?<=.)\p{Lu}|\w\w\.\w\w")
"""What makes a word a name or identifier, wherever it stands: a digit, an inner capital, an inner dot."""
_BEGINS = regex.compile(r"(?:^|[.!?:。！？\n])[\s*\"'(\[]*\Z")
_WRITTEN = Normalisation(ignore_case=False, ignore_whitespace=False)


@attrs.frozen
class Fact:
    """One fact of a text: `said` is how it stands there, at `start`, and `key` is `comparable(said)`.

    A text has the fact if its comparable form contains `key`. `kind` is code (a command, or a value in a code span),
    path, flag, number or name.
    """

    kind: str
    said: str
    start: int

    @cached_property
    def key(self) -> str:
        """How the fact is looked for in a comparable text."""
        return comparable(self.said)


def comparable(text: str) -> str:
    """Return a text as facts are looked for in it: whole words, numbers and units written in one way."""
    # `bounded` marks words by this character.
    plain = _unseparated(text.replace("\0", " "))
    normal = _ZERO.sub("", Normalisation().apply(_MARKS.sub("", plain)))
    plain = _AMOUNT.sub(lambda unit: f" {_UNIT_OF[unit[0].lstrip(' -')]}", normal)
    # A flag is one word, so that `--to` is not found in `--to-all`.
    return bounded(regex.sub(_FLAG, lambda flag: flag[0].replace("-", "_"), plain))


def _unseparated(text: str) -> str:
    """Return a text without the separators of thousands."""
    return _THOUSANDS.sub(lambda number: regex.sub(r"\D", "", number[0]), text)


def unfenced(text: str) -> str:
    """Return a text with each line of its code blocks as a code span."""
    return _FENCED.sub(lambda block: "\n".join(f"`{line}`" for line in block[1].splitlines()), text)


def plainly_written(text: str) -> str:
    """Return a text in which facts are found however numbers, quotes and dashes are written."""
    return _WRITTEN.apply(_unseparated(unfenced(text)))


def facts_in(text: str) -> Iterator[Fact]:
    """Yield what of a text can be looked up, as it is written there."""
    for match in _TERMS.finditer(text):
        kind, word, start = match.lastgroup or "", match[0], match.start()
        if kind == "code":
            yield from _code(match["code"], start + 1)
        elif (
            kind != "name"
            or _TELLING.search(word)
            or (word[0].isupper() and len(word) > 1 and not _BEGINS.search(text, max(0, start - 20), start))
        ):
            yield Fact(kind, word, start)


def _code(span: str, at: int) -> Iterator[Fact]:
    """Yield the parts of a code span: its command, and each option and value; not what is to be filled in."""
    words = [*regex.finditer(r"\S+", span, pos=len(span) - len(span.lstrip("$> ")))]
    if not words or regex.search(r"[(){};]", span):
        yield Fact("code", span, at)
        return
    first, *others = words
    command = [first, *takewhile(lambda word: regex.fullmatch(r"\p{Ll}[\w.-]*", word[0]), others)]
    yield Fact("code", span[first.start() : command[-1].end()], at + first.start())
    for word in words[len(command) :]:
        if regex.search(r"\w", word[0]) and not regex.fullmatch(r"\p{Lu}+|[<\[].*", word[0]):
            yield Fact("flag" if word[0].startswith("-") else "code", word[0], at + word.start())
