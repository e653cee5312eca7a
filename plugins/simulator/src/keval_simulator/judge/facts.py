"""Facts: what of a text can be compared: dates, versions, names, commands, flags, numbers, and words, by clauses."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import attrs

from keval_simulator.judge.amounts import Amount, amounts_in
from keval_simulator.words import STOP, lexicon, sentences, stems

LEAD = re.compile(r"\A\W*(yes|no)\b\s*(?:[,.:;!–—-]|$)", re.IGNORECASE)
"""A leading yes or no; it answers the question and denies nothing of its sentence."""

_CUTS = re.compile(
    # None begins with a run of spaces, which would be gone through from each of them.
    r"[,;:]\s+|[()—]\s*|\s[-–]\s+"
    r"|\s(?=(?:and|so|but|because|since|if|unless|when|while|whereas|although|though|then|which|who|without|with no)\b"
    # Followed by a verb, "that" opens a clause of its own; in "it is not true that …" it does not.
    r"|that\s+(?:never|cannot|is|are|was|were|does|do|has|have|can|\w+n['’]t)\b)",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:(?<!or )not(?! only| just)|never|avoid|no(?! more than| doubt|\.)|none|nothing|nobody|neither|nor|cannot"
    r"|without|wrong|incorrect|untrue|\w+n['’]t)(?!\w)",
    re.IGNORECASE,
)
_OPPOSITES = {
    "disabled": "enabled", "disable": "enable", "disables": "enables", "unsupported": "supported",
    "impossible": "possible", "unable": "able", "forbidden": "allowed", "unencrypted": "encrypted",
    "uncompressed": "compressed", "optional": "required", "unlimited": "limited", "rejects": "accepts",
}  # fmt: skip
_OPPOSITE = re.compile(rf"\b(?:{'|'.join(_OPPOSITES)})\b", re.IGNORECASE)
_CONDITION = re.compile(r"\b(?:if|unless|except|only)\b", re.IGNORECASE)
_LIMIT = re.compile(
    r"\b(?:than|until|before|after|beyond|above|below|over|under|exceeds?|anything but)\b", re.IGNORECASE
)


def cut(text: str) -> list[tuple[int, int]]:
    """Return the spans of a sentence's clauses."""
    lead = LEAD.match(text)
    spans, start = [], lead.end() if lead else 0
    for match in _CUTS.finditer(text, start):
        spans.append((start, match.end()))
        start = match.end()
    return [*spans, (start, len(text))]


def denies(clause: str) -> bool:
    """Tell whether a clause denies what it says; many negations deny it no less, only an opposite turns it round."""
    return bool(_NEGATION.search(clause)) != bool(_OPPOSITE.search(clause))


def depends(sentence: str) -> bool:
    """Tell whether a sentence depends on a condition."""
    return bool(_CONDITION.search(sentence))


def limits(clause: str) -> bool:
    """Tell whether a clause denies what is beyond a limit ("not more than 8")."""
    negation = _NEGATION.search(clause)
    return negation is not None and bool(_LIMIT.search(clause, negation.end()))


def affirmed(text: str) -> str:
    """Return a text without its negations, with the opposites of what it denies in a word."""
    return _NEGATION.sub(" ", _OPPOSITE.sub(lambda word: _OPPOSITES[word[0].lower()], text))


Kind: TypeAlias = Literal[
    "number", "date", "time", "version", "name", "identifier", "flag", "command", "absence", "answer"
]

_FENCED = re.compile(r"^[ \t]*```[^\n]*\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"`([^`\n]+)`")
_FLAG = re.compile(r"(?<![\w/-])--[A-Za-z][\w-]*|(?<![\w/-])-[A-Za-z]\b(?!-)")
_IDENTIFIER = re.compile(
    r"https?://[^\s<>\"')\]]+[\w/]"
    r"|(?<![\w/])(?:~|\.{1,2})?/[\w.-]*\w(?:/[\w.-]*\w)*/?"  # /etc/app.toml, ~/.config
    r"|\b[\w-]+(?:/[\w.-]+)*\.(?:toml|yaml|yml|json|jsonl|ini|conf|cfg|txt|md|py|js|sh|csv|log|db|lock|zip|gz|key)\b"
    r"|\b[A-Za-z]\w*(?:_\w+)+\b"  # snake_case, UPPER_CASE
    r"|\b(?:[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z][a-z]\w*)"  # camelCase, CamelCase
    r"|\b[A-Za-z_]\w+(?:\.[A-Za-z_]\w+)+\b"  # dotted.names
)
_COMMAND = re.compile(r"[A-Za-z][\w.-]*(?:\s+[A-Za-z][\w-]*(?![\w./=])){0,2}")
_VERSION = re.compile(r"\bv\d+(?:\.\d+)*\b|(?<![\d.])\d+(?:\.\d+){2,}\b", re.IGNORECASE)
_CALENDAR = "jan feb mar apr may jun jul aug sep oct nov dec"
_MONTHS = {name: number for number, name in enumerate(_CALENDAR.split(), 1)}
_MONTH = r"(?P<month>(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*)\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s+(?P<year>\d{4}))?"
_DATES = (
    re.compile(r"\b(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})\b"),
    re.compile(rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}\b{_YEAR}", re.IGNORECASE),
    re.compile(rf"\b{_MONTH}\s+{_DAY}\b{_YEAR}", re.IGNORECASE),
    re.compile(rf"\b{_MONTH}\s+(?P<year>\d{{4}})(?P<day>)\b", re.IGNORECASE),
)
_CLOCK = re.compile(r"\b(?P<hour>\d{1,2}):(?P<minute>\d{2})\b\s*(?P<half>[ap]\.?m\b)?", re.IGNORECASE)
_CAPITAL = r"[^\W\d_a-zß-öø-ÿ][\w'’+#]*(?:-[\w]+)*"
_NAME = re.compile(rf"(?<![\w@]){_CAPITAL}(?:\s+(?:(?:da|de|del|der|di|of|van|von)\s+)?{_CAPITAL})*")
_OPENS = re.compile(r"(?:^|[.!?:;]|\*\*|[\"“(*•|>-])\s*$")
_IS = re.compile(r"\s+(?:is|was|are|were|has|had|wrote|won|invented|discovered|painted|designed|founded)\b")
_BESIDE = 60
"""How many characters around a fact its neighbours are looked for in."""
_COMMON = lexicon("i i'm i'd i'll i've ok yes no note tip warning example true false")
_SILENT = r"(?:say|says|mention\w*|document|documented|specif\w+|states?|stated|cover\w*)"
_NOT = r"(?:not|no|never|n['’]t|cannot|without)"
_SOURCE = r"(?:anything|(?:any |an? |the |this )?(?:answer|information|mention|source|documentation|data))"
_ABSENT = re.compile(
    rf"{_NOT}\b(?:\s+\w+){{0,4}}\s+(?:{_SILENT}|known?|verify|certain|sure|(?:find|have|access to) {_SOURCE})\b"
    r"|\bunable to (?:say|answer|verify|tell)\b|\bundocumented\b",
    re.IGNORECASE,
)
"""A text that says that something is not known or not documented."""


@attrs.frozen
class Fact:
    """One fact; equal facts have the same `kind` and `key`. `said` is how the text puts it.

    `before` and `after` are up to two words around it, in lower case. `initial` marks a name of which only its place at
    the start of a sentence may be the reason for its capital.
    """

    kind: Kind
    key: str
    said: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    amount: Amount | None = None
    initial: bool = False


@attrs.frozen
class Clause:
    """A part of a sentence that says or denies one thing; `hedged` if it does so under a condition or up to a limit."""

    text: str
    facts: tuple[Fact, ...]
    words: frozenset[str]
    negative: bool
    hedged: bool


@attrs.frozen
class Statement:
    """A sentence or line: its facts, the stems of its other words, and its clauses."""

    text: str
    facts: tuple[Fact, ...]
    words: frozenset[str]
    clauses: tuple[Clause, ...]


def statements(text: str) -> tuple[Statement, ...]:
    """Read a text, sentence by sentence; a line of a code block is a statement that is a command."""
    marked = _FENCED.sub(lambda block: "\n" + "\n".join(f"`{line}`" for line in _commands(block[1])) + "\n", text)
    return tuple(_statement(part) for part in sentences(marked) if re.search(r"\w", part))


def _commands(block: str) -> list[str]:
    """Return the lines of a code block, without prompts and comments."""
    lines = (re.sub(r"^\s*[$>]\s+|(?:^|\s)#.*$", "", line).replace("`", "").strip() for line in block.splitlines())
    return [line for line in lines if line]


def _statement(text: str) -> Statement:
    found: list[tuple[int, Fact]] = []
    whole = [span.span() for span in _SPAN.finditer(text)]
    rest = text
    for read in (_code, _flags, _identifiers, _dates, _versions, _numbers, _names):
        read_now = list(read(rest, text))
        found += [(span[0], fact) for fact, span in read_now]
        whole += [span for _, span in read_now]
        rest = _covered(rest, [span for _, span in read_now], " ")
    # What was read stays together, be there an "and" in it.
    spans = cut(_covered(text, whole, "x"))
    opening = spans[0][0]
    if lead := LEAD.match(text):
        found.append((opening, Fact("answer", lead[1].lower(), lead[1])))
    if _ABSENT.search(text):
        found.append((opening, Fact("absence", "absent", "it is not known")))
    found.sort(key=lambda each: each[0])
    return Statement(
        text,
        tuple(fact for _, fact in found),
        frozenset(stems(affirmed(rest))),
        tuple(_clauses(text, rest, spans, found)),
    )


def _clauses(
    text: str, rest: str, spans: Iterable[tuple[int, int]], found: Sequence[tuple[int, Fact]]
) -> Iterator[Clause]:
    spoken = text
    for code in (_SPAN, _FLAG, _IDENTIFIER):
        # "--no-cache" denies nothing.
        spoken = code.sub(lambda match: " " * len(match[0]), spoken)
    conditional = depends(spoken)
    places = [at for at, _ in found]
    for start, stop in spans:
        said, words = spoken[start:stop], frozenset(stems(affirmed(rest[start:stop])))
        facts = tuple(fact for _, fact in found[bisect_left(places, start) : bisect_left(places, stop)])
        yield Clause(text[start:stop].strip(), facts, words, denies(said), conditional or limits(said))


_Found: TypeAlias = Iterator[tuple[Fact, tuple[int, int]]]
"""Facts, each with the span of the text that it takes out of what is read after it."""


def _covered(text: str, spans: Iterable[tuple[int, int]], cover: str) -> str:
    """Return a text with another character in the place of all in these spans."""
    kept, end = [], 0
    for start, stop in sorted(spans):
        if stop > end:
            kept += [text[end:start], cover * (stop - max(start, end))]
            end = stop
    return "".join([*kept, text[end:]])


def _fact(kind: Kind, key: str, whole: str, span: tuple[int, int]) -> Fact:
    before = tuple(re.findall(r"[\w'’]+", whole[max(span[0] - _BESIDE, 0) : span[0]].lower())[-2:])
    after = tuple(re.findall(r"[\w'’]+", whole[span[1] : span[1] + _BESIDE].lower())[:2])
    return Fact(kind, key, whole[slice(*span)].strip().strip("`"), before, after)


def _code(rest: str, whole: str) -> _Found:
    """Read the first words of code spans: a command, or one word; the rest of a span is read as prose is."""
    for span in _SPAN.finditer(rest):
        lead = _COMMAND.match(span[1])
        if lead and not _IDENTIFIER.match(span[1]):
            place = (span.start(1), span.start(1) + lead.end())
            kind: Kind = "command" if lead[0] != span[1] or " " in lead[0] else "identifier"
            yield _fact(kind, " ".join(lead[0].lower().split()), whole, place), place


def _flags(rest: str, whole: str) -> _Found:
    for match in _FLAG.finditer(rest):
        yield _fact("flag", match[0], whole, match.span()), match.span()


def _identifiers(rest: str, whole: str) -> _Found:
    for match in _IDENTIFIER.finditer(rest):
        yield _fact("identifier", match[0].lower().rstrip("/"), whole, match.span()), match.span()


def _dates(rest: str, whole: str) -> _Found:
    for pattern in _DATES:
        for match in pattern.finditer(rest):
            month = match["month"].lower()
            number = int(month) if month.isdigit() else _MONTHS[month[:3]]
            key = f"{match['year'] or ''}-{number:02d}-{match['day'].zfill(2) if match['day'] else ''}"
            yield _fact("date", key, whole, match.span()), match.span()
        rest = pattern.sub(lambda match: " " * len(match[0]), rest)
    for match in _CLOCK.finditer(rest):
        half = (match["half"] or "").lower()
        hour = int(match["hour"]) % 12 + 12 * half.startswith("p") if half else int(match["hour"])
        yield _fact("time", f"{hour:02d}:{match['minute']}", whole, match.span()), match.span()


def _versions(rest: str, whole: str) -> _Found:
    for match in _VERSION.finditer(rest):
        yield _fact("version", match[0].lower().removeprefix("v"), whole, match.span()), match.span()


def _numbers(rest: str, whole: str) -> _Found:
    for amount in amounts_in(rest):
        fact = _fact("number", amount.key, whole, amount.span)
        # A word that is counted stays a word of the statement; a unit does not.
        end = amount.span[1] if amount.measured else amount.digits
        yield attrs.evolve(fact, amount=amount), (amount.span[0], end)


def _names(rest: str, whole: str) -> _Found:
    # In code, capitals are places to fill in.
    rest = _SPAN.sub(lambda span: " " * len(span[0]), rest)
    for match in _NAME.finditer(rest):
        words = [*re.finditer(r"\S+", match[0])]
        while words and words[0][0].lower() in STOP | _COMMON:
            words.pop(0)
        if not words:
            continue
        start, end = match.start() + words[0].start(), match.end()
        initial = len(words) == 1 and bool(_OPENS.search(rest[max(start - _BESIDE, 0) : start]))
        spelt = bool(re.search(r"[A-Z0-9]", words[0][0][1:]))
        if initial and not spelt and not _IS.match(rest[end:]):
            continue
        key = re.sub(r"['’]s$", "", rest[start:end].lower())
        fact = attrs.evolve(_fact("name", key, whole, (start, end)), initial=initial and not spelt)
        # A word that may be none but a sentence's first stays one.
        yield fact, (start, start if fact.initial else end)
