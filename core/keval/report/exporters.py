"""The seam of exporters, which write a run in the format of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import attrs

from keval.records.summary import Summary
from keval.store.run import Run

if TYPE_CHECKING:
    pass


@attrs.frozen
class Exported:
    """The files that an export wrote, and what it left out and why, in sentences for a user.

    `sent` says what was sent elsewhere, and where to; empty when nothing was.
    """

    files: tuple[Path, ...]
    left_out: tuple[str, ...] = ()
    sent: str = ""


@runtime_checkable
class RendersSummary(Protocol):
    """An exporter that renders a run with a summary that it is handed, whose gates may be decided anew."""

    def render(self, run: Run, summary: Summary) -> str:
        """Return one text, such as a page. Raises RunError: the run is damaged."""
        ...


@runtime_checkable
class Exporter(Protocol):
    """Writes a run in the format of another tool. Group `keval.exporters`; its fields are options of `keval export`."""

    def export(self, run: Run, to: Path) -> Exported:
        """Write the run to the folder `to`, which is made where it is missing, in place of an earlier export.

        An exporter that sends the run to a server may leave the folder as it is.

        Raises:
            RunError: the run is damaged or has nothing to export, or the folder cannot be written.
        """
        ...
