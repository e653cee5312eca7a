"""Golden answers damaged in known ways, and others that say the same: what scorers must tell apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from random import Random

import attrs

from keval import Sample
from keval_instrument import name_damage, number_damage
from keval_instrument.check_folder import WrittenAnswer
from keval_instrument.fact_damage import added, left_out
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
    leads = [found and found[1] for found in (re.match(r"\W*(yes|no|true|false)\b", text.lower()) for text in (a, b))]
    words, others = set(_plain(a)), set(_plain(b))
    is_part = words <= others or others <= words
    return is_part or leads[0] == leads[1] is not None or len(words & others) >= _ALIKE * len(words | others)
