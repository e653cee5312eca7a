"""Runs in the formats of others: each is a function that writes a run's files into a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from keval.report.export.eee import export_eee
from keval.report.export.exported import Exported
from keval.run.store import RunDirectory

__all__ = ["FORMATS", "Exported", "Format"]

Format: TypeAlias = Callable[[RunDirectory, Path, float], Exported]
"""Exports a run to a folder, which is made where it is missing.

The number is the threshold: the share of a scale from which on a score passes, where a format wants to know that.
Raises RunError: the run is damaged or has nothing to export, or the folder cannot be written.
"""

FORMATS: Mapping[str, Format] = {"eee": export_eee}
"""The formats by name."""
