"""Reading samples from a JSONL, YAML or CSV file; every problem at once, with file and line."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import attrs
import orjson

from keval.config.evaluation import DatasetFile
from keval.config.source import Source
from keval.errors import ConfigError, Problem
from keval.nearest import suggestion
from keval.records import Message, Sample

__all__ = ["Dataset", "read_dataset"]

_KNOWN = ("id", "history", "turns", "facts", "metadata")
_ROLES: dict[str, Literal["user", "assistant"]] = {
    "user": "user",
    "user_message": "user",
    "assistant": "assistant",
    "response": "assistant",
}


@attrs.frozen
class Dataset:
    """The samples of a file, in its order, and the SHA-256 of its bytes."""

    path: Path | None
    samples: tuple[Sample, ...]
    digest: str


def read_dataset(file: DatasetFile) -> Dataset:
    """Read all samples. Raises ConfigError: unreadable, empty, broken lines, missing questions, ids that repeat.

    A record has the question under `question_key`, the golden answer under `answer_key`, and may have `id`, `history`,
    `turns`, `facts` and `metadata`; whatever else it has becomes metadata. Without an `id`, one is derived from the
    record's content, so that it stays the same when lines are added or moved.
    """
    try:
        content = file.path.read_bytes()
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([Problem(str(file.path), f"the dataset cannot be read: {error}")]) from error
    problems: list[Problem] = []
    samples: dict[str, Sample] = {}
    lines: dict[str, int] = {}
    for line, record in _records(file.path, text, problems):
        try:
            sample = _sample(record, file)
        except ValueError as error:
            problems.append(Problem(f"{file.path}:{line}", str(error)))
            continue
        if sample.id in samples:
            how = "the id" if "id" in record else "the content, and so the derived id,"
            problems.append(
                Problem(f"{file.path}:{line}", f"{how} {sample.id!r} stands already in line {lines[sample.id]}")
            )
        samples.setdefault(sample.id, sample)
        lines.setdefault(sample.id, line)
    if problems:
        raise ConfigError(problems)
    if not samples:
        raise ConfigError([Problem(str(file.path), "the dataset is empty; add at least one question")])
    return Dataset(file.path, tuple(samples.values()), hashlib.sha256(content).hexdigest())


def _records(path: Path, text: str, problems: list[Problem]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each record with its line."""
    suffix = path.suffix.lower()
    if suffix in {".jsonl", ".ndjson"}:
        records = _json_lines(path, text, problems)
    elif suffix in {".yaml", ".yml"}:
        records = _yaml_items(path, text)
    elif suffix == ".csv":
        records = _csv_rows(path, text, problems)
    else:
        problems.append(Problem(str(path), "a dataset is a .jsonl, .yaml or .csv file"))
        return
    for line, record in records:
        if isinstance(record, dict):
            yield line, record
        else:
            problems.append(Problem(f"{path}:{line}", "expected an object with a question"))


def _json_lines(path: Path, text: str, problems: list[Problem]) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield number, orjson.loads(line)
            except orjson.JSONDecodeError as error:
                problems.append(
                    Problem(f"{path}:{number}:{error.colno}", f"not valid JSON: {error.msg}; one object a line")
                )


def _yaml_items(path: Path, text: str) -> Iterator[tuple[int, Any]]:
    source = Source.parse(text, str(path), path.parent)
    items = source.data
    if not isinstance(items, list):
        raise ConfigError([Problem(source.place(()), "expected a list of records, each with a question")])
    for index, item in enumerate(items):
        yield source.line((index,)), item


def _csv_rows(path: Path, text: str, problems: list[Problem]) -> Iterator[tuple[int, Any]]:
    csv.field_size_limit(2**31 - 1)  # the default of 128 KiB refuses a long history
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in rows:
            record: dict[str, Any] = {}
            for key, value in row.items():
                if key is None or value is None:
                    problems.append(Problem(f"{path}:{rows.line_num}", "the row has not as many cells as the header"))
                    break
                if value == "":
                    continue
                record[key] = _json_cell(path, rows.line_num, key, value, problems) if key in _KNOWN[1:] else value
            else:
                yield rows.line_num, record
    except csv.Error as error:
        problems.append(Problem(f"{path}:{rows.line_num}", f"not valid CSV: {error}"))


def _json_cell(path: Path, line: int, key: str, value: str, problems: list[Problem]) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        problems.append(Problem(f"{path}:{line}", f"the column {key!r} holds JSON: {error}"))
        return None


def _sample(record: Mapping[str, Any], file: DatasetFile) -> Sample:
    turns = _texts(record.get("turns"), "turns")
    question = record.get(file.question_key)
    if question is None and turns:
        question, turns = turns[0], turns[1:]
    elif turns and turns[0] == question:
        turns = turns[1:]
    if file.question_key in record and (not isinstance(question, str) or not question.strip()):
        raise ValueError(f"the question under {file.question_key!r} is no text, or an empty one")
    if not isinstance(question, str):
        hint = suggestion(file.question_key, record) or f"; the record has {', '.join(map(repr, record)) or 'nothing'}"
        raise ValueError(f"no question under {file.question_key!r}{hint} (dataset.question_key names the key)")
    answer = record.get(file.answer_key)
    if answer is not None and not isinstance(answer, str):
        answer = json.dumps(answer, ensure_ascii=False)
    metadata = {**_mapping(record.get("metadata"), "metadata")}
    for key, value in record.items():
        if key not in (*_KNOWN, file.question_key, file.answer_key):
            metadata.setdefault(key, value)
    return Sample(
        id=_id(record),
        question=question,
        answer=answer,
        history=_history(record.get("history")),
        turns=turns,
        facts=_mapping(record.get("facts"), "facts"),
        metadata=metadata,
    )


def _id(record: Mapping[str, Any]) -> str:
    given = record.get("id")
    if given is None:
        canonical = json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    if isinstance(given, bool) or not isinstance(given, str | int) or not str(given).strip():
        raise ValueError(f"an id is a text or a whole number, got {given!r}")
    return str(given)


def _texts(value: Any, key: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise ValueError(f"{key!r} is a list of texts: what the user says, in order")
    return tuple(value)


def _mapping(value: Any, key: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"{key!r} is an object with named values")
    return value


def _history(value: Any) -> tuple[Message, ...]:
    """Read earlier turns: messages {role, content}, or exchanges {user, assistant} or {user_message, response}."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ValueError("'history' is a list of messages {role, content} or of exchanges {user, assistant}")
    return tuple(message for item in value for message in _earlier(item))


def _earlier(item: Any) -> Iterator[Message]:
    if isinstance(item, dict):
        text = item.get("content", item.get("text"))
        if item.get("role") in ("user", "assistant") and isinstance(text, str):
            yield Message(item["role"], text)
            return
        spoken = [(_ROLES[key], said) for key, said in item.items() if key in _ROLES and isinstance(said, str)]
        if len(spoken) == len(item) and [role for role, _ in spoken] in (["user"], ["user", "assistant"]):
            yield from (Message(role, said) for role, said in spoken if said)
            return
    raise ValueError("each item of 'history' is {role: user or assistant, content} or {user, assistant}")
