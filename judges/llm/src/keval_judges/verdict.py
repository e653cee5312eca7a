"""The verdict: reading a judge's reply, as strictly as if no schema had been asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import attrs

from keval import Rubric, Score
from keval_judges.sheet import CLAIMS, Sheet

__all__ = ["Verdict", "encodable", "read_verdict"]

_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n[ \t]*```\s*", re.DOTALL | re.IGNORECASE)


@attrs.frozen
class Verdict:
    """What a reply says: scores and faults by their key in it, and the claims, `None` when they are at fault."""

    scores: Mapping[str, Score] = attrs.field(factory=dict)
    faults: Mapping[str, str] = attrs.field(factory=dict)
    claims: tuple[str, ...] | None = None

    @classmethod
    def unusable(cls, fault: str, sheet: Sheet) -> Verdict:
        """Return the verdict of a reply that says nothing about any rubric."""
        return cls(faults=dict.fromkeys((*sheet.rubrics, CLAIMS), fault))


def read_verdict(reply: str, sheet: Sheet) -> Verdict:
    """Read a reply that is JSON, at most in one Markdown fence. A part at fault leaves the other parts standing."""
    fenced = _FENCED.fullmatch(reply)
    try:
        data = json.loads(fenced[1] if fenced else reply, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        return Verdict.unusable(f"it is no JSON: {error}", sheet)
    if not isinstance(data, dict):
        return Verdict.unusable("it is no JSON object", sheet)
    scores: dict[str, Score] = {}
    faults: dict[str, str] = {}
    for key, rubric in sheet.rubrics.items():
        found = _score(data.get(key), rubric)
        if isinstance(found, Score):
            scores[key] = found
        else:
            faults[key] = found
    claims = _claims(data.get(CLAIMS))
    if claims is None:
        faults[CLAIMS] = "it is no list of texts"
    return Verdict(scores, faults, claims)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that says one thing twice: nobody knows which it means."""
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return data


def _score(entry: object, rubric: Rubric) -> Score | str:
    """Return the score of one rubric, or what is wrong with it, in words that quote nothing but numbers."""
    if not isinstance(entry, dict):
        return "there is no object with reasoning and score"
    value, reasoning = entry.get("score"), entry.get("reasoning")
    if type(value) is not int:  # True is an int, too
        return f"the score is no whole number but {type(value).__name__}"
    if value not in rubric.levels:
        return f"the score {str(value)[:12]} is none of the levels {', '.join(map(str, sorted(rubric.levels)))}"
    if not isinstance(reasoning, str):
        return "there is no reasoning"
    return Score(float(value), encodable(reasoning))


def _claims(found: object) -> tuple[str, ...] | None:
    if not isinstance(found, list) or not all(isinstance(claim, str) for claim in found):
        return None
    return tuple(encodable(claim) for claim in found if claim.strip())


def encodable(text: str) -> str:
    """Replace lone surrogates, which JSON can carry and no file in UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode()
