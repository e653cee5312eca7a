"""The environment's variables in plain data: `${VAR}` and `${VAR:-default}` are found, filled in and hidden."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from keval.config.source import KeyPath
from keval.errors import FieldError

_TELLING = 4
"""Characters from which a value in a message is taken for that of the variable."""
VARIABLE = re.compile(r"(?P<literal>\$\$\{)|\$\{(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\})?")
SECRET_OPTION = re.compile(r"(?:.*_)?(?:api_key|password|private_key|secret|token)")
"""Names of options that hold a secret. Only a variable may stand there, because a run keeps its config."""
_ONLY_VARIABLE = re.compile(r"\$\{\w+(?::-)?\}|")
_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:@]*:([^\s/?#@]+)@")

_remembered: ContextVar[Mapping[str, str]] = ContextVar("remembered", default=MappingProxyType({}))


@contextmanager
def filling(variables: Mapping[str, str]) -> Iterator[None]:
    """In this block, variables that the environment does not have are taken from `variables`."""
    token = _remembered.set(variables)
    try:
        yield
    finally:
        _remembered.reset(token)


def variable(name: str) -> str | None:
    """Return the value of a variable; `None` if neither the environment nor `filling` has it."""
    return os.environ.get(name, _remembered.get().get(name))


def texts(data: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Yield every text in plain data, with its path."""
    if isinstance(data, dict | list | tuple):
        for step, item in data.items() if isinstance(data, dict) else enumerate(data):
            yield from texts(item, (*path, step))
    elif isinstance(data, str):
        yield path, data


def variables_in(data: Any) -> Iterator[str]:
    """Yield the names of the variables that plain data refers to, as often as it does."""
    for _, text in texts(data):
        yield from (match["name"] for match in VARIABLE.finditer(text) if match["name"])


class Interpolated(str):
    """A text in which variables were filled in. Unlike a plain text, it may be read as a number or boolean.

    `written` is the text with its variables, which errors show in place of their values.
    """

    __slots__ = ("written",)

    written: str

    @classmethod
    def of(cls, text: str, written: str) -> Interpolated:
        """Return a text, and how it was written."""
        filled = cls(text)
        filled.written = written
        return filled


def interpolate(data: Any, path: KeyPath) -> tuple[Any, list[FieldError]]:
    """Fill in the environment's variables; returns the data, and an error for each path at which that failed."""
    errors: list[FieldError] = []

    def walk(value: Any, at: KeyPath) -> Any:
        if isinstance(value, dict):
            return {key: walk(item, (*at, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item, (*at, index)) for index, item in enumerate(value)]
        if not isinstance(value, str) or "${" not in value:
            return value

        def fill(match: re.Match[str]) -> str:
            name, default = match["name"], match["default"]
            known = variable(name) if name else None
            if match["literal"]:
                return "${"
            if name is None:
                problem = "this is no variable; write ${NAME}, ${NAME:-default}, or $${ for a plain ${"
            elif default is not None and "${" in default:
                problem = f"a default is plain text; ${{{name}:-...}} holds another variable"
            elif known is not None and (known or default is None):
                # As `:-` in a shell, a default also takes the place of an empty variable.
                return known
            elif default is not None:
                return str(default)
            else:
                problem = f"the environment variable {name} is not set; export it or write ${{{name}:-default}}"
            errors.append(FieldError(at, problem))
            return "" if name and default is None else match[0]

        return Interpolated.of(VARIABLE.sub(fill, value), value)

    return walk(data, path), errors


def literal(data: Any) -> Any:
    """Return plain data in whose texts `interpolate` finds no variable, and which it gives back as it was."""
    if isinstance(data, Mapping):
        return {key: literal(item) for key, item in data.items()}
    if isinstance(data, list | tuple):
        return [literal(item) for item in data]
    return data.replace("${", "$${") if isinstance(data, str) else data


def hide_values(message: str, data: Any) -> str:
    """Return a message with the variables of `data` as they are written, in place of their values.

    What raises an error about a value, such as the validator of a plugin's option, does not know where it came from.
    """
    # Longest first, as one value may be a part of another.
    for name in sorted({*variables_in(data)}, key=lambda name: -len(os.environ.get(name, ""))):
        value = os.environ.get(name, "")
        if len(value) >= _TELLING:
            # Messages with `!r` have the value with its escapes.
            for form in (value, repr(value)[1:-1]):
                message = message.replace(form, f"${{{name}}}")
    return message


def written_secrets(options: Mapping[Any, Any], path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Yield where the options at `path` have a secret that is written out, in `auth` too, and what to do."""
    auth = options.get("auth")
    for at, mapping in (((*path, "auth"), auth if isinstance(auth, dict) else {}), (path, options)):
        for key, value in mapping.items():
            if SECRET_OPTION.fullmatch(str(key)) and isinstance(value, str) and not _ONLY_VARIABLE.fullmatch(value):
                yield (*at, key), f"write {key}: ${{{key.upper()}}} and export that"
    for at, text in texts(options, path):
        # NUL stands for each variable, so that only a password that is written out counts.
        if any(password.strip("\0") for password in _PASSWORD.findall(VARIABLE.sub("\0", text))):
            yield at, "use a variable such as ${PASSWORD} for the password in the address, and export it"
