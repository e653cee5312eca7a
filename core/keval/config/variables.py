"""The environment's variables in plain data: `${VAR}` and `${VAR:-default}` are found, filled in and hidden."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from keval.config.source import KeyPath
from keval.records.manifest import Manifest

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


def variables_in(data: Any) -> Iterator[str]:
    """Yield the names of the variables that plain data refers to, as often as it does."""
    if isinstance(data, dict):
        for value in data.values():
            yield from variables_in(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from variables_in(value)
    elif isinstance(data, str):
        yield from (match["name"] for match in VARIABLE.finditer(data) if match["name"])


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


def interpolate(data: Any, path: KeyPath) -> tuple[Any, list[tuple[KeyPath, str]]]:
    """Fill in the environment's variables; returns the data, and a message per path at which that failed."""
    problems: list[tuple[KeyPath, str]] = []

    def walk(value: Any, at: KeyPath) -> Any:
        if isinstance(value, dict):
            return {key: walk(item, (*at, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item, (*at, index)) for index, item in enumerate(value)]
        if not isinstance(value, str) or "${" not in value:
            return value

        def fill(match: re.Match[str]) -> str:
            name, default = match["name"], match["default"]
            if match["literal"]:
                return "${"
            if name is None:
                problems.append((at, "this is no variable; write ${NAME}, ${NAME:-default}, or $${ for a plain ${"))
                return match[0]
            if default is not None and "${" in default:
                problems.append((at, f"a default is plain text; ${{{name}:-...}} holds another variable"))
                return match[0]
            known = variable(name)
            if known is not None and (known or default is None):
                return known
            if default is None:
                problems.append(
                    (at, f"the environment variable {name} is not set; export it or write ${{{name}:-default}}")
                )
                return ""
            return default

        return Interpolated.of(VARIABLE.sub(fill, value), value)

    return walk(data, path), problems


def hide_values(message: str, data: Any) -> str:
    """Return a message with the variables of `data` as they are written, in place of their values.

    What raises an error about a value, such as the validator of a plugin's option, does not know where it came from.
    """
    for name in sorted({*variables_in(data)}, key=lambda name: -len(os.environ.get(name, ""))):
        value = os.environ.get(name, "")
        if len(value) >= _TELLING:
            for form in (value, repr(value)[1:-1]):
                message = message.replace(form, f"${{{name}}}")
    return message


def written_secrets(options: Mapping[Any, Any], path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Yield where the options at `path` have a secret that is written out, in `auth` too, and what to do."""
    for key, value in options.items():
        if key == "auth" and isinstance(value, dict):
            yield from _written_options(value, (*path, key))
    yield from _written_options(options, path)
    for at in _written_passwords(options, path):
        yield at, "write the password in the address as a variable, such as ${PASSWORD}, and export that"


def _written_options(options: Mapping[Any, Any], path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    for key, value in options.items():
        if SECRET_OPTION.fullmatch(str(key)) and isinstance(value, str) and not _ONLY_VARIABLE.fullmatch(value):
            yield (*path, key), f"write {key}: ${{{key.upper()}}} and export that"


def _written_passwords(data: Any, path: KeyPath) -> Iterator[KeyPath]:
    """Yield where a text of `data`, which stands at `path`, has an address with a password that is written out."""
    if isinstance(data, dict | list):
        for step, item in data.items() if isinstance(data, dict) else enumerate(data):
            yield from _written_passwords(item, (*path, step))
    elif isinstance(data, str):
        found = _PASSWORD.findall(VARIABLE.sub("\0", data))
        if any(password.strip("\0") for password in found):
            yield path


def remembered(manifest: Manifest, *, asks_live: bool = False) -> dict[str, str]:
    """Return the variables of a recorded run's config, with a placeholder for each that was secret and is not set.

    A placeholder can stand where an address is expected, too. There is none if models and servers may be asked live.
    """
    known = {name: value for name, value in manifest.variables.items() if value is not None}
    if asks_live:
        return known
    secret = {*variables_in(manifest.config)} - manifest.variables.keys()
    return known | {name: _placeholder(name) for name in secret if variable(name) is None}


def _placeholder(name: str) -> str:
    return f"http://{hashlib.sha256(name.encode()).hexdigest()[:12]}.recording.invalid"
