"""Whatever stands in place of a part of another tool's file, that is told, and is no defect of keval."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from keval.config.load import load
from keval.dataset.read import read_dataset
from keval.errors import ConfigError
from tests.plugins.formats import test_mcpchecker, test_plugin, test_vally
from tests.plugins.formats.test_plugin import tree

TASK = {f"tasks/one/{name}": text for name, text in {"t.yaml": test_mcpchecker.TASK, "prompt.md": "What?"}.items()}
FILES = {**test_mcpchecker.MORE, **TASK, **test_plugin.IN_MANIFEST, **test_vally.SKILLS, "fixtures/in.txt": "hi"}
SUITES = {
    "letters.vally.yaml": test_vally.OF_A_SKILL,
    "files.yaml": test_vally.OF_FILES,
    "lift.experiment.yaml": test_vally.EXPERIMENT,
    "eval.yaml": test_mcpchecker.EVAL,
    "old.yaml": test_mcpchecker.FIRST_VERSION,
    "skills.yaml": test_mcpchecker.OF_SKILLS,
    "all/.claude-plugin/plugin.json": yaml.safe_dump(test_plugin.IN_MANIFEST["all/.claude-plugin/plugin.json"]),
    "all/evals/changelog/case.yaml": yaml.safe_dump(test_plugin.WHOLE),
}


def paths(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from paths(value, (*path, key))


def with_part(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = part = copy.deepcopy(data)
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return changed


@pytest.mark.slow
@pytest.mark.parametrize("name", SUITES)
def test_a_part_of_another_kind_is_no_defect(tmp_path: Path, name: str) -> None:
    tree(tmp_path, {**FILES, **SUITES})
    data = yaml.safe_load(SUITES[name])
    asked = tmp_path / ("all/.claude-plugin/plugin.json" if name.startswith("all/") else name)

    tried = 0
    for path in paths(data):
        for value in (None, "x", 3, ["x"], [None], {"x": 1}, True):
            (tmp_path / name).write_text(yaml.safe_dump(with_part(data, path, value)), encoding="utf-8")
            with suppress(ConfigError):
                evaluation = load(asked)
                read_dataset(evaluation.dataset) if evaluation.dataset else None
            tried += 1

    assert tried > 50
