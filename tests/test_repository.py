"""The repository keeps its promises to whoever installs it."""

from __future__ import annotations

import tomllib
from pathlib import Path

from importlib_metadata import PackageNotFoundError, version

ROOT = Path(__file__).parents[1]


def named_versions() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    return dict(line.split("==") for line in lines)


def test_uv_and_pip_are_given_the_same_versions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    constraints = project["tool"]["uv"]["constraint-dependencies"]

    assert sorted(constraints) == sorted(f"{name}=={wanted}" for name, wanted in named_versions().items())


def test_the_versions_that_are_named_are_the_ones_under_test() -> None:
    others = {}
    for name, wanted in named_versions().items():
        try:
            found = version(name)
        except PackageNotFoundError:
            continue  # for another platform
        if found != wanted:
            others[name] = found

    assert {} == others
