"""Keys: in variables of the environment, in files that variables name, and in the system's keyring."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import attrs

from keval.errors import PluginWarning, PreflightError
from keval_clients.network import key_problem
from keval_clients.replies import what_failed

_SERVICE = "keval"
"""The service under which keys stand in the system's keyring."""


@attrs.frozen
class Key:
    """A key that was found: in `variable`, or beside it in the place that `where` says."""

    value: str = attrs.field(repr=False)
    variable: str
    where: str


def find_key(variables: Sequence[str], *, ask_keyring: bool = True) -> Key | None:
    """Return the key of the first of these variables that is set, or else of its file, or else of the keyring.

    Blanks and newlines around it are left out, as they come with files. Raises PreflightError: it can be no key.
    """
    set_variables = {name: os.environ[name] for name in variables if os.environ.get(name)}
    for name, text in set_variables.items():
        return _key(text, name, name)
    for name in variables:
        if path := os.environ.get(f"{name}_FILE"):
            try:
                return _key(Path(path).read_text(encoding="utf-8"), name, f"the file that {name}_FILE names")
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "it is no text in UTF-8"
                raise PreflightError(
                    f"{name}_FILE names {path!r}, which cannot be read: {reason}; correct the variable, or unset it"
                ) from error
    return _in_keyring(variables) if ask_keyring else None


def _key(text: str, variable: str, where: str) -> Key:
    value = text.strip()
    if problem := key_problem(where, value):
        raise PreflightError(problem)
    return Key(value, variable, where)


def _in_keyring(variables: Sequence[str]) -> Key | None:
    """Ask the system's keyring, if the package `keyring` is there."""
    try:
        import keyring.errors  # no dependency
    except ImportError:
        return None
    for name in variables:
        try:
            found = keyring.get_password(_SERVICE, name)
        except keyring.errors.NoKeyringError:
            return None
        except Exception as error:  # noqa: BLE001 - a backend may raise anything, and there may be another way
            warnings.warn(f"the keyring cannot be asked for {name}: {what_failed(error)}", PluginWarning, stacklevel=2)
            return None
        if found:
            return _key(found, name, f"the keyring ({_SERVICE}, {name})")
    return None
