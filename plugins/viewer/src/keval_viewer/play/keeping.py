"""Keeping questions: one that was asked in a play is appended to a dataset, of which all else stays as it is."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from textwrap import indent
from typing import Any

import attrs
import orjson
import yaml

from keval import Sample
from keval.plugin import ConfigError, DatasetFile, Source, dump, explained, read_dataset, sample_of
from keval_viewer.play.as_yaml import yaml_text
from keval_viewer.play.records import KeptSample, PlayError

__all__ = ["keep"]


def keep(sample: Sample, file: DatasetFile) -> KeptSample:
    """Append a sample to a dataset, which is made if there is none.

    Raises:
        PlayError: the file is neither JSON lines nor YAML, or cannot be appended to.
        ConfigError: it is no dataset.
        RunError: it cannot be written.
    """
    writing = {"jsonl": _json_line, "yaml": _yaml_item, "yml": _yaml_item}.get(file.format)
    if writing is None:
        raise PlayError(f"{file.path}: questions are kept in JSON lines or YAML; name a file that ends so")
    exists = file.path.exists() and file.path.stat().st_size > 0
    taken = read_dataset(file).samples.ids if exists else ()
    kept = attrs.evolve(sample, id=_free_id(sample.id, taken), withheld=(), expect=())
    record = _record(kept, file)
    added = writing(record, file.path.read_bytes() if exists else b"", file.path)
    if sample_of(orjson.loads(dump(record)), file) != kept:
        raise PlayError(f"{file.path}: the question cannot be written so that it would be read as it was asked")
    with explained(file.path):
        file.path.parent.mkdir(parents=True, exist_ok=True)
        with file.path.open("ab") as target:
            target.write(added)
            target.flush()
            os.fsync(target.fileno())
    return KeptSample(file.path, kept.id, added.decode().strip("\n"))


def _record(sample: Sample, file: DatasetFile) -> dict[str, Any]:
    """Return a sample as a record, without what it does not have."""
    turns = sample.turns
    if turns[:1] == (sample.question,):
        turns = sample.asked  # whose first one readers take for the question
    history = [{"role": message.role, "content": message.text} for message in sample.history]
    given: Mapping[str, Any] = {
        "id": sample.id,
        file.question_key: sample.question,
        "turns": [*turns],
        "history": history,
        file.answer_key: sample.answer,
        "facts": {**sample.facts},
        "metadata": {**sample.metadata},
    }
    return {key: value for key, value in given.items() if value not in (None, [], {})}


def _free_id(name: str, taken: Collection[str]) -> str:
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    known = {*taken}
    return next(each for each in names if each not in known)


def _json_line(record: Mapping[str, Any], before: bytes, path: Path) -> bytes:
    line = dump(record) + b"\n"
    return line if not before or before.endswith(b"\n") else b"\n" + line


def _yaml_item(record: Mapping[str, Any], before: bytes, path: Path) -> bytes:
    """Return the record as an item of the list that the file is, indented as its other items."""
    column, text = 0, before.decode("utf-8-sig")
    if text.strip():
        root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        if root is not None:
            column = root.start_mark.column
    item = indent(yaml_text([dict(record)]), " " * column)
    added = item if not text or text.endswith("\n") else f"\n{item}"
    had = Source.parse(text, str(path), path.parent).data if text.strip() else []
    try:
        now = Source.parse(text + added, str(path), path.parent).data
    except ConfigError:
        now = None
    if now != [*had, record]:
        raise PlayError(f"{path}: a question is appended to a list with an item a line, `- question: …`")
    return added.encode()
