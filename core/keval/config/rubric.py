"""Reading a rubric from a YAML file."""

from __future__ import annotations

from pathlib import Path

from keval.config.source import Source
from keval.config.structure import structure
from keval.errors import ConfigError, Problem
from keval.scores import Rubric

__all__ = ["read_rubric"]


def read_rubric(path: Path) -> Rubric:
    """Read a rubric: `instructions` and `levels`, and `name`, which is the file's by default.

    Variables of the environment are not filled in, so that a rubric is the same everywhere.

    Raises ConfigError with every problem, each at its place.
    """
    source = Source.read(path)
    if not isinstance(source.data, dict):
        raise ConfigError([Problem(source.place(()), "a rubric is a mapping with instructions: and levels:")])
    data = {"name": path.stem, **source.data}
    rubric, field_errors = structure(Rubric, data, (), source.base, variables=False)
    if rubric is None:
        raise ConfigError(
            [
                Problem(source.place(field_error.path, key=field_error.at_key), field_error.message)
                for field_error in field_errors
            ]
        )
    return rubric
