"""What an export came to."""

from __future__ import annotations

from pathlib import Path

import attrs

__all__ = ["Exported"]


@attrs.frozen
class Exported:
    """The files that were written, and what could not be exported, with the reason, in sentences for a user."""

    files: tuple[Path, ...]
    left_out: tuple[str, ...] = ()
