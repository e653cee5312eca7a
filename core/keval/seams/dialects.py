"""Dialects: how configs are written for other tools, which keval reads as well.

The group `keval.dialects` leads from each word of a dialect to it, a key of a config. A config
without such words costs no import.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs

from keval.errors import FieldError
from keval.seams import registry

_GROUP = "keval.dialects"


@attrs.frozen
class Translation:
    """A config's data in keval's own words; `moves` maps the paths of parts as they were written to those in `data`.

    Problems and notices for the user have the paths as written.
    """

    data: dict[str, Any]
    moves: Mapping[tuple[str | int, ...], tuple[str | int, ...]] = attrs.field(factory=dict)
    problems: tuple[FieldError, ...] = ()
    notices: tuple[FieldError, ...] = ()


class Dialect(Protocol):
    """How configs are written for another tool."""

    def translate(self, data: dict[str, Any], folder: Path) -> Translation:
        """Translate a config that lies in `folder`, and has one of the dialect's words; `data` stays as it is."""
        ...

    def extend_schema(self, properties: dict[str, Any]) -> None:
        """Add the dialect's keys to the JSON Schema of a config's sections."""
        ...


def dialect_of(words: Iterable[str]) -> Dialect | None:
    """Return the dialect that has one of the words, if one is installed."""
    known = {component.name: component for component in registry.components(_GROUP)}
    return next((registry.load(known[word]) for word in words if word in known), None)


def dialects() -> Sequence[Dialect]:
    """Return every dialect that is installed."""
    # A dialect has an entry point for each of its words.
    return [registry.load(each) for each in {each.target: each for each in registry.components(_GROUP)}.values()]


def translate(data: dict[str, Any], folder: Path) -> Translation:
    """Translate a config that has a dialect's words."""
    dialect = dialect_of(_words({key: value for key, value in data.items() if key != "dataset"}))
    return dialect.translate(data, folder) if dialect else Translation(data)


def unread(word: str) -> str | None:
    """Return what to say of a key that belongs to a dialect whose package is not installed, if it does."""
    from keval.seams.installation import missing_package, package_of  # only who needs a remedy waits for it

    package = None if dialect_of([word]) else package_of(_GROUP, word)
    return package and f"the key {word!r} {missing_package(package)}"


def _words(data: Any) -> Iterator[str]:
    """Yield what may be the words of a dialect: keys and texts, each with what stands in it."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict | list):
        for item in data:
            yield from _words(item)
        for value in data.values() if isinstance(data, dict) else ():
            yield from _words(value)
