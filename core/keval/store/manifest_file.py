"""manifest.json of a run: read whole, and refused where its parts do not refer to each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keval.errors import RunError
from keval.manifest import FORMAT, Manifest
from keval.store.converter import from_plain
from keval.store.files import read_json

__all__ = ["read_manifest"]


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
