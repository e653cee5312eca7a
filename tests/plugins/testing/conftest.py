"""What the tests of all kits share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for what is left behind on purpose no longer than needed."""
    monkeypatch.setattr("keval_testing.subject._PATIENCE", 0.1)
    monkeypatch.setattr("keval_testing.subject._CALL_PATIENCE", 0.1)
