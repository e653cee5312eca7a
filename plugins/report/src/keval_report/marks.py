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

    Details are whatever a plugin wrote: what is no mark, or lies outside the answer, is left out. A score of an older
    version has `details["read"]` instead, with the words `said` and the offsets `at`.
    """
    told = score.details.get("marks")
    found = _marks(told) if isinstance(told, list | tuple) else _read(score.details.get("read"))
    inside = (mark for mark in found if 0 <= mark.start < mark.end <= len(answer))
    return tuple(sorted(inside, key=lambda mark: (mark.start, -mark.end)))


def _marks(entries: list[Any] | tuple[Any, ...]) -> Iterator[Mark]:
    for entry in entries:
        if isinstance(entry, Mapping) and _are_offsets(entry.get("start"), entry.get("end")):
            label, kind = entry.get("label", ""), entry.get("kind")
            known = _KINDS.get(kind, "neutral") if isinstance(kind, str) else "neutral"
            yield Mark(entry["start"], entry["end"], label if isinstance(label, str) else "", known)


def _read(entries: Any) -> Iterator[Mark]:
    for entry in entries if isinstance(entries, list | tuple) else ():
        at = entry.get("at") if isinstance(entry, Mapping) else None
        if isinstance(at, list | tuple) and len(at) == 2 and _are_offsets(*at) and isinstance(entry.get("said"), str):
            about = (f"{key} {value}" for key, value in entry.items() if key not in ("said", "at") and value)
            yield Mark(at[0], at[1], ", ".join(about))


def _are_offsets(*values: object) -> bool:
    # True is an int, too.
    return all(type(value) is int for value in values)
