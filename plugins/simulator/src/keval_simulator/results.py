"""Results: what a tool returned, whatever envelope a framework put around it, as records or as a text."""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import orjson

from keval_gateway import ChatCall, ChatMessage
from keval_simulator.words import split_identifier

_FAILED = re.compile(
    r"^\W*(?:(?:[\w ]{0,30} )?(?:error|exception|failed)\b[^\n.]{0,40}:|error\b|failed\b|traceback\b|function failed"
    r"|unknown tool|invalid\b|access denied|\d+ validation error)|\b(?:Invalid Date|NaN)\b",
    re.IGNORECASE,
)
_EMPTY = re.compile(
    r"^\W*(?:found |there (?:is|are) )?(?:no|none|nothing|0|zero|could not find|cannot find)\b"
    r"(?:[^\n]{0,150}$|[^\n.]{0,60}\b(?:found|match\w*|exist\w*)\b[^\n.]{0,60}[.!] )"
    r"|not found\W*$|^[\w ]{0,30}not found: [^\n]{1,60}$|^[^\n]{1,40}:\s*$|^\[(?:image|audio|resource) [^\]\n]*\]$",
    re.IGNORECASE,
)
_PAIR = re.compile(r"\s*(?:[-*•] )?\**([A-Za-z][\w ]{0,30}?)\**:\**\s+(\S.*)")
_AROUND_TABLE = 2
"""So many lines beside a table are its heading and its note."""
_ENVELOPES = ("structuredContent", "structured_content", "content", "result", "output")


@attrs.frozen
class Outcome:
    """A tool call, and its parsed JSON, its records or its text as `data`, or the `error`."""

    call: ChatCall
    data: Any = None
    error: str | None = None

    @property
    def useful(self) -> bool:
        """Whether it has something to answer from."""
        if self.error is not None or self.data in (None, "", [], {}):
            return False
        if isinstance(self.data, Mapping):
            values = [*self.data.values()]
            # Beside an empty list and its count, what was given and flags say nothing.
            none = ([] in values or {} in values) and any(value == 0 and value is not False for value in values)
            nothing = (0, True, *self.call.arguments.values()) if none else (0,)
            told = [value for value in values if not (isinstance(value, str) and _EMPTY.search(value))]
            return any(
                value not in (None, "", [], {}, *nothing) or (value is False and True not in nothing) for value in told
            )
        return not (isinstance(self.data, str) and _EMPTY.search(self.data))


def outcome(call: ChatCall, message: ChatMessage) -> Outcome:
    """Read a tool message."""
    failed, data = _unwrapped(message.text)
    text = data if isinstance(data, str) else shown(data)
    failed = failed or message.error
    failed = failed or (isinstance(data, Mapping) and (bool(data.get("error")) or data.get("success") is False))
    failed = failed or (isinstance(data, Mapping) and data.get("status") in ("error", "failed", "failure"))
    if failed or (data == text and _FAILED.match(text)):
        return Outcome(call, error=text or "the tool failed without a word")
    return Outcome(call, _parsed(data) if isinstance(data, str) else data)


def _unwrapped(value: Any) -> tuple[bool, Any]:
    """Take the envelopes off a result; returns whether one of them said that it failed, and what was inside."""
    if isinstance(value, str):
        try:
            inner = orjson.loads(value)
        except orjson.JSONDecodeError:
            return False, value
        return _unwrapped(inner) if isinstance(inner, dict | list) else (False, inner)
    if isinstance(value, list) and value and all(isinstance(part, Mapping) and "text" in part for part in value):
        texts = [str(part["text"]) for part in value]
        parts = [_unwrapped(text) for text in texts]
        if len(parts) > 1 and all(isinstance(data, Mapping) for _, data in parts):
            return any(failed for failed, _ in parts), [data for _, data in parts]
        return _unwrapped("\n".join(texts))
    if isinstance(value, Mapping):
        failed = bool(value.get("isError") or value.get("is_error"))
        for key in _ENVELOPES:
            inner = value.get(key)
            whole = key in ("structuredContent", "structured_content") or (key == "content" and isinstance(inner, list))
            if inner and (whole or len(value) == 1):
                deeper, data = _unwrapped(inner)
                return failed or deeper, data
        return failed, value
    return False, value


def _parsed(text: str) -> Any:
    """Return what a text holds: a Python literal, lines of JSON, a table of Markdown or of values with commas."""
    stripped = text.strip()
    lines = stripped.splitlines()
    if stripped[:1] in ("[", "{", "("):
        try:
            return (
                orjson.loads(b"[" + ",".join(lines).encode() + b"]") if len(lines) > 1 else ast.literal_eval(stripped)
            )
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return text
    table = [line.strip() for line in lines if line.lstrip().startswith("|")]
    if len(table) > 1 and sum(map(bool, map(str.strip, lines))) - len(table) <= _AROUND_TABLE:
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
        return _tabular([row for row in rows if set("".join(row)) - set(":- ")]) or text
    if re.fullmatch(r"[\w./-]+\.\w{1,5}(?:, ?[\w./-]+\.\w{1,5})+", stripped):
        return re.split(", ?", stripped)
    parts = [part.splitlines() for part in re.split(r"\n\s*\n", re.sub(r"^[^\n]*:\n", "", stripped))]
    pairs = [[pair for line in part if (pair := _PAIR.fullmatch(line))] for part in parts]
    if len(parts) > 1 and all(1 < len(part) == len(found) for part, found in zip(parts, pairs, strict=True)):
        return [{pair[1]: pair[2] for pair in found} for found in pairs]
    if len(lines) > 1 and "," in lines[0] and ", " not in lines[0]:
        return _tabular(list(csv.reader(lines))) or text
    return text


def _tabular(rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    head, *body = rows
    return [dict(zip(head, row, strict=True)) for row in body] if all(len(row) == len(head) for row in body) else []


def records(data: Any, columns: Sequence[str] = ()) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the scalars around the lists of a result, and the records in them; a record's inner objects are flat.

    `columns` are the names for rows that come without.
    """
    if isinstance(data, list | tuple):
        if len(data) > 1 and all(isinstance(row, list) for row in data) and all(isinstance(x, str) for x in data[0]):
            return {}, _tabular(data)
        if data and all(isinstance(row, list | tuple) and 1 < len(row) == len(data[0]) for row in data):
            unnamed = [f"column {at}" for at in range(1, len(data[0]) + 1)]
            return {}, _tabular([columns if len(columns) == len(unnamed) else unnamed, *data])
        return {}, [_flat(each) if isinstance(each, Mapping) else {"": shown(each)} for each in data]
    if not isinstance(data, Mapping):
        return {}, []
    if len(data) == 1 and isinstance(inner := next(iter(data.values())), Mapping | list):
        return records(inner)
    for rows in data.values():
        for names in data.values():
            if _are_rows(names, rows):
                return {}, _tabular(
                    [[each.get("name") if isinstance(each, Mapping) else each for each in names], *rows]
                )
    lists = [
        each for each in data.values() if isinstance(each, list) and any(isinstance(x, Mapping | list) for x in each)
    ]
    head = _flat({key: value for key, value in data.items() if value not in lists})
    return (head, [row for each in lists for row in records(each)[1]]) if lists else ({}, [head])


def _are_rows(names: Any, rows: Any) -> bool:
    """Tell whether a list has lists, each with a value for each of the names."""
    lists = isinstance(names, list) and isinstance(rows, list) and rows and names and not isinstance(names[0], list)
    return bool(lists) and all(isinstance(row, list) and len(row) == len(names) for row in rows)


def _flat(data: Mapping[str, Any], under: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in data.items():
        inner = value[0] if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping) else value
        label = f"{under} {key}".strip()
        found |= _flat(inner, label) if isinstance(inner, Mapping) else {label: inner}
    return found


def shown(value: Any) -> str:
    """Return a value as it is said."""
    if isinstance(value, Mapping):
        return ", ".join(f"{label(key)}: {shown(inner)}" for key, inner in value.items() if inner not in ([], {}, ""))
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value))
    return "yes" if value is True else "no" if value is False else "unknown" if value is None else str(value)


def label(key: str) -> str:
    """Return the words of a key."""
    return key if key.isupper() else " ".join(split_identifier(key))


def lines_of(data: Any) -> Iterator[str]:
    """Yield the lines of a text, without marks of lists."""
    if isinstance(data, str):
        yield from (line for each in data.splitlines() if each[:1] != "#" and (line := each.strip(" \t-*•|")))
