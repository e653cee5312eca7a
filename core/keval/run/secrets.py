"""Secrets: what must not reach the disk, and taking it out of what does."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from keval.config.evaluation import Evaluation
from keval.models import Endpoint
from keval.run.lines import dump

__all__ = ["Scrubber"]

_SECRET_FIELDS = ("headers", "env")
_SHORTEST = 6
"""A shorter value is no secret worth the name, and would be found in innocent text."""


@attrs.frozen
class Scrubber:
    """Takes secrets out of lines of JSON."""

    _secrets: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, evaluation: Evaluation, endpoints: Iterable[Endpoint]) -> Scrubber:
        """Know the keys of the models, and every variable that the config puts into headers or env of a context."""
        named = (name for use in evaluation.contexts for name in _variables(use.options, secret=False))
        values = {*(endpoint.api_key for endpoint in endpoints), *(os.environ.get(name, "") for name in named)}
        # Longest first, so that a secret that contains another leaves nothing of itself.
        secrets = sorted((value for value in values if len(value) >= _SHORTEST), key=len, reverse=True)
        return cls(tuple(dump(secret)[1:-1] for secret in secrets))

    def __call__(self, line: bytes) -> bytes:
        """Return the line with `[secret]` in place of each secret."""
        for secret in self._secrets:
            line = line.replace(secret, b"[secret]")
        return line


def _variables(data: Any, *, secret: bool) -> Iterator[str]:
    """The names of the variables below headers and env."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _variables(value, secret=secret or key in _SECRET_FIELDS)
    elif isinstance(data, str) and secret:
        yield from re.findall(r"\$\{(\w+)", data)
