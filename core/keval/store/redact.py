"""Redaction: finding the values that must not reach the disk, and replacing them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

import attrs
import orjson

from keval.config.evaluation import Evaluation
from keval.models import Endpoint
from keval.store.jsonl import dump

__all__ = ["Redactor"]

_SHORTEST = 6
"""Shorter values are not replaced, because they occur in ordinary text."""

_SECRET_NAME = re.compile(r"key|tok|secret|passw|credential|auth|cookie", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{(\w+)")
# Keys whose values keval itself writes, and keys of the records in which it does; other values are redacted.
_OWN_KEYS = {"id", "trial", "sample", "agent", "model", "condition", "repetition", "metric", "judge", "role", "stage"}
_OWN_RECORDS = {"transcript", "messages", "attempts", "failure", "judgement"}


@attrs.frozen
class Redactor:
    """Replaces secrets in lines of JSON, but not in values that keval itself wrote."""

    _secrets: tuple[str, ...] = ()
    _names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, evaluation: Evaluation, endpoints: Iterable[Endpoint]) -> Redactor:
        """Collect the keys of the models, and the values of secret variables in plugins' options.

        A variable is secret if its name, or that of its option, contains a word such as key, token, secret or password,
        or if it is below `headers`.
        """
        sections = ("agents", "contexts", "judges", "rubrics", "metrics", "middleware", "plugins")
        specs = [spec for section in sections for spec in getattr(evaluation, section)]
        specs.append(evaluation.executor)
        named = {name for spec in specs for name in _variables(spec.options, secret=False)}
        values = {*(endpoint.api_key for endpoint in endpoints), *(os.environ.get(name, "") for name in named)}
        # Longest first, so that a secret that contains another one is replaced completely.
        secrets = sorted((value for value in values if len(value) >= _SHORTEST), key=len, reverse=True)
        return cls(tuple(secrets), frozenset(named))

    def __call__(self, line: bytes) -> bytes:
        """Return a line with `[secret]` in place of each secret in it."""
        if not any(dump(secret)[1:-1] in line for secret in self._secrets):
            return line
        return dump(self.data(orjson.loads(line), own=True))

    def hides(self, variable: str, value: str) -> bool:
        """Return whether a variable is secret, or its value holds a secret."""
        return variable in self._names or bool(_SECRET_NAME.search(variable)) or self.data(value) != value

    def data(self, value: Any, *, own: bool = False) -> Any:
        """Return plain data with `[secret]` in place of each secret; with `own`, keval itself wrote the keys."""
        if isinstance(value, dict):
            return {
                key if own else self.data(key): item
                if own and key in _OWN_KEYS
                else self.data(item, own=own and key in _OWN_RECORDS)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self.data(item, own=own) for item in value]
        if isinstance(value, str):
            for secret in self._secrets:
                value = value.replace(secret, "[secret]")
        return value


def _variables(data: Any, *, secret: bool) -> Iterator[str]:
    """Yield the names of variables that are secret by their name or place."""
    if isinstance(data, dict):
        for key, value in data.items():
            here = secret or key == "headers" or bool(_SECRET_NAME.search(str(key)))
            yield from _variables(value, secret=here)
    elif isinstance(data, list):
        for item in data:
            yield from _variables(item, secret=secret)
    elif isinstance(data, str):
        yield from (name for name in _VARIABLE.findall(data) if secret or _SECRET_NAME.search(name))
