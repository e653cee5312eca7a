"""Contradictions: where a response says something else than the golden answer, in its place."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from keval_gateway.simulate.amounts import same_amount
from keval_gateway.simulate.comparing import ALIKE, SAYINGS, Text, covers, known, name_words, share
from keval_gateway.simulate.facts import Fact, Statement
from keval_gateway.simulate.words import shares_stem

__all__ = ["Contradiction", "contradictions"]

_ACTS = ("flag", "command")
"""Kinds of facts that are done as they are written; a wrong one does harm."""
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
        for rival in _rivals(fact, stated, golden, response, question):
            if there and not _restates(rival, stated, response, question):
                continue
            if (rival.kind, rival.key) not in used:
                used.add((rival.kind, rival.key))
                found.append(Contradiction(fact.said, rival.said, fact.kind in _ACTS, there))
                break
    return [*found, *_forbidden(golden, response), *_denials(golden, response)]


def _rivals(fact: Fact, stated: Statement, golden: Text, response: Text, question: Text) -> Iterator[Fact]:
    """Yield what stands in the place of a golden fact and is known from nowhere."""
    for each in response.statements:
        for other in each.facts:
            if other.kind != fact.kind or known(question, other) or _golden(other, golden):
                continue
            if _same_place(fact, stated, other, each, question):
                yield other


def _restates(rival: Fact, stated: Statement, response: Text, question: Text) -> bool:
    """Tell whether a number stands in a statement that says nothing but what the golden one does."""
    words = next(each.words for each in response.statements if rival in each.facts)
    return rival.kind == "number" and words <= stated.words | question.words


def _golden(other: Fact, golden: Text) -> bool:
    """Tell whether a fact of the response is one of the golden answer, about the same thing."""
    if other.amount is None:
        return known(golden, other)
    return any(
        each.amount.unit == other.amount.unit and same_amount(each.amount, other.amount)
        for each in golden.facts
        if each.amount is not None
    )


def _same_place(fact: Fact, stated: Statement, other: Fact, said: Statement, question: Text) -> bool:
    if fact.amount is not None and other.amount is not None:
        if fact.amount.unit != other.amount.unit or not fact.amount.unit:
            return False
        about, said_of = _context(stated), _context(said)
        about |= question.words if len(about) < 2 else frozenset()
        return not fact.amount.measured or not stated.words or bool(about & said_of)
    if fact.kind in ("command", "flag"):
        same_program = fact.kind == "flag" or fact.key.split()[0] == other.key.split()[0]
        return same_program and share(stated, said) >= (ALIKE if fact.kind == "command" else 0.3)
    if fact.kind == "identifier" and _is_path(fact) != _is_path(other):
        return False
    if other.initial and fact.initial:
        return fact.after == other.after != ()
    beside = fact.before == other.before and len(fact.before) == 2
    return (
        beside
        or (len(fact.after) == 2 and fact.after == other.after)
        or (bool(stated.words) and share(stated, said) >= ALIKE)
    )


def _is_path(fact: Fact) -> bool:
    return "/" in fact.key or "." in fact.key


def _context(statement: Statement) -> frozenset[str]:
    """Return a statement's words and those of the names in it."""
    return statement.words.union(*(name_words(fact.key) for fact in statement.facts if fact.kind == "name"))


def _denials(golden: Text, response: Text) -> list[Contradiction]:
    """Find golden statements whose nearest statement in the response says the opposite."""
    found = []
    said, instead = (next((fact for fact in text.facts if fact.kind == "answer"), None) for text in (golden, response))
    if said and instead and said.key != instead.key:
        found.append(Contradiction(said.said, instead.said))
    for stated in golden.statements:
        alike = [each for each in response.statements if len(stated.words) >= 2 and _about(stated, each)]
        if alike and all(each.negative != stated.negative for each in alike):
            found.append(Contradiction(_short(stated.text), _short(alike[0].text)))
    return found[:1]


def _forbidden(golden: Text, response: Text) -> Iterator[Contradiction]:
    """Yield the commands and flags that the golden answer warns of and the response tells to use."""
    for stated in golden.statements:
        acts = {(fact.kind, fact.key) for fact in stated.facts if fact.kind in _ACTS}
        if acts and _FORBIDS.search(stated.text):
            for each in response.statements:
                if not each.negative and acts <= {(fact.kind, fact.key) for fact in each.facts}:
                    yield Contradiction(_short(stated.text), _short(each.text), harmful=True)


def _about(stated: Statement, said: Statement) -> bool:
    back = sum(shares_stem(word, stated.words) for word in said.words) / max(len(said.words), 1)
    return share(stated, said) >= ALIKE and back >= 0.5


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57].rstrip()}…"
