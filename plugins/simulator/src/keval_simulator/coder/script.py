"""What the simulated coding model does: tasks by the words of the question, and the steps of each."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import attrs
from attrs.validators import ge, le, min_len, optional

from keval.plugin import read_record

_FORGETS = 0.05


@attrs.frozen
class FileText:
    """A text for a file, by its path in the working folder."""

    path: str
    text: str


@attrs.frozen
class Replacement:
    """A piece of one line of a file, and what stands in its place."""

    path: str
    old: str
    new: str


@attrs.frozen
class Step:
    """One thing to do. It is done only if the model was told the text `told`, and none of the text `unless`.

    `chance` is how often it is done then: by default always, or in 19 of 20 cases where it needs to be told.
    """

    write: FileText | None = None
    append: FileText | None = None
    replace: Replacement | None = None
    run: str | None = None
    read: str | None = None
    say: str | None = None
    told: str | None = None
    unless: str | None = None
    chance: float | None = attrs.field(default=None, validator=optional([ge(0), le(1)]))

    def __attrs_post_init__(self) -> None:
        if sum(value is not None for value in self.actions) != 1:
            raise ValueError("a step has one of write, append, replace, run, read and say")

    @property
    def actions(self) -> tuple[object, ...]:
        """What it may do, one of which is set."""
        return self.write, self.append, self.replace, self.run, self.read, self.say

    def is_due(self, told: str, draw: float) -> bool:
        """Return whether it is to be done by a model that was `told` this; `draw` is between 0 and 1."""
        if (self.told is not None and self.told not in told) or (self.unless is not None and self.unless in told):
            return False
        certain = 1.0 if self.told is None else 1.0 - _FORGETS
        return draw < (certain if self.chance is None else self.chance)


@attrs.frozen
class Task:
    """What to do when all `words` stand in the question.

    Before, it reads each skill whose description has all the words of `skill`, which are by default those of the task.
    """

    words: tuple[str, ...] = attrs.field(validator=min_len(1))
    steps: tuple[Step, ...] = attrs.field(validator=min_len(1))
    skill: tuple[str, ...] = ()

    def fits(self, question: str) -> bool:
        """Return whether it is what a question asks for."""
        return _has(question, self.words)

    def reads(self, description: str) -> bool:
        """Return whether a skill is read before, by its description."""
        return _has(description, self.skill or self.words)


def _has(text: str, words: tuple[str, ...]) -> bool:
    return all(word.lower() in text.lower() for word in words)


@attrs.frozen
class Script:
    """The tasks, of which the first that fits a question is done."""

    tasks: tuple[Task, ...] = attrs.field(validator=min_len(1))

    @classmethod
    def read(cls, path: Path) -> Script:
        """Read a YAML file. Raises ConfigError with every problem, each at its place."""
        return read_record(cls, path, about="a script of the simulated coding model is a mapping with tasks:")


@lru_cache(maxsize=64)
def script_at(path: Path, changed: int) -> Script:
    """Return the script in a file that was `changed` then, read once. Raises ConfigError."""
    return Script.read(path)
