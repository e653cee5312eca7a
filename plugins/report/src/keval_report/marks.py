"""Marks of what a metric read in an answer, by which the answer is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

import attrs

from keval.records.scores import Score

MarkKind: TypeAlias = Literal["good", "bad", "neutral"]

_KINDS: Mapping[object, MarkKind] = {"good": "good", "bad": "bad"}


@attrs.frozen
class Mark:
    """A piece of an answer, from offset `start` to `end` in characters, that a metric read as `label`."""

    start: int
    end: int
    label: str = ""
    kind: MarkKind = "neutral"


def marks_of(score: Score, answer: str) -> tuple[Mark, ...]:
    """Return what a score's metric read in the answer, as `details["marks"]` has it, in the order of the text.

    Details are whatever a plugin wrote: what is no mark, or lies outside the answer, is left out.
    """
    inside = (mark for mark in _marks(score.details.get("marks")) if 0 <= mark.start < mark.end <= len(answer))
    return tuple(sorted(inside, key=lambda mark: (mark.start, -mark.end)))


def _marks(entries: Any) -> Iterator[Mark]:
    for entry in entries if isinstance(entries, list | tuple) else ():
        if isinstance(entry, Mapping) and _are_offsets(entry.get("start"), entry.get("end")):
            label, kind = entry.get("label", ""), entry.get("kind")
            known = _KINDS.get(kind, "neutral") if isinstance(kind, str) else "neutral"
            yield Mark(entry["start"], entry["end"], label if isinstance(label, str) else "", known)


def _are_offsets(*values: object) -> bool:
    # True is an int, too.
    return all(type(value) is int for value in values)
