"""Trying a command out."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

_PATIENCE = 20.0


def problem_of(command: Sequence[str], env: Mapping[str, str] | None = None) -> str | None:
    """Run a command, and return what it says if it fails, or `None` if it does not."""
    try:
        tried = subprocess.run(  # noqa: S603 - a program that keval or the config names
            command, env=env, capture_output=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it does not end within {_PATIENCE:g} s"
    told = " ".join(tried.stderr.decode("utf-8", "replace").split())
    return (told or f"it ends with exit code {tried.returncode}") if tried.returncode else None
