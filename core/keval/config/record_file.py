"""Reading a record of any class from a YAML file of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from keval.config.source import Source
from keval.config.structure import structure
from keval.errors import ConfigError, Problem

__all__ = ["read_record"]

T = TypeVar("T")


def read_record(cls: type[T], path: Path, *, about: str, defaults: Mapping[str, Any] | None = None) -> T:
    """Read a YAML file into the attrs class `cls`; `about` tells what is in such a file, for errors.

    `defaults` are values of keys that the file lacks. Variables of the environment are not filled in, so that the file
    is the same everywhere.

    Raises ConfigError with every problem, each at its place.
    """
    source = Source.read(path)
    if not isinstance(source.data, dict):
        raise ConfigError([Problem(source.place(()), about)])
    record, errors = structure(cls, {**(defaults or {}), **source.data}, (), source.base, variables=False)
    if record is None:
        raise ConfigError([Problem(source.place(error.path, key=error.at_key), error.message) for error in errors])
    return record
