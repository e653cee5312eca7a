"""Packages that a test installs for the gateway to find responders in."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from keval.seams import registry
from keval_gateway.responders import GROUP
from tests.conftest import ON_PATH


@pytest.fixture
def doubles_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes find keval_doubles, as this one does."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*ON_PATH, os.environ.get("PYTHONPATH", "")]))


@pytest.fixture
def ship(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Installs a package, given its name and that of the responder it ships."""

    def install(package: str, responder: str) -> None:
        info = tmp_path / f"{package.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{responder} = nowhere:make\n", encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        forget()

    def forget() -> None:
        registry._entry_points.cache_clear()
        registry.components.cache_clear()

    yield install
    forget()
