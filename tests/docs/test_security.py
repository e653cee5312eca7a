"""Every promise of SECURITY.md names a test, and each of those tests exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def promises() -> list[str]:
    """Return the items of the section, each on one line."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    section = text.partition("## What keval promises\n")[2].partition("\n## ")[0]
    return [" ".join(item.split()) for item in re.findall(r"^- (.+(?:\n  .+)*)", section, re.MULTILINE)]


def test_each_promise_names_tests_that_exist() -> None:
    named = {promise: re.findall(r"\[`(\w+)`\]\((tests/\S+\.py)\)", promise) for promise in promises()}

    assert len(named) > 30
    assert [] == [promise for promise, tests in named.items() if not tests]
    assert [] == [
        test
        for tests in named.values()
        for test, path in tests
        if f"def {test}(" not in (ROOT / path).read_text(encoding="utf-8")
    ]
