"""Formats: how evaluations are written for other tools, whose files keval reads as well.

The group `keval.formats` leads from each word of a format to it: a key of such a file, a text in it, or the file's
name. A config without such words costs no import.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import attrs

from keval.errors import FieldError
from keval.seams import registry


@attrs.frozen
class Translation:
    """A file's data in keval's own words; `moves` maps the paths of parts as they were written to those in `data`.

    Problems, notices for the user, and what is `unmatched`, as nothing in keval is equivalent, have the paths as
    written.
    """

    data: dict[str, Any]
    moves: Mapping[tuple[str | int, ...], tuple[str | int, ...]] = attrs.field(factory=dict)
    problems: tuple[FieldError, ...] = ()
    notices: tuple[FieldError, ...] = ()
    unmatched: tuple[FieldError, ...] = ()


class Format(Protocol):
    """How evaluations are written for another tool."""

    def translate(self, data: dict[str, Any], path: Path) -> Translation | None:
        """Translate a file that has one of the format's words, `None` if it is in another one; `data` stays as it is.

        Paths in what is returned are relative to the file's folder.
        """
        ...

    def extend_schema(self, properties: dict[str, Any]) -> None:
        """Add the keys that a config may have in this format to the JSON Schema of a config's sections."""
        ...


def translate(data: dict[str, Any], path: Path) -> Translation:
    """Translate a file that has a format's words, as its name, a key or a text."""
    written = json.dumps([path.name, {key: value for key, value in data.items() if key != "dataset"}])
    words = (word for word in dict.fromkeys(re.findall(r'"([\w.]+)"', written)) if registry.has("keval.formats", word))
    found = (registry.load(registry.find("keval.formats", word)).translate(data, path) for word in words)
    return next(filter(None, found), None) or Translation(data)
