"""The texts that a run was made with and keeps, and the lines in which two texts differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import Any, TypeAlias

from keval.errors import RunError
from keval.records.servers import ServerListing
from keval.store.run import Run
from keval.store.serialization import dump

Texts: TypeAlias = Mapping[str, Mapping[str, str]]
"""Texts by kind, such as `description of`, and by the name of what they are of."""
_LINE = re.compile(r"(?<=[.!?])[ \t]+(?=\S)|\n")
"""Where a line ends: a sentence is one, as many a description has all of its sentences on one line."""

_GAP = re.compile(r"(?<=\S)\s+")
"""White space, but not that at the beginning of a line."""


def texts_of(run: Run) -> Texts:
    """Return what servers say of each tool and of themselves, and what contexts of texts give, as agents got it.

    A definition is what there is of a tool besides its description: a line for each value at its path. Raises RunError.
    """
    found: dict[str, dict[str, str]] = {"instructions of": {}, "text of": {}, "description of": {}, "definition of": {}}
    for label, condition in run.manifest.conditions.items():
        for name, server in condition.servers.items():
            if (listing := listing_of(run, server.listing)) is None:
                continue
            found["instructions of"][f"{name} under {label}"] = listing.instructions or ""
            for tool in listing.tools:
                of = f"{tool.get('name')} of {name} under {label}"
                found["description of"][of], found["definition of"][of] = words_of(tool)
        for name, context in condition.texts.items():
            for part, sha256 in context.texts.items():
                found["text of"][f"{part} of {name} under {label}"] = run.blob(sha256).decode("utf-8", "replace")
    return found


def words_of(tool: Mapping[str, Any]) -> tuple[str, str]:
    """Return a tool's description, and its definition besides that."""
    rest = leaves("", {key: value for key, value in tool.items() if key not in ("name", "description")})
    definition = sorted(f"{path}: {dump(value).decode()}" for path, value in rest)
    return str(tool.get("description") or ""), "\n".join(definition)


def listing_of(run: Run, sha256: str | None) -> ServerListing | None:
    """Return a listing that the run keeps; `None` if it keeps none. Raises RunError."""
    if sha256 is None:
        return None
    try:
        return ServerListing.parse(run.blob(sha256))
    except ValueError as error:
        raise RunError(f"{run.path / 'blobs' / sha256} is no listing of a server: {error}") from error


def diff_of(before: str, now: str, around: int = 1) -> tuple[str, ...]:
    """Return the sentences and lines in which two texts differ as `diff -u` has them, with so many around each.

    Where something is left out between those stands a `…`.
    """
    old, new = ([_GAP.sub(" ", line.rstrip()) for line in _LINE.split(text) if line.strip()] for text in (before, now))
    lines = [*unified_diff(old, new, n=around, lineterm="")][3:]  # without its head
    kept = tuple("…" if line.startswith("@@") else line for line in lines if around or not line.startswith("@@"))
    return kept or ("… white space alone",)


def leaves(path: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield the values of nested mappings, each at its path."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from leaves(f"{path}.{key}" if path else str(key), each)
    else:
        yield path, value


def needs_diff(before: str, now: str) -> bool:
    """Return whether a text has more than one sentence or line, or two differ in nothing that one line shows."""
    return any(_LINE.search(text.strip()) for text in (before, now)) or before.split() == now.split()
