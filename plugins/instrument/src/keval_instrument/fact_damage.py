"""Facts of an answer left out of it, and wrong ones added to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from random import Random

import attrs

from keval_instrument import name_damage, number_damage
from keval_instrument.answer_parts import (
    Part,
    clauses,
    is_data,
    is_english,
    is_function_word,
    marker_of,
    statements,
    without,
)
from keval_instrument.name_damage import Known
from keval_instrument.negation import negated

_MIDDLE = re.compile(r",( [^,;:.()\n]{2,40}?)(?=,| (?:and|or|und|oder|et|ou|y|o) )")
_NO_FACT = re.compile(
    r"\b(?:happy to|hope (?:this|that|it)|let me know|feel free|(?:good|great) question|thank|welcome|hello|sorry)\b",
    re.IGNORECASE,
)
_FEWEST_WORDS = 3
"""Words of a statement that can be told to be wrong by itself."""


def left_out(text: str, known: Known, rng: Random, *, half: bool) -> tuple[str, list[str]] | None:
    """Return a text without one fact, or without half of them, and what was left out; `None` if that cannot be done.

    A fact is a statement, or else a clause or a member of a row, that says something which neither the rest nor the
    question says. One with a number or a name is preferred. Half takes three at least.
    """
    if is_data(text):
        return None
    for parts in _divisions(text):
        telling = [part for part in parts if _tells(text, part, known.question)]
        if half and len(telling) >= 3:
            leaving = rng.sample(telling, (len(telling) + 1) // 2)
        elif half or not telling:
            continue
        else:
            said = [(part, part.of(text)) for part in telling]
            hard = [part for part, each in said if number_damage.numbers(each) or known.vocabulary.names_of(each)]
            leaving = [rng.choice(hard or telling)]
        rest = without(text, leaving)
        if len(re.findall(r"\w+", rest)) >= 1 and rest != text.strip():
            notes = [f"without: {part.of(text).strip(' ,;')}" for part in sorted(leaving, key=lambda part: part.start)]
            return rest, notes
    return None


def _divisions(text: str) -> Iterator[Sequence[Part]]:
    """Yield ways to divide a text into facts: statements, clauses after the first one, and members of a row."""
    stated = statements(text)
    if len(stated) > 1:
        yield stated
    yield [clause for part in stated for clause in clauses(text, part)[1:]]
    yield [
        Part(part.start + found.start(), part.start + found.end(), part.line)
        for part in stated
        for found in _MIDDLE.finditer(part.of(text))
    ]


def _tells(text: str, part: Part, question: str) -> bool:
    """Return whether a part says something, and something that neither the rest of the text nor the question has."""
    said = part.of(text)
    if said.rstrip(" \"'*_)").endswith("?") or _NO_FACT.search(said):
        return False
    elsewhere = {word.lower() for word in re.findall(r"\w+", f"{text[: part.start]} {text[part.end :]} {question}")}
    new = [word for word in re.findall(r"\w+", said) if word.lower() not in elsewhere and not is_function_word(word)]
    return len(new) >= 2 or any(re.search(r"\d", word) for word in new)


def added(text: str, known: Known, rng: Random, *, count: int) -> tuple[str, list[str]] | None:
    """Return a text with so many wrong facts added, and these; `None` if that cannot be done.

    A wrong fact is a statement of the answer with a number, a name or the claim changed, beside the right one, or one
    of the golden answer to another question with a number or a name changed.
    """
    stated = statements(text)
    if is_data(text) or not stated:
        return None
    own = [wrong for part in stated for wrong in _wrong(part.of(text), known, rng, claims=True)]
    own = rng.sample(own, len(own))
    foreign = (
        wrong
        for other in rng.sample(known.others, len(known.others))
        if not is_data(other) and is_english(other) == is_english(text)
        for part in statements(other)[:1]
        for wrong in _wrong(part.of(other), attrs.evolve(known, question=other), rng, claims=False)[:1]
    )
    found: list[str] = []
    for fact in chain(own[: (count + 1) // 2], foreign, own[(count + 1) // 2 :]):
        if fact not in found and fact.lower() not in text.lower():
            found.append(fact)
        if len(found) == count:
            break
    if len(found) < count:
        return None
    return _appended(text, stated[-1], found), [f"added: {each}" for each in found]


def _wrong(said: str, known: Known, rng: Random, *, claims: bool) -> list[str]:
    """Return a statement made wrong in each way that it can be."""
    if len(said.split()) < _FEWEST_WORDS or said.startswith("|") or said.rstrip().endswith("?"):
        return []
    ways = [
        number_damage.damaged(said, known.question, rng, every=False),
        name_damage.damaged(said, known, rng, every=False),
        negated(said, rng) if claims else None,
    ]
    return [_sentence(way[0]) for way in ways if way is not None]


def _appended(text: str, last: Part, facts: Sequence[str]) -> str:
    """Return a text with facts after its last statement: as further items of a list, sentences, or a paragraph."""
    text, marker = text.rstrip(), marker_of(text, last)
    if marker:
        number = re.search(r"\d+", marker)
        first = int(number[0]) + 1 if number else 0
        items = (re.sub(r"\d+", str(first + turn), marker) + each for turn, each in enumerate(facts))
        return "\n".join([text, *items])
    if text.endswith(last.of(text)) and not last.of(text).startswith("|"):
        return " ".join([_sentence(text), *facts])
    return f"{text}\n\n{' '.join(facts)}"


def _sentence(text: str) -> str:
    """Return a statement as a sentence: without what a list begins with, and with a full stop."""
    text = text.strip()
    return text if text[-1] in ".!?…。！？" or not re.search(r"[\w`)]$", text) else f"{text}."
