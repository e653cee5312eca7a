"""Secrets that the events of a stream spell together: each event has a piece of one, so that none of them shows it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple, TypeAlias

import orjson

from keval.redaction import MARK, Redactor
from keval.store.jsonl import dump

__all__ = ["unspelled"]

_DATA = b"data:"
_INDEXES = ("index", "output_index", "content_index", "item_id")
"""Keys by which events say which of several texts they go on with, in the four wire protocols."""

_Text: TypeAlias = tuple[Hashable, ...]
"""Which text of a stream: the keys that lead to its pieces, and the indexes beside them."""


class _Piece(NamedTuple):
    """A piece of a text, where it stands: in the data of a line of the stream, under a key of a mapping or list."""

    line: int
    holder: Any
    key: Any
    start: int
    """Where it begins in its text."""


def unspelled(stream: bytes, redact: Redactor) -> bytes:
    """Return a stream of events without the secrets that strings at the same place of its events spell together.

    The stream itself is returned where there are none. What is no JSON is left as it is.
    """
    if not redact.knows_any:
        return stream
    lines = stream.splitlines(keepends=True)
    data: dict[int, Any] = {}
    texts: dict[_Text, list[_Piece]] = {}
    spelled: dict[_Text, list[str]] = {}
    sizes: dict[_Text, int] = {}
    for number, line in enumerate(lines):
        if not line.startswith(_DATA):
            continue
        try:
            data[number] = orjson.loads(line[len(_DATA) :])
        except orjson.JSONDecodeError:
            continue
        for which, holder, key in _strings(data[number], ()):
            start = sizes.get(which, 0)
            texts.setdefault(which, []).append(_Piece(number, holder, key, start))
            spelled.setdefault(which, []).append(holder[key])
            sizes[which] = start + len(holder[key])
    changed = set[int]()
    for which, pieces in texts.items():
        # From the end, so that what stands before keeps its place.
        for begin, end in reversed(redact.places("".join(spelled[which]))):
            changed |= _replaced(pieces, begin, end)
    for number in changed:
        ending = lines[number][len(lines[number].rstrip(b"\r\n")) :]
        lines[number] = b"".join([_DATA, b" ", dump(data[number]), ending])
    return b"".join(lines) if changed else stream


def _strings(value: Any, path: _Text) -> Iterator[tuple[_Text, Any, Any]]:
    """Yield every string of an event: which text it is a piece of, what holds it, and under which key."""
    if isinstance(value, dict):
        here = (*path, *(value.get(name) for name in _INDEXES if isinstance(value.get(name), int | str)))
        for key, item in value.items():
            if isinstance(item, str):
                yield (*here, key), value, key
            else:
                yield from _strings(item, (*here, key))
    elif isinstance(value, list):
        for key, item in enumerate(value):
            if isinstance(item, str):
                yield (*path, key), value, key
            else:
                yield from _strings(item, (*path, key))


def _replaced(pieces: list[_Piece], begin: int, end: int) -> set[int]:
    """Put the mark in place of a part of a text, into the piece where that begins; returns the lines that changed."""
    changed = set[int]()
    mark = MARK
    for piece in pieces:
        text = piece.holder[piece.key]
        first, last = max(begin - piece.start, 0), min(end - piece.start, len(text))
        if first < last:
            piece.holder[piece.key] = text[:first] + mark + text[last:]
            mark = ""
            changed.add(piece.line)
    return changed
