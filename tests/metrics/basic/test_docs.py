"""The documentation's snippets run, and its tables name every metric and every option."""

from __future__ import annotations

import doctest
import re
from importlib.metadata import entry_points
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "metrics" / "basic.md"
README = ROOT / "metrics" / "basic" / "README.md"
METRICS = {entry.name: entry.load() for entry in entry_points(group="keval.metrics") if entry.name.startswith("basic/")}


def test_the_python_snippets_run() -> None:
    result = doctest.testfile(str(DOCUMENT), module_relative=False, encoding="utf-8")

    assert (0, True) == (result.failed, result.attempted > 0)


@pytest.mark.parametrize("page", [DOCUMENT, README], ids=lambda page: page.name)
def test_every_metric_and_every_option_is_described(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"[`{ ](\w+)[`:]", text))
    options = {field.name for metric in METRICS.values() for field in attrs.fields(metric) if field.init}

    assert 13 == len(METRICS)
    assert {name.removeprefix("basic/") for name in METRICS} <= set(
        re.findall(r"^\| `(?:basic/)?(\w+)` \|", text, re.M)
    )
    assert set() == options - named


def test_the_defaults_of_the_readme_are_those_of_the_classes() -> None:
    rows = re.findall(r"^\| `(basic/\w+)` \| (.+) \|$", README.read_text(encoding="utf-8"), re.M)
    described = {
        (name, option, value) for name, row in rows for option, value in re.findall(r"`(\w+): ([^`\[\]]+)`", row)
    }

    actual = {
        (name, option, str(attrs.fields_dict(METRICS[name])[option].default).lower().replace("()", "[]"))
        for name, option, _ in described
    }

    assert len(described) > 15
    assert described == actual
