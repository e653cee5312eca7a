"""Comparison: which facts of one text are in another, what the other adds, and what it contradicts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property

import attrs

from keval_simulator.judge.amounts import same_amount, same_unit
from keval_simulator.judge.facts import Clause, Fact, Statement, statements
from keval_simulator.words import shares_stem, stem

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


_ACTS = ("flag", "command")
"""Kinds of facts that users carry out as they are written, so that a wrong one does harm."""
_FORBIDS = re.compile(r"\b(?:never|do not|don['’]t|must not|avoid)\b", re.IGNORECASE)


@attrs.frozen
class Contradiction:
    """What the golden answer says and what the response has in its place.

    `harmful` is a wrong command or flag, or one that is warned of; `also` says that the response has the right one too.
    """

    golden: str
    response: str
    harmful: bool = False
    also: bool = False


def contradictions(golden: Text, response: Text, question: Text) -> list[Contradiction]:
    """Find where a response has another value, name, command or a denial in the place of what is golden."""
    found: list[Contradiction] = []
    used: set[tuple[str, str]] = set()
    facts = [
        (covers(response, fact, golden.facts), fact, stated) for stated in golden.statements for fact in stated.facts
    ]
    # A rival stands in the place of what is missing, before it stands beside what is there.
    for there, fact, stated in sorted(facts, key=lambda each: each[0]):
        if fact.kind in SAYINGS or known(question, fact):
            continue
        for rival, said in _rivals(fact, stated, golden, response, question):
            if there and not _restates(rival, fact, said.words, stated.words | question.words):
                continue
            if (rival.kind, rival.key) not in used:
                used.add((rival.kind, rival.key))
                found.append(Contradiction(fact.said, rival.said, fact.kind in _ACTS, there))
                break
    return [*found, *_forbidden(golden, response), *_denials(golden, response, question)]


def _rivals(
    fact: Fact, stated: Statement, golden: Text, response: Text, question: Text
) -> Iterator[tuple[Fact, Statement]]:
    """Yield the facts that stand in the place of a golden one and are in no other text, each with its statement."""
    negative = any(clause.negative for clause in stated.clauses if fact in clause.facts)
    for each in response.statements:
        for clause in each.clauses:
            if clause.negative != negative and not clause.hedged:
                # "Port 7411, not 8080" has nothing in the place of 7411.
                continue
            for other in clause.facts:
                if other.kind != fact.kind or known(question, other) or _golden(other, golden):
                    continue
                if _same_place(fact, stated, other, each, question):
                    yield other, each


def _restates(rival: Fact, fact: Fact, words: frozenset[str], given: frozenset[str]) -> bool:
    """Tell whether a number counts what the golden one does, in a statement that says nothing but what that does."""
    one, other = rival.amount, fact.amount
    same = one and other and (one.unit, one.per, one.each) == (other.unit, other.per, other.each)
    return bool(same) and words <= given


def _golden(other: Fact, golden: Text) -> bool:
    """Tell whether a fact of the response is one of the golden answer, about the same thing."""
    if other.amount is None:
        return known(golden, other)
    return any(
        same_unit(each.amount, other.amount) and same_amount(each.amount, other.amount)
        for each in golden.facts
        if each.amount is not None
    )


def _same_place(fact: Fact, stated: Statement, other: Fact, said: Statement, question: Text) -> bool:
    if fact.amount is not None and other.amount is not None:
        if not same_unit(fact.amount, other.amount) or not fact.amount.unit:
            return False
        about, said_of = _words(stated), _words(said)
        about |= question.words if len(about) < 2 else frozenset()
        return not fact.amount.measured or not stated.words or bool(about & said_of)
    if fact.kind in ("command", "flag"):
        same_program = fact.kind == "flag" or fact.key.split()[0] == other.key.split()[0]
        return same_program and share(stated.words, said.words) >= (ALIKE if fact.kind == "command" else 0.3)
    if fact.kind == "identifier" and _is_path(fact) != _is_path(other):
        return False
    if other.initial and fact.initial:
        return fact.after == other.after != ()
    beside = fact.before == other.before and len(fact.before) == 2
    return (
        beside
        or (len(fact.after) == 2 and fact.after == other.after)
        or (bool(stated.words) and share(stated.words, said.words) >= ALIKE)
    )


def _is_path(fact: Fact) -> bool:
    return "/" in fact.key or "." in fact.key


def _denials(golden: Text, response: Text, question: Text) -> list[Contradiction]:
    """Find another answer than yes or no, and golden clauses of which every clause about the same says the opposite."""
    found = []
    said, instead = (next((fact for fact in text.facts if fact.kind == "answer"), None) for text in (golden, response))
    if said and instead and said.key != instead.key:
        found.append(Contradiction(said.said, instead.said))
    for stated, clause in _plain(golden):
        alike = [
            other
            for each, other in _plain(response)
            # With another command or flag the opposite may be true: "use `--force` to overwrite them".
            if _acts(each) <= _acts(stated) and _about(clause, other, question)
        ]
        if alike and all(other.negative != clause.negative for other in alike):
            found.append(Contradiction(_short(clause.text), _short(alike[0].text)))
    return found[:1]


def _plain(text: Text) -> Iterator[tuple[Statement, Clause]]:
    """Yield the clauses that plainly say or deny something; that something is not known is neither."""
    for each in text.statements:
        if not any(fact.kind == "absence" for fact in each.facts):
            yield from ((each, clause) for clause in each.clauses if not clause.hedged)


def _forbidden(golden: Text, response: Text) -> Iterator[Contradiction]:
    """Yield the commands and flags that the golden answer warns of and the response tells to use."""
    said = [clause for each in response.statements for clause in each.clauses if not clause.negative]
    for stated in (clause for each in golden.statements for clause in each.clauses):
        acts = _acts(stated)
        if acts and _FORBIDS.search(stated.text):
            for each in said:
                if acts <= _acts(each):
                    yield Contradiction(_short(stated.text), _short(each.text), harmful=True)


def _acts(said: Clause | Statement) -> set[tuple[str, str]]:
    return {(fact.kind, fact.key) for fact in said.facts if fact.kind in _ACTS}


def _about(stated: Clause, said: Clause, question: Text) -> bool:
    """Tell whether a clause is about what a golden one is: it says the same and little more, or a part and no more.

    If each has what the other has not, they may be about two things: hashes are stored, and passwords are not.
    """
    facts, others = ([fact for fact in clause.facts if fact.kind != "name"] for clause in (stated, said))
    golden, words = _words(stated), _words(said)
    held = [fact for fact in facts if any(_equal(fact, other) for other in others)]
    had, whole = len(held) + sum(shares_stem(word, words) for word in golden), len(facts) + len(golden)
    more = sum(not shares_stem(word, golden | question.words) for word in words)
    more += sum(not known(question, other) and not any(_equal(fact, other) for fact in facts) for other in others)
    if had == whole:
        return whole > 0 and more <= whole // 2
    telling = any(fact.kind not in _ACTS and not known(question, fact) for fact in held)
    return not more and (telling or had >= ALIKE * whole)


def _words(said: Clause | Statement) -> frozenset[str]:
    """Return the words of a statement or clause and those of the names in it."""
    return said.words.union(*(name_words(fact.key) for fact in said.facts if fact.kind == "name"))


def _equal(one: Fact, other: Fact) -> bool:
    if one.amount is not None and other.amount is not None:
        return same_amount(one.amount, other.amount) and (same_unit(one.amount, other.amount) or not other.amount.unit)
    return (one.kind, one.key) == (other.kind, other.key)


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57].rstrip()}…"
