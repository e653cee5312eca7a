"""Contradictions: where a response has another value, name or command than the golden answer, or denies it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from keval_simulator.judge.amounts import same_amount, same_unit
from keval_simulator.judge.comparison import ALIKE, SAYINGS, Text, covers, known, name_words, share
from keval_simulator.judge.facts import Clause, Fact, Statement
from keval_simulator.words import shares_stem

__all__ = ["Contradiction", "contradictions"]

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
