"""Comparison: what a response contradicts of the golden answer: another value in its place, or its denial."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from keval_metrics_basic import Fact
from keval_simulator.judge.facts import Clause, Sentence, Text, share
from keval_simulator.words import shares_stem

ALIKE = 0.6
"""The share of golden words from which on a sentence or clause of the response is about the same."""


@attrs.frozen
class Contradiction:
    """What the golden answer says and what the response has in its place.

    `harmful` is a wrong command or flag, or one that is warned of; `also` says that the response has the right one too;
    `denial` is the opposite of what the golden answer says.
    """

    golden: str
    response: str
    harmful: bool = False
    also: bool = False
    denial: bool = False


def contradictions(golden: Text, response: Text, question: Text) -> list[Contradiction]:
    """Find where a response has another value, name or command in the place of what is golden, or denies that."""
    new = [
        (fact, clause, each)
        for each in response.sentences
        for clause in each.clauses
        for fact in clause.facts
        if not golden.has(fact) and not question.has(fact)
    ]
    stated = [
        (response.has(fact), fact, clause, each)
        for each in golden.sentences
        for clause in each.clauses
        for fact in clause.facts
        if not question.has(fact)
    ]
    found: dict[str, Contradiction] = {}
    # A rival stands in the place of what is missing, before it stands beside what is there.
    for there, fact, clause, each in sorted(stated, key=lambda one: one[0]):
        for rival, said, other in new:
            if (
                rival.kind == fact.kind
                and rival.key not in found
                # "Port 7411, not 8080" has nothing in the place of 7411.
                and (said.negative == clause.negative or said.hedged)
                and _same_place(fact, each, rival, other, question, there=there)
            ):
                found[rival.key] = Contradiction(fact.said, rival.said, _acts(fact), there)
                break
    return [*found.values(), *_denials(golden, response, question)]


def _acts(fact: Fact) -> bool:
    """Tell whether users carry a fact out as it is written, so that a wrong one does harm."""
    return fact.kind in ("code", "flag")


def _same_place(fact: Fact, stated: Sentence, rival: Fact, said: Sentence, question: Text, *, there: bool) -> bool:
    counted = stated.counted(fact)
    same = counted != "" and counted == said.counted(rival)
    if there:
        # Only a sentence that says nothing but what the golden one does says it twice.
        return fact.kind == "number" and same and said.words <= stated.words | question.words
    if fact.kind == "number":
        about = stated.items.union(question.words, (each.key for each in question.facts))
        return same and not (stated.words and about.isdisjoint(said.items))
    return bool(stated.words) and share(stated.words, said.words) >= ALIKE


def _denials(golden: Text, response: Text, question: Text) -> list[Contradiction]:
    """Find another answer than yes or no, and golden clauses of which every clause about the same says the opposite."""
    found = []
    if golden.lead and response.lead and golden.lead != response.lead:
        found.append(Contradiction(golden.lead, response.lead, denial=True))
    for stated in _plain(golden):
        alike = [each for each in _plain(response) if _about(stated, each, question)]
        if alike and all(each.negative != stated.negative for each in alike):
            harmful = stated.negative and any(map(_acts, stated.facts))
            found.append(Contradiction(short(stated.text, 60), short(alike[0].text, 60), harmful, denial=True))
    return found[:1]


def agrees(golden: Text, response: Text) -> bool:
    """Tell whether a response says the golden yes or no, or without that word what is said with it."""
    return golden.lead == response.lead or any(
        bool(clause.words)
        and share(clause.words, each.words) >= ALIKE
        and max(each.clauses, key=lambda said: share(clause.words, said.words)).negative == clause.negative
        for clause in golden.sentences[0].clauses
        for each in response.sentences
    )


def _plain(text: Text) -> Iterator[Clause]:
    """Yield the clauses that plainly say or deny something."""
    yield from (clause for each in text.sentences for clause in each.clauses if not clause.hedged)


def _about(stated: Clause, said: Clause, question: Text) -> bool:
    """Tell whether a clause is about what a golden one is: it says the same and little more, or a part and no more."""
    keys, others = ({fact.key for fact in clause.facts} for clause in (stated, said))
    whole = len(stated.words) + len(keys)
    had = len(keys & others) + sum(shares_stem(word, said.words) for word in stated.words)
    more = sum(not shares_stem(word, stated.words | question.words) for word in said.words)
    more += sum(fact.key not in keys and not question.has(fact) for fact in said.facts)
    if had == whole:
        return whole > 0 and more <= whole // 2
    telling = any(fact.key in others and not _acts(fact) and not question.has(fact) for fact in stated.facts)
    return not more and (telling or had >= ALIKE * whole)


def short(text: str, longest: int = 120) -> str:
    """Return a text cut to a length."""
    return text if len(text) <= longest else f"{text[: longest - 3].rstrip()}…"
