"""What to do about a mistake, which a package knows (`keval.remedies`); asked for only where one is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keval.seams import registry


def remedy(kind: str, *about: Any) -> str:
    """Return what follows the message of a mistake, such as `; write [a]`; an empty text if nobody knows."""
    knows = next((each for each in registry.components("keval.remedies") if each.name == kind), None)
    try:
        return str(registry.load(knows)(*about)) if knows else ""
    except Exception as error:  # noqa: BLE001 - the mistake itself must be told, whatever a package makes of it
        return f" (no remedy: {error!r})"


def unread(path: Path, error: OSError | UnicodeDecodeError) -> str:
    """Return that a file which the user named cannot be read, why, and what may be meant in its place."""
    why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror or error
    return f"cannot be read: {why}{remedy('file', path, error)}"
