"""`keval new` writes a package, or says what is wrong and writes nothing."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

from keval.seams.installation import Installation
from keval_start.new.command import KINDS, Package
from tests.conftest import Project


@pytest.mark.parametrize("kind", KINDS)
def test_a_package_has_a_plugin_a_test_and_three_commands(project: Project, kind: str) -> None:
    outcome = project.keval("new", kind, "acme/short-answers")

    assert 0 == outcome.code, outcome.stderr
    folder = project.root / "acme-short-answers"
    files = sorted(str(path.relative_to(project.root)) for path in folder.rglob("*") if path.is_file())
    assert sorted(outcome.stdout.split()) == files
    written = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    assert "acme-short-answers" == written["project"]["name"]
    target = {"acme/short_answers": "acme_short_answers:AcmeShortAnswers"}
    assert {KINDS[kind].group: target} == written["project"]["entry-points"]
    module = ast.parse((folder / "src/acme_short_answers/__init__.py").read_text(encoding="utf-8"))
    assert "AcmeShortAnswers" in [node.name for node in module.body if isinstance(node, ast.ClassDef)]
    package = Package.of(kind, "acme/short-answers")
    assert package.use in (folder / "README.md").read_text(encoding="utf-8")
    commands = package.commands(Path("acme-short-answers"), Installation.here_and_now())
    assert [f"    {command}" for command in commands] == outcome.stderr.splitlines()[1:]


def test_a_folder_of_ones_own_is_written(project: Project) -> None:
    outcome = project.keval("new", "metric", "acme-brevity", "--to", "packages/mine")

    assert (0, True) == (outcome.code, (project.root / "packages/mine/src/acme_brevity/__init__.py").is_file())


@pytest.mark.parametrize(
    ("kind", "name", "problem"),
    [
        ("metric", "Acme", "a name is a vendor and a thing in lower case, such as acme/brevity or acme-brevity"),
        ("metric", "brevity", "a name is a vendor and a thing"),
        ("metric", "acme/../brevity", "a name is a vendor and a thing"),
        ("metric", "basic/equals", "keval-metrics-basic has a metric of this name already; choose another name"),
        ("hook", "keval-mcp", "Python has a module keval_mcp already; choose another name, or uninstall it"),
    ],
)
def test_a_name_that_cannot_be_used_is_an_error(project: Project, kind: str, name: str, problem: str) -> None:
    outcome = project.keval("new", kind, name)

    assert 2 == outcome.code
    assert f"NAME {name!r}: {problem}" in outcome.stderr
    assert [] == [*project.root.iterdir()]


def test_a_folder_that_exists_is_left_alone(project: Project) -> None:
    Path("acme-brevity").mkdir()

    outcome = project.keval("new", "metric", "acme/brevity")

    assert 2 == outcome.code
    assert "acme-brevity: it exists already; give another folder with --to, or remove it" in outcome.stderr
    assert [] == [*Path("acme-brevity").iterdir()]


def test_nothing_is_left_of_a_package_that_cannot_be_written(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)

    outcome = project.keval("new", "metric", "acme/brevity")

    assert 2 == outcome.code
    assert "acme-brevity cannot be written: No space left on device" in outcome.stderr
    assert [] == [*project.root.iterdir()]
