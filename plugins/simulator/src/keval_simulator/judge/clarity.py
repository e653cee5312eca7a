"""Clarity: how easily the answer is found in a response, by its form alone."""

from __future__ import annotations

import re

import attrs

from keval_simulator.judge.facts import Statement
from keval_simulator.words import sentences

__all__ = ["Clarity", "clarity"]

_FILLER = re.compile(
    r"\b(?:great question|good question|i'?d be happy to|happy to help|sure,|certainly|of course[,!]|as an ai|"
    r"here is what i found|based on what i looked up|i hope (?:this|that) helps|let me know if|feel free to|"
    r"don't hesitate|it is important to note|it'?s worth noting|in conclusion|i suggest checking the source)",
    re.IGNORECASE,
)
_STRUCTURE = re.compile(r"^\s*(?:[-*•]\s|\d+[.)]\s|#+\s|```|\|)", re.MULTILINE)
_CODE = re.compile(r"`[^`]+`|```")
_PLENTY = 25
"""Words that any answer may have, however short the golden one is."""


@attrs.frozen
class Clarity:
    """A measure on 0..1 with what lowered it, most grave first."""

    value: float
    remarks: tuple[str, ...]


def clarity(response: str, golden: str, said: tuple[Statement, ...], answering: list[bool]) -> Clarity:
    """Measure length against need, structure, filler, repetition, code marked as such, and an early answer.

    `said` are the response's statements and `answering` says of each whether it has a fact of the golden answer.
    """
    words, need = len(response.split()), max(len(golden.split()), _PLENTY)
    structured = bool(_STRUCTURE.search(response)) or response.count("\n\n") >= words / 100
    parts = [part.lower() for part in sentences(response)]
    filler = len(_FILLER.findall(response.replace("’", "'")))
    late = next((at for at, answers in enumerate(answering) if answers), 0)
    bare_code = any(fact.kind in ("flag", "command") for each in said for fact in each.facts)
    lost = {
        "it is a wall of text": 0.5 if words > 250 and not structured else 0.0,
        "a long text has no structure": 0.25 if 110 < words <= 250 and not structured else 0.0,
        "it is many times as long as it needs to be": 0.45 if words > 12 * need else 0.0,
        "it is much longer than it needs to be": 0.2 if 5 * need < words <= 12 * need else 0.0,
        "the answer comes late": 0.2 if late >= 3 else 0.0,
        "it repeats itself": 0.2 if len(set(parts)) < len(parts) else 0.0,
        "its sentences are long": 0.15 if words > 35 * max(len(parts), 1) else 0.0,
        "commands are not marked as code": 0.15 if bare_code and not _CODE.search(response) else 0.0,
        "it has filler": min(0.14 * filler, 0.4),
    }
    remarks = sorted((remark for remark, loss in lost.items() if loss), key=lambda remark: -lost[remark])
    return Clarity(max(1 - sum(lost.values()), 0.0), tuple(remarks))
