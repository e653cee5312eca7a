"""Every place that the glossary names is there."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NAMES = sorted({*re.findall(r"`(keval[\w.]*\.\w+)`", (DOCS / "glossary.md").read_text(encoding="utf-8"))})


def test_the_glossary_names_places() -> None:
    assert len(NAMES) > 50


@pytest.mark.parametrize("name", NAMES)
def test_what_the_glossary_names_is_defined(name: str) -> None:
    try:
        pkgutil.resolve_name(name)
    except AttributeError:  # a field without a default is no attribute of its class
        owner, _, field = name.rpartition(".")

        assert field in pkgutil.resolve_name(owner).__annotations__
