"""Reading a rubric from a YAML file."""

from __future__ import annotations

from pathlib import Path

from keval.config.record_file import read_record
from keval.scores import Rubric

__all__ = ["read_rubric"]


def read_rubric(path: Path) -> Rubric:
    """Read a rubric: `instructions` and `levels`, and `name`, which is the file's by default.

    Raises ConfigError with every problem, each at its place.
    """
    about = "a rubric is a mapping with instructions: and levels:"
    return read_record(Rubric, path, about=about, defaults={"name": path.stem})
