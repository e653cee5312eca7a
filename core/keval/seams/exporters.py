"""The seam of exporters, which write a run in the format of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import attrs


@attrs.frozen
class Exported:
    """The files that an export wrote, and what it left out and why, in sentences for a user.

    `sent` says what was sent elsewhere, and where to; empty when nothing was.
    """

    files: tuple[Path, ...]
    left_out: tuple[str, ...] = ()
    sent: str = ""


@runtime_checkable
class Exporter(Protocol):
    """Writes a run in the format of another tool. Group `keval.exporters`; its fields are options of `keval export`."""

    def export(self, run: Any, to: Path) -> Exported:
        """Write a `keval.Run` to the folder `to`, which is made where it is missing, in place of an earlier export.

        An exporter that sends the run to a server may leave the folder as it is.

        Raises:
            RunError: the run is damaged or has nothing to export, or the folder cannot be written.
        """
        ...
