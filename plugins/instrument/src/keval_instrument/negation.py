"""Negations: a claim of an English text turned into its opposite."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random

import attrs

from keval_instrument.answer_parts import HIDDEN, Part, is_english, prose, statements, words_of

_OPPOSITES: dict[str, str] = {}
for _pair in words_of("opposites"):
    _one, _other = _pair.split("/")
    _OPPOSITES.setdefault(_one, _other)
    _OPPOSITES.setdefault(_other, _one)
_AFTER = {"first": "the ", "last": "the "}
"""What stands before a word that otherwise means something else."""
_PHRASES = {
    "at least": "at most",
    "at most": "at least",
    "more than": "less than",
    "less than": "more than",
    "up to": "at least",
}
_AUXILIARY = "is|are|was|were|can|could|will|would|should|must|do|does|did|has|have|had"
"""Not those that leave both open: what may be may also not be."""
_SHORT = {"can't": "can", "cannot": "can", "won't": "will"}
_VERBS = words_of("verbs")
_SINGULAR = {**{f"{verb}s": verb for verb in _VERBS}, "applies": "apply", "reaches": "reach"}
_ORDERS = (
    "Use|Pass|Run|Set|Add|Call|Install|List|Take|Wear|Open|Click|Choose|Select|Press|Enter|Put|Start|Pack|Dress|Name"
)
_SUBJECT = r"(?<!\bthe )(?<!\ba )(?<!\ban )(?<!\bof )(?<!\bits )(?<!\btheir )(?<!\bno )(?<!\bto )"


@attrs.frozen
class _Change:
    start: int
    end: int
    text: str


_Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]


def _case(like: str, text: str) -> str:
    return text[:1].upper() + text[1:] if like[:1].isupper() else text


_REMOVALS: list[_Rule] = [
    (re.compile(rf"\b({_AUXILIARY}) not\b(?! (?:only|just)\b)(?![^.;]*\bbut\b)", re.IGNORECASE), lambda m: m[1]),
    (
        re.compile(r"\b(?:can[’']t|cannot|won[’']t)\b", re.IGNORECASE),
        lambda m: _case(m[0], _SHORT[m[0].lower().replace("’", "'")]),
    ),
    (
        re.compile(r"\b(is|are|was|were|could|would|should|do|does|did|has|have|had|must)n[’']t\b", re.IGNORECASE),
        lambda m: m[1],
    ),
    (
        re.compile(r"\bno(?= (?!longer\b|one\b|more\b|less\b|fewer\b|matter\b|doubt\b)[a-z]{3,})", re.IGNORECASE),
        lambda m: _case(m[0], "some"),
    ),
    (re.compile(r"\bwithout\b", re.IGNORECASE), lambda m: _case(m[0], "with")),
]
_OPPOSITE: list[_Rule] = [
    (
        re.compile(rf"(?<![\w-])(?:{'|'.join(_OPPOSITES)})(?![\w-])", re.IGNORECASE),
        lambda m: _case(m[0], _OPPOSITES[m[0].lower()]),
    ),
    (
        re.compile(r"\b(?:at least|at most|(?:more than|less than|up to)(?= \d))", re.IGNORECASE),
        lambda m: _case(m[0], _PHRASES[m[0].lower()]),
    ),
    (re.compile(r"\b((?:switched|turned) )(on|off)\b"), lambda m: m[1] + ("off" if m[2] == "on" else "on")),
]
_INSERTIONS: list[_Rule] = [
    (
        re.compile(
            r"\b(is|are|was|were|could|will|would|should|must)\b"
            r"(?= )(?! (?:not|no|never|it|this|that|there|they|you|we|he|she|I|as follows)\b)",
            re.IGNORECASE,
        ),
        lambda m: f"{m[1]} not",
    ),
    (re.compile(r"\bcan(?= (?!not\b|only\b|it\b|I\b|you\b|we\b|they\b))"), lambda m: "cannot"),
    (re.compile(r"\bhas(?= (?!been\b|to\b|not\b|no\b|\w+(?:ed|en|ne)\b))"), lambda m: "does not have"),
    (
        re.compile(rf"(?<=[\w{HIDDEN}] ){_SUBJECT}(?:{'|'.join(_SINGULAR)})\b(?= [\w(*{HIDDEN}-])"),
        lambda m: f"does not {_SINGULAR[m[0]]}",
    ),
    (re.compile(rf"(?<=[a-z]s )(?:{'|'.join(_VERBS)})\b(?= [\w{HIDDEN}])"), lambda m: f"do not {m[0]}"),
    (re.compile(r"\b(?:It|it)[’']s(?= (?!not\b|been\b|no\b))"), lambda m: f"{m[0]} not"),
    (
        re.compile(rf"^[,.: ]*(?i:{_ORDERS})\b(?= [\w*{HIDDEN}])"),
        lambda m: re.sub(r"\w+$", lambda verb: _case(verb[0], f"do not {verb[0].lower()}"), m[0]),
    ),
    (re.compile(r"^Do not ([a-z]+)"), lambda m: m[1].capitalize()),
]
_LAST_RESORT: list[_Rule] = [(re.compile(r"\bwith\b(?! (?:a few|some))", re.IGNORECASE), lambda m: f"{m[0]}out")]
_CONDITIONAL = re.compile(r"\b(?:if|when|where|whether|unless|until|while|what|how|as)\b[^,;:.]*$", re.IGNORECASE)
_MARKS = " ,.:"
_LEAD = re.compile(r"(Yes|No)\b(?=[,.!:;—–-]|\s*$| [—–-])")


def negated(text: str, rng: Random) -> tuple[str, str] | None:
    """Return an English text with one claim turned into its opposite, and what was changed; `None` if it has none.

    The first statement that can be is. A "yes" or "no" at the beginning is changed together with the claim after it.
    """
    if text.strip().lower() in ("true", "false", "yes", "no"):
        said = text.strip()
        other = {"true": "false", "false": "true", "yes": "no", "no": "yes"}[said.lower()]
        other = other.upper() if said.isupper() else _case(said, other)
        return text.replace(said, other), f"{said} → {other}"
    if not is_english(text):
        return None
    covered = prose(text)
    parts = statements(text)
    lead = _LEAD.match(covered, parts[0].start) if parts else None
    for part in parts:
        start = lead.end() if lead and part.start == parts[0].start else part.start
        if (change := _change(covered, attrs.evolve(part, start=start), rng)) is not None:
            break
        if lead:
            break
    else:
        change = None
    changes = [each for each in (change, lead and _Change(*lead.span(), "No" if lead[1] == "Yes" else "Yes")) if each]
    notes = [f"{text[each.start : each.end].strip(_MARKS)} → {each.text.strip(_MARKS)}" for each in reversed(changes)]
    # The claim stands behind the "yes" or "no" and is changed first, so that the offsets of that stay right.
    for each in changes:
        text = text[: each.start] + each.text + text[each.end :]
    return (text, "; ".join(notes)) if changes else None


def _change(text: str, part: Part, rng: Random) -> _Change | None:
    """Return one change of a statement: a negation left out if it has one, else an opposite, or a negation."""
    said = text[part.start : part.end]
    if said.rstrip(" \"'”’*_)").endswith("?"):
        return None
    for rules in (_REMOVALS, _OPPOSITE, _INSERTIONS, _LAST_RESORT):
        found = [*_matches(said, rules)]
        # A condition that is negated need not make the statement wrong.
        if rules is _INSERTIONS:
            found = [each for each in found if not _CONDITIONAL.search(said[: each.start])]
        if found:
            change = rng.choice(found)
            return _Change(change.start + part.start, change.end + part.start, change.text)
    return None


def _matches(said: str, rules: list[_Rule]) -> Iterator[_Change]:
    for pattern, replaced in rules:
        for found in pattern.finditer(said):
            before = _AFTER.get(found[0].lower(), "")
            if said[: found.start()].lower().endswith(before):
                yield _Change(found.start(), found.end(), replaced(found))
