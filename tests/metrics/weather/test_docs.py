"""The documentation's snippets run, and its tables name what there is."""

from __future__ import annotations

import doctest
import re
from importlib.metadata import entry_points
from pathlib import Path

import attrs
import yaml

DOCUMENT = Path(__file__).parents[3] / "docs" / "metrics" / "weather.md"


def test_the_python_snippets_run() -> None:
    result = doctest.testfile(str(DOCUMENT), module_relative=False, encoding="utf-8")

    assert (0, True) == (result.failed, result.attempted > 0)


def test_the_yaml_snippets_name_metrics_and_options_that_exist() -> None:
    snippets = re.findall(r"```yaml\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    installed = {entry.name: entry.load() for entry in entry_points(group="keval.metrics")}

    chosen = [item for text in snippets for item in yaml.safe_load(text).get("metrics", [])]
    options = [(name, option) for item in chosen if isinstance(item, dict) for name in item for option in item[name]]

    assert len(chosen) == 3
    assert all((next(iter(item)) if isinstance(item, dict) else item) in installed for item in chosen)
    assert all(option in attrs.fields_dict(installed[name]) for name, option in options)


def test_every_metric_is_described_and_registered_under_its_name() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    ours = {entry.name for entry in entry_points(group="keval.metrics") if entry.name.startswith("weather/")}

    assert 14 == len(ours)
    assert ours == {f"weather/{name}" for name in re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)}
