"""Comparison: which facts of one text are in another, and what the other adds."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

import attrs

from keval_simulator.judge.amounts import same_amount, same_unit
from keval_simulator.judge.facts import Clause, Fact, Statement, statements
from keval_simulator.words import shares_stem, stem

__all__ = ["ALIKE", "SAYINGS", "Text", "added", "agrees", "covers", "known", "name_words", "share"]

SAYINGS = ("absence", "answer")
"""Kinds of facts that no other fact can replace: that something is not known, and a leading yes or no."""
ALIKE = 0.6
"""The share of a golden statement's words from which on a statement of the response is about the same."""


@attrs.frozen
class Text:
    """A text with its statements, and all its words as stems."""

    plain: str
    statements: tuple[Statement, ...]
    words: frozenset[str]

    @classmethod
    def read(cls, text: str) -> Text:
        # Exact words are looked for in what is left without marks of code and emphasis.
        plain = " ".join(re.sub(r"[`*]|(?<=\s)_|_(?=\s)", " ", text).lower().split())
        words = frozenset(stem(word) for word in re.findall(r"[^\W_]+", plain))
        return cls(plain, statements(text), words)

    @cached_property
    def facts(self) -> list[Fact]:
        """Every fact once, in order."""
        return list({(fact.kind, fact.key): fact for each in self.statements for fact in each.facts}.values())


def covers(text: Text, fact: Fact, others: Sequence[Fact]) -> bool:
    """Tell whether a text has a fact; `others` are all facts of the text that the fact is from."""
    match fact.kind:
        case "number":
            return _has_amount(text, fact, others)
        case "date":
            return any(_says_date(each.key, fact.key) for each in text.facts if each.kind == "date")
        case "time":
            return any(each.kind == "time" and each.key == fact.key for each in text.facts)
        case "name":
            parts = name_words(fact.key)
            return 2 * len(parts & text.words) >= len(parts)
        case "absence" | "answer":
            return any((each.kind, each.key) == (fact.kind, fact.key) for each in text.facts)
        case "command":
            # "fetch latest" is in "Run `fetch SNAPSHOT`, with latest for the newest".
            head, rest = " ".join(fact.key.split()[:2]), fact.key.split()[2:]
            return _has(text, head) and all(_has(text, word) for word in rest)
        case _:
            return _has(text, fact.key.lower())


def agrees(golden: Text, response: Text) -> bool:
    """Tell whether a response says what a golden "yes" or "no" says, without that word."""
    stated = next((each for each in golden.statements if any(fact.kind == "answer" for fact in each.facts)), None)
    return stated is not None and any(
        bool(clause.words) and share(clause.words, each.words) >= ALIKE and _denied(clause, each) == clause.negative
        for clause in stated.clauses
        for each in response.statements
    )


def _denied(clause: Clause, said: Statement) -> bool:
    """Tell whether the clause of a statement that shares most words with a golden one is negative."""
    return max(said.clauses, key=lambda each: share(clause.words, each.words)).negative


def _has(text: Text, written: str) -> bool:
    return bool(re.search(rf"(?<![\w-]){re.escape(written)}(?![\w-])", text.plain))


def added(response: Text, given: Iterable[Text]) -> list[tuple[Statement, list[Fact]]]:
    """Return the statements of a response with the numbers and names that none of the given texts has."""
    texts = list(given)
    found = []
    for each in response.statements:
        new = [
            fact
            for fact in each.facts
            if fact.kind not in SAYINGS and not fact.initial and not any(known(text, fact) for text in texts)
        ]
        if new:
            found.append((each, new))
    return found


def known(text: Text, fact: Fact) -> bool:
    """Tell whether a text has a fact or a more detailed one; equal amounts in different units are not the same."""
    if fact.kind == "date":
        # "July 1969" is known from the 20th of that month.
        return any(
            _says_date(fact.key, each.key) or each.key.startswith(fact.key)
            for each in text.facts
            if each.kind == "date"
        )
    if fact.kind != "number":
        return covers(text, fact, ())
    amount = fact.amount
    same = (each.amount for each in text.facts if each.amount is not None)
    return amount is not None and any(
        same_amount(amount, each) and (same_unit(amount, each) or not (amount.measured and each.measured))
        for each in same
    )


def _has_amount(text: Text, fact: Fact, others: Sequence[Fact]) -> bool:
    """Look for an equal amount of the same unit, else for the number with a word that means nothing to the others."""
    wanted = fact.amount
    amounts = [each.amount for each in text.facts if each.amount is not None]
    counted = [each.amount for each in others if each.amount is not None and each is not fact]
    return wanted is not None and any(
        same_amount(wanted, each)
        and (
            same_unit(each, wanted)
            or (not (each.measured and wanted.measured) and not any(same_unit(each, other) for other in counted))
        )
        for each in amounts
    )


def _says_date(one: str, other: str) -> bool:
    """Tell whether a date is the other, as exactly but for the year, which may be left out in either."""
    year, _, day = one.partition("-")
    other_year, _, other_day = other.partition("-")
    return day == other_day and (year == other_year or not (year and other_year))


def name_words(key: str) -> set[str]:
    """Return the words that a name is known by, as stems."""
    return {stem(word) for word in re.findall(r"[^\W_]+", key) if len(word) > 1} or {key}


def share(stated: Collection[str], said: Collection[str]) -> float:
    """Return the share of golden words that are among those of the response."""
    return sum(shares_stem(word, said) for word in stated) / len(stated) if stated else 1.0
