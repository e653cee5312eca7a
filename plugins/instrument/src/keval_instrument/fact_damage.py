"""Facts of an answer left out of it, and wrong ones added to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from random import Random

import attrs

from keval_instrument import name_damage, number_damage
from keval_instrument.answer_parts import Part, clauses, is_data, is_function_word, marker_of, statements, without
from keval_instrument.name_damage import Vocabulary
from keval_instrument.negation import negated

_MIDDLE = re.compile(r",( [^,;:.()\n]{2,40}?)(?=,| (?:and|or|und|oder|et|ou|y|o) )")
_NO_FACT = re.compile(
    r"\b(?:happy to|hope (?:this|that|it)|let me know|feel free|good question|great question|thank|welcome|hello|sorry)\b",
    re.IGNORECASE,
)
_FEWEST_WORDS = 3
"""Words of a statement that can be told to be wrong by itself."""


def left_out(text: str, rng: Random, known: str, vocabulary: Vocabulary, half: bool) -> tuple[str, list[str]] | None:
    """Return a text without one fact, or without half of them, and what was left out; `None` if that cannot be done.

    A fact is a statement, or else a clause or a member of a row, that says something which neither the rest nor the
    question says, whose text is `known`. One with a number or a name is preferred. Half takes three at least.
    """
    if is_data(text):
        return None
    for parts in _divisions(text):
        telling = [part for part in parts if _tells(text, part, known)]
        if half and len(telling) >= 3:
            leaving = rng.sample(telling, (len(telling) + 1) // 2)
        elif half or not telling:
            continue
        else:
            hard = [
                part for part in telling if number_damage.numbers(part.of(text)) or vocabulary.names_of(part.of(text))
            ]
            leaving = [rng.choice(hard or telling)]
        rest = without(text, leaving)
        if len(re.findall(r"\w+", rest)) >= 1 and rest != text.strip():
            return rest, [
                f"without: {part.of(text).strip(' ,;')}" for part in sorted(leaving, key=lambda part: part.start)
            ]
    return None


def _divisions(text: str) -> Iterator[Sequence[Part]]:
    """Yield ways to divide a text into facts: several statements, else clauses after the first, else a row's members."""
    stated = statements(text)
    if len(stated) > 1:
        yield stated
    yield [clause for part in stated for clause in clauses(text, part)[1:]]
    yield [
        Part(part.start + found.start(), part.start + found.end(), part.line)
        for part in stated
        for found in _MIDDLE.finditer(part.of(text))
    ]


def _tells(text: str, part: Part, known: str) -> bool:
    """Return whether a part says something, and something that neither the rest of the text nor the question has."""
    said = part.of(text)
    if said.rstrip(" \"'*_)").endswith("?") or _NO_FACT.search(said):
        return False
    elsewhere = {word.lower() for word in re.findall(r"\w+", f"{text[: part.start]} {text[part.end :]} {known}")}
    new = [word for word in re.findall(r"\w+", said) if word.lower() not in elsewhere and not is_function_word(word)]
    return len(new) >= 2 or any(re.search(r"\d", word) for word in new)


@attrs.frozen
class _Wrong:
    text: str
    note: str


def added(
    text: str, rng: Random, known: str, vocabulary: Vocabulary, others: Sequence[str], count: int
) -> tuple[str, list[str]] | None:
    """Return a text with so many wrong facts added, and these; `None` if that cannot be done.

    A wrong fact is a statement of the answer with a number, a name or a claim changed, beside the right one, or one of
    `others`, the golden answers to other questions, with a number or a name changed.
    """
    if is_data(text) or not (stated := statements(text)):
        return None
    own = [wrong for part in stated for wrong in _wrong(part.of(text), rng, known, vocabulary, claims=True)]
    own = rng.sample(own, len(own))
    found: dict[str, str] = {}
    foreign = (
        wrong
        for other in rng.sample(others, min(len(others), 20))
        for part in statements(other)[:1]
        for wrong in _wrong(part.of(other), rng, other, vocabulary, claims=False)[:1]
    )
    for each in chain(own[: 1 if count == 1 else 2], foreign, own[2:]):
        if each.text not in found and each.text.lower() not in text.lower():
            found[each.text] = each.note
        if len(found) == count:
            break
    if len(found) < count:
        return None
    last = stated[-1]
    marker = marker_of(text, last)
    if number := re.search(r"\d+", marker):
        markers = [marker.replace(number[0], str(int(number[0]) + turn)) for turn in range(1, count + 1)]
    else:
        markers = [marker] * count
    is_prose = not marker and text.rstrip().endswith(last.of(text)) and not last.of(text).startswith("|")
    joined = (
        " ".join(found) if is_prose else "\n".join(f"{mark}{each}" for mark, each in zip(markers, found, strict=True))
    )
    stop = (
        ""
        if not is_prose or text.rstrip()[-1] in ".!?:;…。！？)\"'”*_`|" or not re.search(r"\w", text.rstrip()[-1])
        else "."
    )
    return f"{text.rstrip()}{stop}{' ' if is_prose else chr(10) if marker else chr(10) * 2}{joined}", [*found.values()]


def _wrong(said: str, rng: Random, known: str, vocabulary: Vocabulary, *, claims: bool) -> list[_Wrong]:
    """Return a statement made wrong in each way that it can be."""
    if len(said.split()) < _FEWEST_WORDS or said.startswith("|") or said.rstrip().endswith("?"):
        return []
    ways = [number_damage.damaged(said, rng, known, False), name_damage.damaged(said, rng, known, vocabulary, False)]
    found = [way for way in ways if way is not None]
    texts = [text for text, _ in found]
    if claims and (opposite := negated(said, rng)) is not None:
        texts.append(opposite[0])
    return [_Wrong(_sentence(text), f"added: {_sentence(text)}") for text in texts]


def _sentence(text: str) -> str:
    """Return a statement as a sentence: without what a list begins with, and with a full stop."""
    text = text.strip()
    return text if text[-1] in ".!?…。！？" or not re.search(r"[\w`)]$", text) else f"{text}."
