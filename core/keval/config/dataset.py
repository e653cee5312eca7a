"""Reading samples from a JSONL, YAML or CSV file; every problem at once, with file and line."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from array import array
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from sys import intern
from typing import Any, Literal
from zlib import crc32

import attrs
import orjson

from keval.config.evaluation import DatasetFile
from keval.config.samples import LineFile, Samples
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
    """The samples of a file, in its order, and the SHA-256 of its bytes. A JSONL file is read as they are asked for."""

    path: Path | None
    samples: Samples
    digest: str
    _lines: Sequence[int] = ()

    def place(self, position: int) -> str:
        """Where a sample stands: file and line."""
        return f"{self.path}:{self._lines[position]}"


def read_dataset(file: DatasetFile) -> Dataset:
    """Check all samples. Raises ConfigError: unreadable, empty, broken lines, missing questions, ids that repeat.

    A record has the question under `question_key`, the golden answer under `answer_key`, and may have `id`, `history`,
    `turns`, `facts` and `metadata`; whatever else it has becomes metadata. Without an `id`, one is derived from the
    record's content, so that it stays the same when lines are added or moved.
    """
    reader = _Reader(file)
    try:
        read = reader.json_lines() if file.path.suffix.lower() in {".jsonl", ".ndjson"} else reader.whole()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            [Problem(str(file.path), f"the dataset cannot be read: {error}; see dataset.path")]
        ) from error
    if reader.problems:
        raise ConfigError(reader.problems)
    if not reader.lines:
        raise ConfigError([Problem(str(file.path), "the dataset is empty; add at least one question")])
    lines = array("Q", reader.lines.values())
    return Dataset(file.path, Samples(list(reader.lines), read), reader.digest.hexdigest(), lines)


class _Reader:
    """Goes through a file once, and collects its problems."""

    def __init__(self, file: DatasetFile) -> None:
        self.file = file
        self.path = file.path
        self.problems: list[Problem] = []
        self.lines: dict[str, int] = {}
        self.digest = hashlib.sha256()

    def json_lines(self) -> Callable[[int], Sample]:
        """Check a JSONL file line by line; returns what reads a sample again."""
        starts, checks = array("Q"), array("L")
        end = 0
        with self.path.open("rb") as content:
            for number, line in enumerate(content, start=1):
                self.digest.update(line)
                start, end = end, end + len(line)
                text = line.rstrip(b"\r\n").removeprefix(BOM_UTF8)
                if text.strip() and self._json(number, text):
                    starts.append(start)
                    checks.append(crc32(line))
        return partial(_sample_again, LineFile(self.path, starts, checks), self.file)

    def whole(self) -> Callable[[int], Sample]:
        """Read a YAML or CSV file."""
        content = self.path.read_bytes()
        self.digest.update(content)
        records = _records(self.file, content.decode("utf-8-sig"), self.problems)
        samples = [sample for line, record in records if (sample := self._known(line, record))]
        return samples.__getitem__

    def _json(self, number: int, line: bytes) -> Sample | None:
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            line.decode()  # bytes that are no text are told as such
            place = f"{self.path}:{number}:{error.colno}"
            self.problems.append(Problem(place, f"not valid JSON: {error.msg}; one object a line"))
            return None
        return self._known(number, record)

    def _known(self, line: int, record: Any) -> Sample | None:
        """Check a record and its id; `None` for one with a problem."""
        try:
            if not isinstance(record, dict):
                raise ValueError("expected an object with a question")
            sample = _sample(record, self.file)
            if sample.id in self.lines:
                how = "the id" if "id" in record else "the content, and so the derived id,"
                raise ValueError(f"{how} {sample.id!r} stands already in line {self.lines[sample.id]}")
        except (ValueError, RecursionError) as error:
            problem = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            self.problems.append(Problem(f"{self.path}:{line}", problem))
            return None
        self.lines[intern(sample.id)] = line
        return sample


def _sample_again(lines: LineFile, file: DatasetFile, position: int) -> Sample:
    return _sample(orjson.loads(lines[position].removeprefix(BOM_UTF8)), file)


def _records(file: DatasetFile, text: str, problems: list[Problem]) -> Iterator[tuple[int, Any]]:
    """Yield each record with its line."""
    path = file.path
    suffix = path.suffix.lower()
    if suffix in {".yaml", ".yml"}:
        yield from _yaml_items(file, text)
    elif suffix == ".csv":
        yield from _csv_rows(path, text, problems)
    else:
        problems.append(Problem(str(path), "a dataset is a .jsonl, .yaml or .csv file"))


def _yaml_items(file: DatasetFile, text: str) -> Iterator[tuple[int, Any]]:
    if not text.strip():
        return
    source = Source.parse(text, str(file.path), file.path.parent)
    items = source.data
    if not isinstance(items, list):
        raise ConfigError([Problem(source.place(()), "expected a list of records, each with a question")])
    for index, item in enumerate(items):
        # What is a text in the end stays as it is written: `yes` is an answer, and 012 an id.
        texts = {key: source.written((index, key)) for key in ("id", file.answer_key)} if isinstance(item, dict) else {}
        yield source.line((index,)), {**item, **{key: text for key, text in texts.items() if text}} if texts else item


def _csv_rows(path: Path, text: str, problems: list[Problem]) -> Iterator[tuple[int, Any]]:
    csv.field_size_limit(2**31 - 1)  # the default of 128 KiB refuses a long history
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        columns = rows.fieldnames or ()
        if repeated := [name for index, name in enumerate(columns) if name in columns[:index]]:
            problems.append(Problem(f"{path}:1", f"the column {repeated[0]!r} stands there twice; keep one"))
            return
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
    elif answer is not None and not answer.strip():
        answer = None  # as in a CSV file, where an empty cell is none
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
