"""Runs of one config on the same questions: whoever keeps the best of them keeps what chance made best."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from keval.errors import RunError
from keval.files import read_kept

_MOST = 200
"""Runs that are looked at, the latest ones."""


def count_alike(run: Path) -> int:
    """Return how many of the latest runs beside this one have its config and questions, itself included."""
    ours = _asked(run)
    if ours is None:
        return 0
    latest = sorted((path.parent for path in run.parent.glob("*/manifest.json")), reverse=True)[:_MOST]
    return sum(other == run or _asked(other) == ours for other in {run, *latest})


def _asked(run: Path) -> tuple[Any, ...] | None:
    """Return what decides what a run finds; `None` of one that is replayed, or cannot be read."""
    try:
        manifest = orjson.loads(read_kept(run / "manifest.json"))
        if manifest["replay"]:
            return None
        return manifest["config"], manifest["dataset"]["sha256"], manifest["dataset"]["samples"]
    except (OSError, RunError, ValueError, LookupError, TypeError):
        return None
