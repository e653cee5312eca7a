"""What the results so far name for a parameter: keys of records and lines of texts, nearest to the question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import fsum
from typing import Any

from keval_simulator.conversation import Conversation
from keval_simulator.parameters import Parameter, matches
from keval_simulator.results import Outcome, label, lines_of, records, shown
from keval_simulator.schema import schema_type
from keval_simulator.words import lexicon, shares_stem, split_identifier, stem, stems

HANDLES = {stem(word) for word in lexicon("id name key number code path uri url slug page title file")}
CATALOGUES = (
    "SELECT table_name, column_name FROM information_schema.columns",
    "SELECT name AS table_name, sql FROM sqlite_master",
)
"""Statements that tell of the tables of a database, where no tool does."""
_SPACED_PATH = r"(?:\[\w+\] +)?((?:[^\W\d][\w/.-]* ){1,4}[\w/-]+\.[A-Za-z]\w{1,4})"
"""A line that is a path with blanks in it."""
_GENERIC = stems("item record entry object element document node entity result thing row")
"""What any thing may be called."""
_BY = [stem(word) for word in ["id", "hash", "name", "slug", "path", "title", "uri", "key", "page", "url"]]
_NAME_WORDS = 5
"""A line of so many words may be a name."""


def named(parameter: Parameter, conversation: Conversation) -> list[Any]:
    """Return what the results so far have for a parameter, from what is nearest to the question first."""
    useful = [each for each in reversed(conversation.outcomes) if each.useful]
    found = [each for result in useful for each in _values(result, parameter, stems(conversation.question))]
    return list(dict.fromkeys(value for _, value in sorted(found, key=lambda each: -each[0])))


def catalogued(conversation: Conversation) -> list[str]:
    """Return the tables that a statement of `CATALOGUES` has found, from what is nearest to the question first."""
    tables: dict[str, str] = {}
    for text in _catalogue(conversation):
        if name := re.match(r"\W*([A-Za-z_]\w*)", text):
            tables[name[1]] = f"{tables.get(name[1], '')} {text}"
    return sorted(tables, key=lambda name: -nearness(tables[name], stems(conversation.question)))


def columns_of(outcome: Outcome, conversation: Conversation) -> list[str]:
    """Return the names of the columns, by the catalogue, of the table all of which a statement of SQL reads."""
    read = re.match(r"SELECT \* FROM (\w+)$", shown(list(outcome.call.arguments.values())))
    told = [re.match(rf"\W*{read[1]}, (\w+)$", text) for text in _catalogue(conversation)] if read else ()
    return [each[1] for each in told if each]


def _catalogue(conversation: Conversation) -> Iterator[str]:
    """Yield what statements of `CATALOGUES` have found, a text for each row."""
    for each in conversation.outcomes:
        if each.useful and any(value in CATALOGUES for value in each.call.arguments.values()):
            yield from (", ".join(map(shown, row.values())) for row in records(each.data)[1])
            yield from lines_of(each.data)


def taken_from_results(parameter: Parameter, conversation: Conversation) -> list[Any]:
    """Return what the results so far have for a parameter and its schema allows."""
    kind = schema_type(parameter.schema)
    values = named(parameter, conversation)
    values = [*map(str, values)] if kind == "string" else [each for each in values if isinstance(each, int)]
    if parameter.kind in ("path", "url"):
        values = [each for each in values if not re.search(r"\s[^.]*$|^\d+$", str(each))]
    return [each for each in values if matches(parameter.schema.get("pattern", ""), str(each))]


def _values(result: Outcome, parameter: Parameter, asked: set[str]) -> Iterator[tuple[float, Any]]:
    of = stems(" ".join(split_identifier(result.call.name)))
    words = {stem(word) for word in parameter.words}
    nouns = words - HANDLES
    of |= stems(" ".join(map(label, result.data))) if isinstance(result.data, Mapping) else set()
    plain = not nouns or bool(nouns & (of | _GENERIC)) or parameter.kind == "path"
    head, rows = records(result.data)
    for row in [*rows, head] if rows or head else []:
        keyed = {key: _key_fit({stem(word) for word in split_identifier(key)}, words, plain) for key in row}
        key = max(keyed, key=lambda each: keyed[each], default=None)
        if key is not None and keyed[key] > 0 and isinstance(row[key], str | int | float):
            yield nearness(shown(row), asked), row[key]
    lines = [line for line in lines_of(result.data) if not line.endswith((":", ".")) and "|" not in line]
    pairs = [(line, pair[1], pair[2]) for line in lines if (pair := re.match(r"([\w ]{2,30}):\s*(\S.*)$", line))]
    keyed_lines = [(line, value) for line, key, value in pairs if _key_fit(stems(key), words, plain) > 0]
    yield from ((nearness(line, asked), value.strip("`\"'")) for line, value in keyed_lines)
    for line in lines if not keyed_lines else ():
        if parameter.kind not in ("path", "url"):
            if len(line.split()) <= _NAME_WORDS:
                yield nearness(line, asked), re.sub(r"^\[\w+\]\s*", "", line)
        elif match := re.fullmatch(_SPACED_PATH, line) or re.search(r"\S*[/\\]\S+|\S+\.\w{1,5}\b", line):
            value, folder = (
                match[match.lastindex or 0].strip("`\"'(),"),
                str(result.call.arguments.get(parameter.name, "")),
            )
            inside = value[:1] != "/" and folder[:1] == "/"
            yield nearness(line, asked), f"{folder.rstrip('/')}/{value}" if inside else value


def _key_fit(key: set[str], words: set[str], plain: bool) -> float:
    """Tell whether a record's key is a parameter's: the same, a part of it, or (if `plain`) what any thing goes by."""
    if key == words:
        return 3.0
    if (key <= words and (plain or key - HANDLES)) or words <= key:
        return 2.0
    handle = min((_BY.index(word) for word in key if word in _BY and plain and len(key) == 1), default=None)
    return 0.0 if handle is None else 1.5 - handle / 10


def nearness(text: str, asked: set[str]) -> float:
    """Tell how many of the words asked for a text has."""
    words = stems(text)
    return fsum(1.0 if word in words else 0.7 if shares_stem(word, words) else 0.0 for word in asked)
