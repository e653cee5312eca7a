"""The repository keeps its promises to whoever installs it."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from importlib_metadata import PackageNotFoundError, version
from packaging.requirements import Requirement

from tests.core.test_architecture import COMPANIONS

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


def folders() -> list[Path]:
    """The folder of every package of the workspace, that of `keval` first."""
    root = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    globs = root["tool"]["uv"]["workspace"]["members"]
    return [ROOT, *(path for pattern in globs for path in sorted(ROOT.glob(pattern)))]


def project(folder: Path) -> dict[str, Any]:
    """The `project` table of a package."""
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def members() -> dict[str, dict[str, Any]]:
    """The `project` table of every package of the workspace by its name."""
    return {found["name"]: found for found in map(project, folders())}


def test_the_table_of_packages_is_theirs() -> None:
    table = tomllib.loads((ROOT / "core/keval/seams/packages.toml").read_text(encoding="utf-8"))

    wanted: dict[str, dict[str, Any]] = {}
    for folder in folders():
        found = project(folder)
        wanted[found["name"]] = {"folder": folder.relative_to(ROOT).as_posix()}
        if found["name"] != "keval-core":  # what the core ships is never missing
            groups = found.get("entry-points", {}).items()
            shipped = {group: {name.partition("/")[0] for name in points} for group, points in groups}
            wanted[found["name"]] |= {
                group: sorted(names)
                for group, names in shipped.items()
                if group.partition(".")[0] == "keval" and group != "keval.options"
            }
            flags = [
                flag
                for target in found.get("entry-points", {}).get("keval.options", {}).values()
                for flag in flags_of(target)
            ]
            wanted[found["name"]] |= {"options": [*dict.fromkeys(flags)]} if flags else {}
    assert wanted == table


def flags_of(target: str) -> list[str]:
    """The flags of a `CommandOptions`, which a package adds to a command."""
    module, _, name = target.partition(":")
    found = getattr(import_module(module), name)
    return [flag for parameter in found.parameters for flag in parameter.opts]


def test_keval_brings_every_package_but_what_its_extras_have() -> None:
    packages = members()
    own = packages.pop("keval")

    brought = {Requirement(text).name for text in own["dependencies"]}
    extras = own["optional-dependencies"]
    chosen = {Requirement(text).name for name in extras if name != "all" for text in extras[name]} & packages.keys()

    assert ({*packages}, {"keval-providers", "keval-remote"}) == (brought | chosen, brought & chosen)
    (all_extras,) = (Requirement(text).extras for text in extras["all"])
    assert {*extras} - {"all"} == all_extras


def test_all_packages_have_one_version() -> None:
    assert 1 == len({project["version"] for project in members().values()})


def test_keval_requires_its_packages_in_its_own_version() -> None:
    keval = members()["keval"]
    needed = [*keval["dependencies"], *(text for texts in keval["optional-dependencies"].values() for text in texts)]

    pins = {
        need.name: str(need.specifier) for need in map(Requirement, needed) if need.name in members().keys() - {"keval"}
    }

    assert {"keval-core", "keval-ray"} < pins.keys()
    assert {f"=={keval['version']}"} == {*pins.values()}


def test_companions_require_the_core_and_each_other_in_their_own_version() -> None:
    """They import each other's modules, which may change in any version; others import faces, and fit a range."""
    packages = members()
    family = {"keval-core", *(f"keval-{name}" for name in COMPANIONS)}

    exact = {
        name: {need.name for need in map(Requirement, found["dependencies"]) if str(need.specifier).startswith("==")}
        for name, found in packages.items()
        if name != "keval"
    }
    wrong = {
        f"{name} requires {text}"
        for name in family
        for text in packages[name]["dependencies"]
        if Requirement(text).name in family and str(Requirement(text).specifier) != f"=={packages[name]['version']}"
    }

    assert family <= packages.keys()
    assert set() == wrong
    assert [] == [name for name, pinned in exact.items() if pinned & packages.keys() and name not in family]


def test_the_core_can_be_published_first_and_keval_last() -> None:
    needs = {
        name: {Requirement(text).name for text in project["dependencies"]} & members().keys()
        for name, project in members().items()
    }

    assert set() == needs["keval-core"]
    assert [] == [name for name, needed in needs.items() if "keval" in needed]


def test_every_hook_before_a_commit_is_a_step_of_ci() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    steps = re.findall(r"^step (.+)$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)

    hooks = [hook for repository in config["repos"] for hook in repository["hooks"]]

    assert hooks
    assert {"local"} == {repository["repo"] for repository in config["repos"]}
    assert [] == [hook["id"] for hook in hooks if hook["entry"] not in steps]


# https://docs.github.com/en/communities/using-templates-to-encourage-useful-issues-and-pull-requests/syntax-for-issue-forms
FORM_KEYS = {"name", "description", "title", "labels", "assignees", "projects", "type", "body"}
ATTRIBUTES = {
    "markdown": {"value"},
    "textarea": {"label", "description", "placeholder", "value", "render"},
    "input": {"label", "description", "placeholder", "value"},
    "dropdown": {"label", "description", "multiple", "options", "default"},
    "checkboxes": {"label", "description", "options"},
}


@pytest.mark.parametrize("name", ["bug", "feature"])
def test_an_issue_form_has_the_keys_that_github_documents(name: str) -> None:
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text(encoding="utf-8"))
    fields = [element for element in form["body"] if element["type"] != "markdown"]
    ids = [element["id"] for element in fields]

    assert {"name", "description", "body"} <= form.keys() <= FORM_KEYS
    assert all(element.keys() <= {"type", "id", "attributes", "validations"} for element in form["body"])
    assert all(element["attributes"].keys() <= ATTRIBUTES[element["type"]] for element in form["body"])
    assert all("label" in element["attributes"] for element in fields)
    assert sorted(set(ids)) == sorted(ids)
