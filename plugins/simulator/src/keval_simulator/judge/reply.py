"""The judge's reply: what it measured, in whatever JSON Schema it is asked for."""

from __future__ import annotations

from typing import Any

from keval_simulator.json_schema import Schema, schema_type
from keval_simulator.judge.verdict import Aspect, Verdict
from keval_simulator.schema_filler import Suggest
from keval_simulator.words import split_identifier

__all__ = ["suggestions"]

_ASPECTS: dict[Aspect, tuple[str, ...]] = {
    "factual": ("fact", "accura", "correct", "adher", "safe", "truth", "faithful", "ground", "hallucin"),
    "complete": ("complet", "coverage", "recall", "thorough", "suffic"),
    "clear": ("help", "clar", "clear", "concise", "format", "style", "read", "fluen", "structur"),
}
_CLAIM_WORDS = ("unverified", "claim", "unsupported", "hallucination")
_REASON_WORDS = ("reason", "explan", "rationale", "justif", "comment", "feedback", "why", "summary")
_POSITIVE = ("pass", "yes", "correct", "good", "true", "accept", "excellent")
_NEGATIVE = ("fail", "no", "incorrect", "bad", "false", "reject", "poor")
_PASSES = 0.6


def suggestions(verdict: Verdict) -> Suggest:
    """Return the wishes for a structured verdict: scores by what they are called, reasons, unverified claims."""

    def suggest(path: tuple[str, ...], schema: Schema) -> Any:
        name = " ".join(split_identifier(path[-1])) if path else ""
        around = " ".join(" ".join(split_identifier(part)) for part in path) + f" {schema.get('title', '')}".lower()
        kind = schema_type(schema)
        if kind == "array":
            return verdict.unverified if any(word in name for word in _CLAIM_WORDS) else None
        aspect = _aspect(around, str(schema.get("description", "")).lower())
        value = getattr(verdict, aspect) if aspect else verdict.overall
        if options := schema.get("enum"):
            return _level(options, value)
        if kind == "boolean":
            return value >= _PASSES
        if kind in ("integer", "number"):
            low, high = schema.get("minimum", 1), schema.get("maximum", 5)
            return low + value * (high - low) if kind == "number" else round(low + value * (high - low))
        if kind == "string" and (not name or any(word in name for word in _REASON_WORDS)):
            return verdict.reasons[aspect] if aspect else verdict.reason
        return None

    return suggest


def _aspect(name: str, description: str) -> Aspect | None:
    for text in (name, description):
        for aspect, marks in _ASPECTS.items():
            if any(mark in text for mark in marks):
                return aspect
    return None


def _level(options: list[Any], value: float) -> Any:
    """Choose from an enum: by rank among numbers, by meaning among words."""
    if all(isinstance(option, int | float) and not isinstance(option, bool) for option in options):
        ranked = sorted(options)
        return ranked[round(value * (len(ranked) - 1))]
    wanted = _POSITIVE if value >= _PASSES else _NEGATIVE
    return next((o for o in options if isinstance(o, str) and o.lower().startswith(wanted)), None)
