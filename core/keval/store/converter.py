"""Manifest and summary as JSON, and back. Records with a field for unknown keys keep them; others leave them out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import orjson

from keval.config.structure import structure
from keval.errors import RunError
from keval.files import read_json
from keval.records.manifest import FORMAT, Manifest
from keval.store.lines import dump

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """Return a record, with the records in it, as JSON gives it back. The open end of a scale is `None`."""
    return orjson.loads(dump(value))


def to_json(record: Any) -> bytes:
    """Return a record as indented JSON that ends in a newline."""
    return orjson.dumps(to_plain(record), option=orjson.OPT_INDENT_2) + b"\n"


def from_plain(cls: type[T], data: Any, path: Path) -> T:
    """Structure plain data into a record. Raises RunError with the file, the first error and the number of others."""
    record, errors = structure(cls, data, (), Path(), variables=False, strict=False)
    if record is None:
        first = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        where = ".".join(map(str, first.path))
        raise RunError(f"{path} is damaged: {where + ': ' if where else ''}{first.message}{more}; restore the file")
    return record


def read_manifest(path: Path) -> Manifest:
    """Read what a run was made of. Raises RunError."""
    data = read_json(path)
    if not isinstance(data, dict):
        raise RunError(f"{path} is no manifest")
    if data.get("format") != FORMAT:
        raise RunError(
            f"{path} has format {data.get('format')}, and this version of keval reads format {FORMAT} only;"
            " use the version that made the run, or run the evaluation again"
        )
    return _consistent(from_plain(Manifest, data, path), path)


def _consistent(manifest: Manifest, path: Path) -> Manifest:
    """Return a manifest whose parts refer to each other. Raises RunError."""
    lacking = [*_absent(manifest.config, "agents", manifest.agents)]
    lacking += _absent(manifest.config, "conditions", manifest.conditions)
    lacking += [f"no condition {manifest.baseline!r}"] if manifest.baseline not in manifest.conditions else []
    for entry in manifest.scorers:
        if entry.judge is not None and entry.judge not in manifest.judges:
            lacking.append(f"no judge {entry.judge!r}")
        if (entry.rubric is not None or entry.judge is not None) and entry.rubric not in manifest.rubrics:
            lacking.append(f"no rubric {entry.rubric!r}")
    if lacking:
        raise RunError(f"{path} is damaged: it has {lacking[0]}, which it refers to; restore the file")
    return manifest


def _absent(config: Mapping[str, Any], section: str, labels: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a manifest's config lacks of the agents or conditions that the run had."""
    given = config.get(section)
    for label in labels:
        # A condition may be empty.
        found = given.get(label, ...) if isinstance(given, dict) else ...
        if not (isinstance(found, dict) or (found is None and section == "conditions")):
            yield f"no config.{section}.{label}"
