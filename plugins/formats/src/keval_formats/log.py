"""A log of another tool, as its module reads it: answers that exist already, with their questions and scores."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs

from keval.errors import ConfigError, Problem


@attrs.frozen
class Entry:
    """An answer of a log: its question as a record of a dataset, its line for `recorded`, what is `unmatched` of it."""

    question: dict[str, Any]
    answer: dict[str, Any]
    unmatched: Iterable[str] = ()


@attrs.frozen
class Log:
    """A log: its parts, read anew each time, and what reads the entries of a part.

    `scale` is that of the scores; `None` if only the values tell.
    """

    path: Path
    tool: str
    name: str
    model: str
    parts: Callable[[], Iterator[Any]]
    read: Callable[[Any], Iterable[Entry]]
    scale: tuple[float, float] = (0.0, 1.0)
    notices: Iterable[str] = ()
    unmatched: Iterable[str] = ()

    def entries(self) -> Iterator[Entry]:
        """Yield each answer. Raises ConfigError: a part is not as the tool writes it."""
        for part in self.parts():
            try:
                yield from self.read(part)
            except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
                told = f"an answer is not as {self.tool} writes it: {error!r}"
                raise ConfigError([Problem(str(self.path), told)]) from error


def label_of(name: str) -> str:
    """Return a name as a label of a config."""
    return re.sub(r"[^\w.+ -]+| (?= )", "_", name).strip("_ ") or "recorded"
