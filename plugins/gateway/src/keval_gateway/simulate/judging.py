"""Judging: scoring a response against a golden answer, and saying so in whatever schema the judge asks for."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import attrs

from keval_gateway.simulate.filling import Suggest
from keval_gateway.simulate.schema import Schema, schema_type
from keval_gateway.simulate.sections import Sections
from keval_gateway.simulate.words import STOP, sentences, split_identifier, stems

__all__ = ["Verdict", "judge", "suggestions"]

_ASPECTS = {
    "factual": ("fact", "accura", "correct", "adher", "safe", "truth", "faithful", "ground", "hallucin"),
    "complete": ("complet", "coverage", "recall", "thorough", "suffic"),
    "clear": ("help", "clar", "clear", "concise", "format", "style", "read", "fluen", "structur"),
}
_CLAIM_WORDS = ("unverified", "claim", "unsupported", "hallucination")
_REASON_WORDS = ("reason", "explan", "rationale", "justif", "comment", "feedback", "why", "summary")
_POSITIVE = ("pass", "yes", "correct", "good", "true", "accept", "excellent")
_NEGATIVE = ("fail", "no", "incorrect", "bad", "false", "reject", "poor")
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?\s*(?:°\s*[CF]|%|m/s|km|days?)?")
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[^\W\d_a-z][^\W\d_]+\b", re.MULTILINE)
_COMMAND = re.compile(r"`([^`\n]+)`|(?<!\w)(--?[a-z][\w-]*)")
_EVASIVE = re.compile(r"\b(?:can'?t|cannot|couldn'?t|unable|don't have|not certain|no access|sorry)\b", re.IGNORECASE)
_SLACK = 0.12
"""How far a judge's opinion scatters around its own measure, as a standard deviation on 0..1."""


@attrs.frozen
class Verdict:
    """What a judge thinks, on 0..1, with its reasons."""

    factual: float
    complete: float
    clear: float
    reason: str
    unverified: tuple[str, ...]

    @property
    def overall(self) -> float:
        """The mean of the three."""
        return (self.factual + self.complete + self.clear) / 3


def judge(sections: Sections, rng: Random) -> Verdict:
    """Compare the facts of a response with those of the golden answer: numbers, names, commands and words."""
    golden, response = _facts(sections.golden), _facts(sections.response)
    shared = {fact for fact in golden if _known(fact, response)}
    wording = _overlap(stems(sections.golden), stems(sections.response))
    coverage = 0.6 * (len(shared) / len(golden)) + 0.4 * wording if golden else wording
    wrong = {fact for fact in response if _contradicts(fact, golden)}
    known = golden | _facts(sections.question)
    unverified = sorted(fact for fact in response if not _known(fact, known))
    evasive = bool(_EVASIVE.search(sections.response)) and coverage < 0.5
    factual = 0.35 + 0.65 * coverage - 0.3 * min(len(wrong), 2) if not evasive else 0.4
    clear = _clarity(sections.response) - (0.25 if evasive else 0)
    reason = f"{len(shared)} of {len(golden)} facts of the golden answer are in the response."
    if wrong:
        reason += f" It contradicts the golden answer with {', '.join(sorted(wrong))}."
    if evasive:
        reason += " It declines to answer."
    scatter = [rng.gauss(0, _SLACK) for _ in range(3)]
    return Verdict(
        _bounded(factual + scatter[0]),
        _bounded(coverage + scatter[1]),
        _bounded(clear + scatter[2]),
        reason,
        tuple(f"The response states {fact}, which is not in the golden answer." for fact in unverified[:5]),
    )


def suggestions(verdict: Verdict) -> Suggest:
    """Return the wishes for a structured verdict: scores by what they are called, reasons, unverified claims."""

    def suggest(path: tuple[str, ...], schema: Schema) -> Any:
        name = " ".join(split_identifier(path[-1])) if path else ""
        around = " ".join(" ".join(split_identifier(part)) for part in path) + f" {schema.get('title', '')}".lower()
        kind = schema_type(schema)
        if kind == "array":
            return verdict.unverified if any(word in name for word in _CLAIM_WORDS) else None
        value = _aspect(verdict, around, str(schema.get("description", "")).lower())
        if options := schema.get("enum"):
            return _level(options, value)
        if kind == "boolean":
            return value >= 0.6
        if kind in ("integer", "number"):
            low, high = schema.get("minimum", 1), schema.get("maximum", 5)
            return low + value * (high - low) if kind == "number" else round(low + value * (high - low))
        return verdict.reason if kind == "string" and (not name or any(w in name for w in _REASON_WORDS)) else None

    return suggest


def _facts(text: str) -> set[str]:
    """Return the facts of a text that can be compared: numbers with their unit, names and commands."""
    found = {re.sub(r"\s+", "", each).replace(",", ".") for each in _NUMBER.findall(text)}
    found |= {each for each in _NAME.findall(text) if each.lower() not in STOP}
    found |= {quoted or flag for quoted, flag in _COMMAND.findall(text)}
    return found


def _amount(fact: str) -> tuple[float, str] | None:
    match = re.match(r"(-?\d+(?:\.\d+)?)(.*)", fact)
    return (float(match[1]), match[2]) if match else None


def _known(fact: str, facts: set[str]) -> bool:
    """Tell whether a fact is among others; a measure counts within one unit."""
    mine = _amount(fact)
    if mine is None or not mine[1]:
        return fact in facts
    others = [other for each in facts if (other := _amount(each)) and other[1] == mine[1]]
    return any(abs(other[0] - mine[0]) <= 1 for other in others)


def _contradicts(fact: str, golden: set[str]) -> bool:
    """Tell whether a measure differs from every golden one of its unit."""
    mine = _amount(fact)
    same_unit = [other for each in golden if (other := _amount(each)) and mine and mine[1] and other[1] == mine[1]]
    return bool(same_unit) and not _known(fact, golden)


def _overlap(golden: set[str], response: set[str]) -> float:
    return len(golden & response) / len(golden) if golden else 0.5


def _clarity(text: str) -> float:
    """Return how easy a response is to take in: neither a stub nor a wall, in sentences of a readable length."""
    parts = sentences(text)
    if not parts:
        return 0.0
    length = sum(len(part.split()) for part in parts) / len(parts)
    score = 0.85 if len(text) >= 40 else 0.6
    score -= 0.2 if length > 30 else 0
    score -= 0.2 if len(text) > 1500 and "\n" not in text else 0
    return score + (0.1 if re.search(r"^\s*(?:[-*]|\d+\.|```)", text, re.MULTILINE) else 0)


def _bounded(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _aspect(verdict: Verdict, name: str, description: str) -> float:
    for text in (name, description):
        for aspect, marks in _ASPECTS.items():
            if any(mark in text for mark in marks):
                return float(getattr(verdict, aspect))
    return verdict.overall


def _level(options: list[Any], value: float) -> Any:
    """Choose from an enum: by rank among numbers, by meaning among words."""
    if all(isinstance(option, int | float) and not isinstance(option, bool) for option in options):
        ranked = sorted(options)
        return ranked[round(value * (len(ranked) - 1))]
    wanted = _POSITIVE if value >= 0.6 else _NEGATIVE
    return next((o for o in options if isinstance(o, str) and o.lower().startswith(wanted)), None)
