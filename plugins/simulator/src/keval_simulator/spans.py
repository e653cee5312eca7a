"""Spans: the names, numbers, dates, quotes, ids and words of a text, each with what stands beside it."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

import attrs

from keval_simulator.words import NUMBER_WORDS, ORDINALS, STOP, lexicon

Kind: TypeAlias = Literal[
    "url", "email", "quote", "path", "date", "time", "expression", "quantity", "ip", "id", "number", "code", "name",
    "initial", "phrase", "word", "month", "part",
]  # fmt: skip

_MONTHS = [each.lower() for each in calendar.month_abbr[1:]]
_MONTH = rf"(?:{'|'.join([*calendar.month_name[1:], 'sept', *_MONTHS])})\b\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_WRITTEN = rf"(?i:\b(?:{_DAY}(?: of)? {_MONTH}|{_MONTH} {_DAY}),? \d{{4}})"
_SHARED = re.compile(
    rf"\b(?P<first>{_DAY})(?: (?P<month>{_MONTH}))? (?:and|to|until|through|-|–) (?P<last>{_DAY} {_MONTH} \d{{4}})",
    re.IGNORECASE,
)
"""Two dates of which the first has the month or the year of the second."""
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{2}))?(?::\d{2})?\s?([ap])?\.?m?", re.IGNORECASE)
# A word that starts with a capital letter of any alphabet that has them: São, Łódź, Zürich.
_CAPITAL = r"[^\W\d_a-zß-öø-ÿ][^\W_]*(?:[-'’.&][^\W_]+)*"
_PARTICLE = r"(?:d[aeo]|del|la|le|los|las|of|of the|upon|am|an der|der|den|el|al|sur|van|von|\d+)"
_COUNTED = r"(?!\d+[-.,\d]*-?[^\W\d_]+\b)"
_PATTERNS: dict[Kind, str] = {
    "url": r"\b[a-z]+://[^\s\"'<>)\]]*[^\s\"'<>)\].,;:?!]",
    "email": r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    "quote": r"\"([^\"\n]+)\"|“([^”]+)”|`([^`\n]+)`|(?<!\w)['‘]([^'’\n]+)['’](?!\w)",
    "path": r"(?<![\w/.])(?:[\w-]+/)+(?:[\w-]+ ){0,4}[\w-]+\.[a-z]\w{1,4}\b"
    r"|(?<![\w/.])(?:~|\.{1,2})?/[\w./-]*\w|\b[\w-]{2,}(?:/[\w.-]+)*\.[a-z]\w{0,4}\b|\b[A-Z]\w+/[A-Z]\w+",
    "date": rf"\b\d{{4}}-\d\d-\d\d(?:[T ]\d\d:\d\d[\d:.Z+-]*)?|{_WRITTEN}|(?i:\b(?:today|tomorrow|yesterday)\b)",
    "month": rf"(?i:\b{_MONTH},? (?:of )?(?:19|20)\d\d\b)|\b(?:19|20)\d\d-(?:0[1-9]|1[0-2])\b(?!-)"
    r"|(?<=\bin )(?:19|20)\d\d\b(?![-\w])",
    "time": r"(?i:\b\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]\.?m\b)?|\b\d{1,2}\s?[ap]\.?m\b)",
    "ip": r"\b\d+(?:\.\d+){3}(?:/\d+)?\b",
    "id": r"#[0-9a-fA-F]{3,8}\b|\bv\d+(?:\.\d+)+\b|\b\d+\.\d+\.\d+\b|[\u2600-\u27bf\U0001f000-\U0001faff]+"
    r"|\b\w+(?:~\d*|\^+)(?!\w)|\b[a-z]{2,}[A-Z]\w*|\b\d+(?:-\d+){2,}\b"
    rf"|\b{_COUNTED}(?=[\w-]*\d)(?=[\w-]*[^\W\d])\w[\w-]*\b|\w+_\w+",
    "number": rf"(?i:(?<![\w.])[-−]?\d+(?:,\d{{3}})*(?:\.\d+)?(?:(?:st|nd|rd|th)\b)?|\b(?:{'|'.join(NUMBER_WORDS)})\b)"
    rf"|(?i:(?<=\bthe )(?:{'|'.join(ORDINALS)})\b)",
    "code": r"\b[A-Z]{2,6}\b",
    "name": rf"(?<!\w){_CAPITAL}(?:\s+(?:{_PARTICLE}\s+)?{_CAPITAL})*",
    "word": r"[^\W\d_][\w'’-]*\w",
}
"""What each kind looks like; what an earlier one has claimed is no later one's."""
_EXPRESSION = re.compile(
    r"(?:\b[a-z]+\d*\(|[\d(]|\b[a-z](?=\s?[*^+/]))(?:[a-z]+\d*\(|\b[a-z]\b|(?<=\d)[a-z]\b|[\d\s().,+*/^%×÷=-])*[\d)]"
)
_AMOUNT = r"[$€£]?\d[\d,]*(?:\.\d+)?"
_OPERATORS = {
    r"(?:%|percent) of": "/100*", "plus": "+", "minus": "-", r"times|multiplied by": "*", "divided by": "/",
    "to the power of": "**", r"[-+*/]": r"\g<0>",
}  # fmt: skip
_IN_WORDS = re.compile(rf"{_AMOUNT}(?:,? ?(?:{'|'.join(_OPERATORS)}) ?{_AMOUNT})+", re.IGNORECASE)
"""Arithmetic in words, such as "15 % of 80, plus 3"."""
_OPERATOR = re.compile(r"\d\s*[+*/^%×÷]+\s*[\d(a-z]|\d\s+-\s+[\d(]|\d-\d+\s*[+*/]|\w\(")
_NO_UNIT = "|".join([*STOP, "to", "into", "times", "plus", "minus"])
_QUANTITY = re.compile(
    rf"(?<![\w.])\d+(?:\.\d+)? (?:degrees? (?=[A-Z]))?"
    rf"(?!(?:{_NO_UNIT})\b)[a-zA-Zµ°]+(?:[*/^]\w+)*(?: (?!(?:{_NO_UNIT})\b)[a-z]+)?"
)
_FILE_IN_FOLDER = re.compile(
    r"(?P<file>(?<![\w./-])[\w-]+\.[a-z]\w{0,4})\b (?:in|from|of|inside|under) (?:the )?(?:(?:folder|directory) )?"
    r"(?P<folder>[a-z][\w-]+)\b(?: folder| directory|(?=[?.,;]|$))"
)
_OPENERS = lexicon("""
    actually add again also book calculate cancel change check compare compute convert count create decode delete
    describe do draw encode evaluate every explain extract false fetch find friday generate get good great hash hello hi
    how if in is list look make many monday much name nice no not now ok on open order parse please quote read recommend
    remove render report run saturday save say schedule search send set should show solve sort sorry store subtract sum
    summarise summarize sunday tell thanks thursday today tomorrow translate true tuesday under update use using
    validate was wednesday were write yes
    """)
"""Words that a sentence begins with and that are no name, though they have a capital letter then."""
_ADVERBS = lexicon("degree degrees right soon later moment tonight currently again please else ever next any more")
_WORDS_BESIDE = re.compile(r"[^\W_]+(?:['’]\w+)?|[%$€£]")


@attrs.frozen
class Span:
    """A piece of a text; `before` and `after` are the lower-case words beside it in its sentence, the nearest first.

    `width` is how many characters it takes there, where its text is written otherwise.
    """

    text: str
    kind: Kind
    start: int
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    width: int = 0

    @property
    def end(self) -> int:
        """Where it ends in the text."""
        return self.start + (self.width or len(self.text))

    @property
    def number(self) -> float:
        """The value of a number, in digits or in words up to twelve."""
        if self.text.lower() in NUMBER_WORDS:
            return NUMBER_WORDS[self.text.lower()]
        if self.text.lower() in ORDINALS:
            return ORDINALS[self.text.lower()]
        return float(re.sub(r"[a-z,]", "", self.text.replace("−", "-")))


def spans(text: str) -> list[Span]:
    """Return the spans of a text in their order; those of one kind do not overlap, and each is of one kind only."""
    found = [
        _span(text, "expression", *each.span())
        for each in _EXPRESSION.finditer(text)
        if _OPERATOR.search(each[0]) and not re.fullmatch(_PATTERNS["ip"], each[0])
    ]
    for each in _IN_WORDS.finditer(text):
        if re.search(r"[a-z]", each[0]):
            found.append(attrs.evolve(_span(text, "expression", *each.span()), text=_in_signs(each[0])))
    found += [_span(text, "quantity", *each.span()) for each in _QUANTITY.finditer(text)]
    for each in _FILE_IN_FOLDER.finditer(text):
        at = _span(text, "path", *each.span("file"))
        found.append(attrs.evolve(at, text=f"{each['folder']}/{each['file']}"))
    free = text
    for each in _SHARED.finditer(text):
        month = each["month"] or each["last"].split()[1]
        first = f"{each['first']} {month} {each['last'][-4:]}"
        found.append(attrs.evolve(_span(text, "date", *each.span("first")), text=_value("date", first)))
        end = each.end("month") if each["month"] else each.end("first")
        free = f"{free[: each.start()]}{chr(0) * (end - each.start())}{free[end:]}"
    for kind, pattern in _PATTERNS.items():
        for match in re.finditer(pattern, free):
            inner = next((group for group in range(1, 5) if kind == "quote" and match[group]), 0)
            if kind == "name":
                found += _named(text, *match.span())
            elif kind == "month":
                found += _of_month(text, match)
            else:
                found += [_span(text, kind, *match.span(inner)), *_parts(kind, match)]
        # What one kind has claimed is no other's; a mark stands for it, so that words on both sides do not join.
        free = re.sub(pattern, lambda match: "\0" * len(match[0]), free)
    plain = [each for each in found if each.kind != "word" or each.text.lower() not in STOP | _ADVERBS]
    return sorted([*plain, *_phrases(text, plain)], key=lambda each: each.start)


def _span(text: str, kind: Kind, start: int, end: int) -> Span:
    before = re.split(r"[.?!;:]\s", text[:start])[-1]
    after = re.split(r"[.?!;,]", text[end:], maxsplit=1)[0]
    words = [each for each in _WORDS_BESIDE.findall(before.lower()) if not each.startswith("degree")][-4:][::-1]
    beside = tuple(words), tuple(_WORDS_BESIDE.findall(after.lower())[:3])
    return Span(_value(kind, text[start:end]), kind, start, *beside, end - start)


def _value(kind: Kind, text: str) -> str:
    """Return a date in ISO form, a time by 24 hours and a quantity without "degrees"; all else as it stands."""
    if kind == "quantity":
        return re.sub(r"degrees? (?=[A-Z])", "", text)
    if kind == "date" and re.fullmatch(_WRITTEN, text):
        month = _month_in(text)
        year, day = (re.search(pattern, text) for pattern in (r"\d{4}$", r"\b\d{1,2}(?!\d)"))
        return f"{year[0]}-{month:02}-{int(day[0]):02}" if year and day else text
    if kind == "time" and (clock := _CLOCK.fullmatch(text)):
        hour = int(clock[1]) % 12 + 12 * (clock[3].lower() == "p") if clock[3] else int(clock[1])
        return f"{hour:02}:{clock[2] or '00'}"
    return text


def _in_signs(text: str) -> str:
    """Return arithmetic in words with the signs of it."""
    text = re.sub(r"[,$€£]", "", text)
    for words, sign in _OPERATORS.items():
        text = re.sub(rf" ?(?:{words}) ?(?=[-\d])", sign, text, flags=re.IGNORECASE)
    return text


def _month_in(text: str) -> int:
    """Return the number of the month that a date in words has."""
    return next(at for at, each in enumerate(_MONTHS, 1) if re.search(rf"\b{each}", text.lower()))


def _of_month(text: str, match: re.Match[str]) -> Iterator[Span]:
    """Yield the first and the last day of a month or a year, as what it goes from and to, and its parts."""
    year = re.search(r"\d{4}", match[0])
    if year is None:
        return
    month = 0 if match[0] == year[0] else int(match[0][-2:]) if match[0][0].isdigit() else _month_in(match[0])
    whole = _span(text, "date", *match.span())
    begins = f"{year[0]}-{month or 1:02}-01"
    ends = f"{year[0]}-{month or 12:02}-{calendar.monthrange(int(year[0]), month or 12)[1]}"
    near = whole.before[:1]
    if near != ("after",):
        before = whole.before if near in (("before",), ("until",), ("since",)) else ("from", *whole.before)
        yield attrs.evolve(whole, text=begins, before=before, width=1)
    if near not in (("before",), ("until",), ("since",)):
        before = whole.before if near == ("after",) else ("to", *whole.before)
        yield attrs.evolve(whole, text=ends, before=before, start=whole.start + 1, width=whole.width - 1)
    if month:
        yield Span(str(month), "part", match.start(), ("month",))
        yield Span(year[0], "part", match.start() + year.start(), ("year",))
    else:
        yield _span(text, "number", *match.span())


def _parts(kind: Kind, match: re.Match[str]) -> Iterator[Span]:
    """Yield the year, the month and the day of a date, for parameters that take one of them."""
    if kind == "date" and (date := re.match(r"(\d{4})-(\d\d)-(\d\d)", _value(kind, match[0]))):
        for at, (name, value) in enumerate(zip(("year", "month", "day"), date.groups(), strict=True)):
            yield Span(str(int(value)), "part", match.start() + 4 * at, (name,))


def _named(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield a run of capitalised words without those that only begin a sentence or end in a possessive."""
    words = [(each.start() + start, each[0]) for each in re.finditer(r"\S+", text[start:end])]
    opens = not text[:start].strip() or bool(re.search(r"[.?!:]\s*$", text[:start]))
    initial = opens
    while words and (words[0][1].lower().split("'")[0] in STOP or words[0][1].lower() in _OPENERS):
        words.pop(0)
        initial = False
    if words:
        last = re.sub(r"['’]s$", "", words[-1][1])
        kind: Kind = "initial" if initial and len(words) == 1 else "name"
        yield _span(text, kind, words[0][0], words[-1][0] + len(last))


def _phrases(text: str, found: list[Span]) -> Iterator[Span]:
    """Yield runs of two and more plain words, such as "olive oil"."""
    words = [each for each in found if each.kind == "word"]
    run: list[Span] = []
    for each in [*sorted(words, key=lambda word: word.start), None]:
        if run and (each is None or text[run[-1].start + len(run[-1].text) : each.start] != " "):
            if len(run) > 1:
                yield _span(text, "phrase", run[0].start, run[-1].start + len(run[-1].text))
            run = []
        if each is not None:
            run.append(each)
