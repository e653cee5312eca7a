"""Golden answers damaged in known ways, and others that say the same: what scorers must tell apart.

Numbers, names and claims are changed elsewhere; here facts are left out, and wrong ones added.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from random import Random

import attrs

from keval import Sample
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
from keval_instrument.check_folder import WrittenAnswer
from keval_instrument.name_damage import Known, Vocabulary
from keval_instrument.negation import negated
from keval_instrument.rewording import keeps_facts, padded, reworded

GOLDEN = "golden"
"""The condition of golden answers as they are."""


@attrs.frozen
class Damage:
    """A way of making an answer of a golden one: its kind, and its level if the kind has some.

    A `harmful` one has to be scored worse than the golden answer; one that is not says the same.
    """

    kind: str
    level: str = ""
    harmful: bool = True

    @property
    def condition(self) -> str:
        """The name of the condition under which the answers are scored."""
        return f"{self.kind}-{self.level}" if self.level else self.kind


DAMAGES = (
    Damage("empty"),
    Damage("other"),
    *(Damage(kind, level) for kind in ("number", "name") for level in ("1", "all")),
    Damage("negation"),
    *(Damage("left_out", level) for level in ("1", "half")),
    *(Damage("added", level) for level in ("1", "3")),
    Damage("padded", harmful=False),
    Damage("reworded", harmful=False),
)
CONDITIONS: Mapping[str, Damage] = {damage.condition: damage for damage in DAMAGES}

_OTHERS = 40
"""Other golden answers that wrong facts are looked for in."""
_ALIKE = 0.5
"""The share of their words that two golden answers both have, from which on one may pass for the other."""


def written_answers(samples: Sequence[Sample], *, seed: int) -> Iterator[WrittenAnswer]:
    """Yield the golden answer of each sample that has one, then what rules make of it.

    A way that a golden answer does not allow is left out: one without a number has no `number`. The answers are the
    same for the same samples and seed.
    """
    vocabulary = Vocabulary.of(samples)
    goldens = [sample for sample in samples if sample.answer and sample.answer.strip()]
    for sample in goldens:
        text = sample.answer or ""
        yield WrittenAnswer(sample.id, GOLDEN, text)
        # A text as a seed gives the same numbers in every process. With the id in it, what is drawn for an answer does
        # not depend on how many were made before.
        drawn = Random(f"{seed}\0{sample.id}").sample(goldens, min(len(goldens), _OTHERS))
        others = [other.answer or "" for other in drawn if not _alike(sample, other)]
        known = Known("\n".join(sample.asked), vocabulary, others)
        for damage in DAMAGES:
            made = _made(damage, text, known, Random(f"{seed}\0{sample.id}\0{damage.condition}"))
            if made is not None and is_valid(damage, text, made[0], vocabulary):
                yield WrittenAnswer(sample.id, damage.condition, made[0], made[1])


def _made(damage: Damage, text: str, known: Known, rng: Random) -> tuple[str, str] | None:
    """Return what rules make of a golden answer, and what they did; `None` if they cannot."""
    made: tuple[str, list[str]] | None = None
    match damage.kind:
        case "empty":
            return "", "nothing"
        case "other":
            return (rng.choice(known.others), "the golden answer to another question") if known.others else None
        case "negation":
            return negated(text, rng)
        case "padded":
            return _noted(padded(text, rng), "sentences around it that say nothing")
        case "reworded":
            return _noted(reworded(text, rng), "other words, or another form")
        case "number":
            made = number_damage.damaged(text, known.question, rng, every=damage.level == "all")
        case "name":
            made = name_damage.damaged(text, known, rng, every=damage.level == "all")
        case "left_out":
            made = left_out(text, known, rng, half=damage.level == "half")
        case "added":
            made = added(text, known, rng, count=int(damage.level))
    return made and (made[0], "; ".join(made[1]))


def _noted(text: str | None, note: str) -> tuple[str, str] | None:
    return None if text is None else (text, note)


def is_valid(damage: Damage, golden: str, text: str, vocabulary: Vocabulary) -> bool:
    """Return whether an answer differs from the golden one as its kind says."""
    if damage.kind == "empty":
        return True
    # A rewording may change nothing but the form, such as a list in place of sentences.
    if not text.strip() or (damage.kind != "reworded" and _plain(text) == _plain(golden)):
        return False
    if damage.kind == "left_out":
        return len(_plain(text)) < len(_plain(golden))
    if damage.kind == "added":
        return len(_plain(text)) > len(_plain(golden))
    return damage.harmful or (text.strip() != golden.strip() and keeps_facts(golden, text, vocabulary))


def _plain(text: str) -> list[str]:
    return re.findall(r"[\w+-]+|[^\w\s.,;:!?*_`#|]", text.casefold())


def _alike(one: Sample, other: Sample) -> bool:
    """Return whether the golden answer to one sample may pass for that to another."""
    if one.id == other.id or set(_plain("\n".join(one.asked))) == set(_plain("\n".join(other.asked))):
        return True
    a, b = one.answer or "", other.answer or ""
    # An answer that begins with "yes" may pass for any other one that does.
    leads = [found and found[1] for found in (re.match(r"\W*(yes|no|true|false)\b", text.lower()) for text in (a, b))]
    words, others = set(_plain(a)), set(_plain(b))
    is_part = words <= others or others <= words
    return is_part or leads[0] == leads[1] is not None or len(words & others) >= _ALIKE * len(words | others)


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
    # Half of the facts contradict the answer; where others do not suffice, more of its own follow.
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
