"""Reading: a text as sentences and clauses, with the facts of each (`keval_metrics_basic`) and the other words."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection
from functools import cached_property
from math import nan

import attrs

from keval_metrics_basic import Fact, comparable, facts_in, unfenced
from keval_simulator.words import NUMBER_WORDS, STOP, sentences, shares_stem, stem, stems

_CODE = re.compile(r"`[^`\n]+`")
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
_CONDITION = re.compile(r"\b(?:if|unless|except|only)\b", re.IGNORECASE)
_LIMIT = re.compile(
    r"\b(?:than|until|before|after|beyond|above|below|over|under|exceeds?|anything but)\b", re.IGNORECASE
)
_LEAD = re.compile(r"\A\W*(yes|no)\b\s*(?:[,.:;!–—-]|$)", re.IGNORECASE)
_UNKNOWN = re.compile(
    r"(?:\b(?:not|no|never|cannot|unable|nothing)|n['’]t)\b(?:\s+[\w'’]+){0,4}?\s+(?:say|says|mention\w*|document\w*|"
    r"specif\w+|states?|cover\w*|know|known|tell|verify|certain|sure|idea|look|help|answer|information|data|access|source"
    r"|find)\b",
    re.IGNORECASE,
)
_DIGITS = re.compile(rf"\b(?:{'|'.join(word for word, value in NUMBER_WORDS.items() if value > 1)})\b", re.IGNORECASE)
_NUMBER = re.compile(r"(-?\d+(?:\.(\d+))?)(?:\s+(.*))?")
_BEHIND = re.compile(r"[\s-]([^\W\d_]+)")
_UNITS = {
    "minute": ("second", 60), "hour": ("second", 3600), "day": ("second", 86_400), "week": ("second", 604_800),
    "year": ("month", 12),
}  # fmt: skip
"""Units with that in which they are compared, and how many of it they are."""
_ROUNDED = 0.05
"""The share of a number that rounding may take from it: 12 kg are 12.4 kg, 2 GB are not 1.5 GB."""


@attrs.frozen
class Clause:
    """A part of a sentence that says or denies one thing; `hedged` if it may do so up to a limit or under a condition.

    `words` are the stems of what is no fact.
    """

    text: str
    facts: tuple[Fact, ...]
    words: frozenset[str]
    negative: bool
    hedged: bool


@attrs.frozen
class Sentence:
    """A sentence or line, cut into its clauses."""

    text: str
    clauses: tuple[Clause, ...]

    @cached_property
    def facts(self) -> list[Fact]:
        """The facts of all clauses."""
        return [fact for clause in self.clauses for fact in clause.facts]

    @cached_property
    def words(self) -> frozenset[str]:
        """The stems of what is no fact."""
        return frozenset().union(*(clause.words for clause in self.clauses))

    @cached_property
    def items(self) -> frozenset[str]:
        """The words, and the facts as they are looked for."""
        return self.words.union(fact.key for fact in self.facts)

    def counted(self, fact: Fact) -> str:
        """Return what a number counts: its unit, the word behind it, or else that before it ("port 80")."""
        if unit := _amount(fact)[2]:
            return unit
        behind = _BEHIND.match(self.text, fact.start + len(fact.said))
        if behind and behind[1].lower() not in STOP:
            return stem(behind[1].lower())
        before = re.findall(r"[^\W\d]\w*", self.text[max(fact.start - 60, 0) : fact.start].lower())
        return next((stem(word) for word in reversed(before[-4:]) if word not in STOP), "")


@attrs.frozen
class Text:
    """A text, plain and comparable, with its sentences, and with all its words as stems.

    `lead` is its leading yes or no; `unknown` says that it tells that something is not known.
    """

    plain: str
    sentences: tuple[Sentence, ...]
    comparable: str
    words: frozenset[str]
    lead: str
    unknown: bool

    @classmethod
    def read(cls, text: str) -> Text:
        lead = _LEAD.match(text)
        return cls(
            text,
            tuple(_sentence(each) for each in sentences(unfenced(text)) if re.search(r"\w", each)),
            comparable(_DIGITS.sub(lambda word: str(NUMBER_WORDS[word[0].lower()]), text)),
            frozenset(stems(text)),
            lead[1].lower() if lead else "",
            bool(_UNKNOWN.search(text)),
        )

    @cached_property
    def facts(self) -> list[Fact]:
        """Every fact once, in order."""
        return list({fact.key: fact for each in self.sentences for fact in each.facts}.values())

    @cached_property
    def other_words(self) -> frozenset[str]:
        """The stems of what is no fact."""
        return frozenset().union(*(each.words for each in self.sentences))

    def has(self, fact: Fact) -> bool:
        """Tell whether the text has a fact, be it rounded."""
        return fact.key in self.comparable or (
            fact.kind == "number" and any(_rounded(fact, each) for each in self.facts if each.kind == "number")
        )


def _sentence(text: str) -> Sentence:
    facts = [*facts_in(text)]
    lead = _LEAD.match(text)
    rest, whole = [*text], [*text]
    # What was read stays together, be there an "and" in it; "--no-cache" denies nothing.
    spans = [(each.start, each.start + len(each.said)) for each in facts]
    for start, stop in [*spans, *map(re.Match.span, _CODE.finditer(text)), (0, lead.end() if lead else 0)]:
        rest[start:stop], whole[start:stop] = " " * (stop - start), "x" * (stop - start)
    plain = "".join(rest)
    ends = [*(match.end() for match in _CUTS.finditer("".join(whole))), len(text)]
    places = [fact.start for fact in facts]
    clauses = []
    for start, stop in zip([0, *ends], ends, strict=False):
        said = plain[start:stop]
        negation = _NEGATION.search(said)
        clauses.append(
            Clause(
                text[start:stop].strip(),
                tuple(facts[bisect_left(places, start) : bisect_left(places, stop)]),
                frozenset(stems(_NEGATION.sub(" ", said))),
                negation is not None,
                bool(_CONDITION.search(said) or (negation and _LIMIT.search(said, negation.end()))),
            )
        )
    return Sentence(text, tuple(clauses))


def _amount(fact: Fact) -> tuple[float, float, str]:
    """Return the value of a number, how exact it is, and its unit; no value (NaN) for what is no plain number."""
    number = _NUMBER.fullmatch(fact.key.replace("\0", "").strip())
    if number is None:
        return nan, 0.0, ""
    unit, size = _UNITS.get(number[3], (number[3] or "", 1))
    return float(number[1]) * size, size * 10.0 ** -len(number[2] or ""), unit


def _rounded(one: Fact, other: Fact) -> bool:
    """Tell whether two numbers are equal but for rounding."""
    (value, step, unit), (second, other_step, other_unit) = _amount(one), _amount(other)
    slack = 0.5 * max(step, other_step) if step != other_step else 0.0
    return unit == other_unit and abs(value - second) <= min(slack, _ROUNDED * abs(second))


def share(stated: Collection[str], said: Collection[str]) -> float:
    """Return the share of golden words that are among those of the response."""
    return sum(shares_stem(word, said) for word in stated) / len(stated) if stated else 1.0
