"""`keval tap` as a process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.processes import serving

__all__ = ["tapped"]


@contextmanager
def tapped(folder: Path, server: str) -> Iterator[str]:
    """Yield the URL at which `keval tap` serves a context, whose options are given as YAML."""
    config = folder / "tap.yaml"
    config.write_text(f"contexts:\n  it: {server}\n", encoding="utf-8")
    with serving(folder, "tap", str(config), "--context", "it", "--port", "0") as url:
        yield url
