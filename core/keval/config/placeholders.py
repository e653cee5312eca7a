"""Placeholders for secret variables that a recorded run had and a replay does not: its traffic has none of them."""

from __future__ import annotations

import hashlib

from keval.config.variables import variable, variables_in
from keval.manifest import Manifest

__all__ = ["remembered"]


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
