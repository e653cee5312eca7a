"""Golden answers damaged in known ways, and others that say the same: what scorers must tell apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

import attrs

from keval import Sample
from keval_instrument import name_damage, number_damage
from keval_instrument.fact_damage import added, left_out
from keval_instrument.name_damage import Vocabulary
from keval_instrument.negation import negated
from keval_instrument.rewording import keeps_facts, padded, reworded
from keval_instrument.written import WrittenAnswer

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

_Made = tuple[str, Sequence[str]] | None
_OTHERS = 40
"""Other golden answers that wrong facts are looked for in."""
_ALIKE = 0.5
"""The share of their words that two golden answers both have, from which on one may pass for the other."""


@attrs.frozen
class _Source:
    """A golden answer that others are made of, `known` being what its question says already."""

    text: str
    known: str
    vocabulary: Vocabulary
    others: Sequence[str]


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
        drawn = Random(f"{seed}\0{sample.id}").sample(goldens, min(len(goldens), _OTHERS))
        others = [other.answer or "" for other in drawn if not _alike(sample, other)]
        source = _Source(text, "\n".join(sample.asked), vocabulary, others)
        for damage in DAMAGES:
            made = _RULES[damage.kind](source, damage.level, Random(f"{seed}\0{sample.id}\0{damage.condition}"))
            if made is not None and is_valid(damage, text, made[0], vocabulary):
                yield WrittenAnswer(sample.id, damage.condition, made[0], "; ".join(made[1]))


def is_valid(damage: Damage, golden: str, text: str, vocabulary: Vocabulary) -> bool:
    """Return whether an answer differs from the golden one as its kind says."""
    if damage.kind == "empty":
        return True
    if not text.strip() or _plain(text) == _plain(golden) and damage.kind != "reworded":
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
    leads = [found and found[1] for found in (re.match(r"\W*(yes|no|true|false)\b", text.lower()) for text in (a, b))]
    words, others = set(_plain(a)), set(_plain(b))
    is_part = words <= others or others <= words
    return is_part or leads[0] == leads[1] is not None or len(words & others) >= _ALIKE * len(words | others)


def _empty(source: _Source, level: str, rng: Random) -> _Made:
    return "", ["nothing"]


def _other(source: _Source, level: str, rng: Random) -> _Made:
    return (rng.choice(source.others), ["the golden answer to another question"]) if source.others else None


def _number(source: _Source, level: str, rng: Random) -> _Made:
    return number_damage.damaged(source.text, rng, source.known, level == "all")


def _name(source: _Source, level: str, rng: Random) -> _Made:
    return name_damage.damaged(source.text, rng, source.known, source.vocabulary, level == "all")


def _negation(source: _Source, level: str, rng: Random) -> _Made:
    made = negated(source.text, rng)
    return made and (made[0], [made[1]])


def _left_out(source: _Source, level: str, rng: Random) -> _Made:
    return left_out(source.text, rng, source.known, source.vocabulary, level == "half")


def _added(source: _Source, level: str, rng: Random) -> _Made:
    return added(source.text, rng, source.known, source.vocabulary, source.others, int(level))


def _padded(source: _Source, level: str, rng: Random) -> _Made:
    made = padded(source.text, rng)
    return made and (made, ["sentences around it that say nothing"])


def _reworded(source: _Source, level: str, rng: Random) -> _Made:
    made = reworded(source.text, rng)
    return made and (made, ["other words or another form"])


_RULES: Mapping[str, Callable[[_Source, str, Random], _Made]] = {
    "empty": _empty,
    "other": _other,
    "number": _number,
    "name": _name,
    "negation": _negation,
    "left_out": _left_out,
    "added": _added,
    "padded": _padded,
    "reworded": _reworded,
}
