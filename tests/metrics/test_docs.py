"""The documentation's snippets run, and its tables name every metric and option that there is."""

from __future__ import annotations

import doctest
import re
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

ROOT = Path(__file__).parents[2]
BASIC, WEATHER = (ROOT / "docs" / "metrics" / name for name in ("basic.md", "weather.md"))
METRICS = {entry.name: entry.load() for entry in entry_points(group="keval.metrics")}


def named(family: str) -> dict[str, Any]:
    return {name.removeprefix(family): metric for name, metric in METRICS.items() if name.startswith(family)}


@pytest.mark.parametrize("page", [BASIC, WEATHER], ids=lambda page: page.name)
def test_the_python_snippets_run(page: Path) -> None:
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")

    assert (0, True) == (result.failed, result.attempted > 0)


@pytest.mark.parametrize(("page", "family", "count"), [(BASIC, "basic/", 14), (WEATHER, "weather/", 14)])
def test_every_metric_is_described(page: Path, family: str, count: int) -> None:
    items = set(re.findall(r"^- `(\w+)`", page.read_text(encoding="utf-8"), re.M))

    assert count == len(named(family))
    assert named(family).keys() <= items


def test_every_option_is_described() -> None:
    words = set(re.findall(r"[`{ ](\w+)[`:]", BASIC.read_text(encoding="utf-8")))

    options = {field.name for metric in named("basic/").values() for field in attrs.fields(metric) if field.init}
    assert set() == options - words


def test_the_yaml_snippets_name_metrics_and_options_that_exist() -> None:
    snippets = re.findall(r"```yaml\n(.*?)```", WEATHER.read_text(encoding="utf-8"), re.DOTALL)

    chosen = [item for text in snippets for item in yaml.safe_load(text).get("metrics", [])]
    options = [(name, option) for item in chosen if isinstance(item, dict) for name in item for option in item[name]]
    assert len(chosen) == 3
    assert all((next(iter(item)) if isinstance(item, dict) else item) in METRICS for item in chosen)
    assert all(option in attrs.fields_dict(METRICS[name]) for name, option in options)


def test_the_defaults_on_the_page_are_those_of_the_classes() -> None:
    items = re.findall(r"^- `(\w+)` (\(.+(?:\n  .+)*)", BASIC.read_text(encoding="utf-8"), re.M)
    described = {
        (f"basic/{name}", option, value)
        for name, item in items
        for option, value in re.findall(r"`(\w+): ([^`\[\]]+)`", item)
        if f"basic/{name}" in METRICS
    }

    actual = {
        (name, option, str(attrs.fields_dict(METRICS[name])[option].default).lower().replace("()", "[]"))
        for name, option, _ in described
    }

    assert len(described) > 15
    assert described == actual
