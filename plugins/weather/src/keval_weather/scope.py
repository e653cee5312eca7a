"""Whose state a tool call touches: trials share a server, and none may see what another wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import attrs

from keval import KevalError

__all__ = ["Scope", "ScopeError", "find_scope"]


_FIELDS = ("trial", "attempt", "preferences")


class ScopeError(KevalError):
    """A caller described its trial in a way that cannot be read."""


@attrs.frozen
class Scope:
    """One attempt at a trial, with the preferences its users begin with; outside of keval all is one scope."""

    trial: str = ""
    attempt: str = ""
    preferences: Mapping[str, Any] = attrs.field(factory=dict)


def find_scope(meta: Mapping[str, Any], headers: Mapping[str, str], environment: Mapping[str, str]) -> Scope:
    """Read the scope from wherever keval put it; the place nearest to the call wins.

    Behind the tap that is the call's `_meta` (`keval/trial`, `keval/attempt`, `keval/preferences`); over HTTP the
    headers (`x-keval-trial` and so on, percent-encoded, the preferences as JSON); over stdio the server's environment
    (`KEVAL_TRIAL` and so on). Raises ScopeError.
    """
    if "keval/trial" in meta:
        trial, attempt, preferences = (meta.get(f"keval/{field}") for field in _FIELDS)
        return _scope(trial, attempt, preferences, "the call's _meta")
    if "x-keval-trial" in headers:
        trial, attempt, text = (unquote(headers.get(f"x-keval-{field}", "")) for field in _FIELDS)
        return _scope(trial, attempt, _parsed(text, "x-keval-preferences"), "the header x-keval-preferences")
    trial, attempt, text = (environment.get(f"KEVAL_{field.upper()}", "") for field in _FIELDS)
    return _scope(trial, attempt, _parsed(text, "KEVAL_PREFERENCES"), "KEVAL_PREFERENCES")


def _parsed(text: str, place: str) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError as error:
        raise ScopeError(f"{place} holds no JSON ({error}); give it an object of names and values") from error


def _scope(trial: Any, attempt: Any, preferences: Any, place: str) -> Scope:
    if not isinstance(preferences, Mapping | None):
        raise ScopeError(f"the preferences in {place} are {preferences!r}; give an object of names and values")
    return Scope(str(trial or ""), str(attempt or ""), preferences or {})
