"""The page about releases is followed: packages are built, published, installed, upgraded and removed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import attrs
import pytest
from packaging.requirements import Requirement

from tests.conftest import AUTHORITIES
from tests.installation.conftest import ROOT
from tests.installation.package_index import PackageIndex, serve_index

pytestmark = pytest.mark.installation

OLD = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
MAJOR, MINOR, PATCH = map(int, OLD.split("."))
NEW = f"{MAJOR}.{MINOR}.{PATCH + 1}"
INSTALLING = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
CONFIG = """
dataset: {path: questions.jsonl}
agents: {openai: {model: simulated/any}}
conditions: {baseline: {}}
metrics: [basic/contains: {any_of: [answer]}]
"""
# As it was before a fixture sets folders for settings and caches; `tests.conftest` keeps the authorities.
ENVIRON = {
    **{
        name: value
        for name, value in os.environ.items()
        if not re.match(r"KEVAL_|UV_PUBLISH_|VIRTUAL_ENV|PYTHON|SSL_CERT_FILE", name)
    },
    **({"SSL_CERT_FILE": AUTHORITIES} if AUTHORITIES else {}),
    "PATH": os.pathsep.join(path for path in os.get_exec_path() if Path(path) != Path(sys.prefix, "bin")),
}


@attrs.frozen
class Machine:
    """A folder in which commands are run, and their variables."""

    folder: Path
    environ: dict[str, str]

    def run(self, script: str) -> str:
        """Run commands of bash, of which each has to succeed, and return what they write to stdout."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
        )
        assert 0 == done.returncode, f"{script}\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
        return done.stdout

    def versions(self, environment: str) -> dict[str, str]:
        """The packages of keval in an environment, with their versions."""
        listed = json.loads(self.run(f"uv pip list --format json --python {environment}"))
        return {each["name"]: each["version"] for each in listed if each["name"].startswith("keval")}


def blocks(page: str, heading: str) -> list[str]:
    """The blocks of commands of a section."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    found: list[str] = re.findall(r"^```console\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return found


def setting(version: str, accepted: str) -> str:
    """The commands that set the version, with another one, and the versions that packages accept of each other."""
    (script,) = blocks("releasing.md", "Set the version")
    script, versions = re.subn(r"^version=.*$", f"version={version}", script, flags=re.MULTILINE)
    script, ranges = re.subn(r"^range=.*$", f"range='{accepted}'", script, flags=re.MULTILINE)
    assert (1, 1) == (versions, ranges)
    return script


def projects(checkout: Path) -> dict[str, list[Requirement]]:
    """The packages of a checkout, with what each requires of the others."""
    root = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))
    globs = [".", *root["tool"]["uv"]["workspace"]["members"]]
    files = [file for glob in globs for file in checkout.glob(f"{glob}/pyproject.toml")]
    tables = [tomllib.loads(file.read_text(encoding="utf-8"))["project"] for file in files]
    return {
        table["name"]: [
            need
            for texts in [table["dependencies"], *table.get("optional-dependencies", {}).values()]
            for need in map(Requirement, texts)
            if need.name.startswith("keval") and need.name != table["name"]
        ]
        for table in tables
    }


@pytest.fixture(scope="module")
def index() -> Iterator[PackageIndex]:
    with serve_index() as served:
        yield served


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, index: PackageIndex) -> Machine:
    folder = tmp_path_factory.mktemp("machine")
    environ = {
        **ENVIRON,
        **{f"GIT_{who}_{what}": "test@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        "UV_INDEX": index.simple,
        "UV_PUBLISH_URL": index.upload,
        "UV_PUBLISH_TOKEN": "token",
        "UV_PYTHON": str(Path(sys.base_prefix, "bin", "python3")),
        "UV_TOOL_DIR": str(folder / "tools"),
        "UV_TOOL_BIN_DIR": str(folder / "tools" / "bin"),
        "PIP_NO_COMPILE": "1",  # takes a fifth of the time of an installation
    }
    return Machine(folder, environ)


@pytest.fixture(scope="module")
def maintainer(machine: Machine) -> Machine:
    """A checkout of what git does not ignore here, committed or not, with an origin of its own."""
    checkout = machine.folder / "checkout"
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0"):
        if (ROOT / name).is_file():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, checkout / name)
    there = attrs.evolve(machine, folder=checkout)
    there.run("git init -q -b main && git add --all && git commit -q -m 'The version before'")
    there.run('git init -q --bare ../origin && git remote add origin "$PWD/../origin"')
    return there


@pytest.fixture(scope="module")
def before(machine: Machine, wheels: Path) -> None:
    """Publish the version that the repository has."""
    (publish,) = blocks("releasing.md", "Publish")
    shutil.copytree(wheels, machine.folder / "before" / "dist")
    attrs.evolve(machine, folder=machine.folder / "before").run(publish)


@pytest.fixture(scope="module")
def build(maintainer: Machine, before: None) -> Iterator[Future[str]]:
    """The page's commands before those that publish, in a thread: they take a minute, and pip another one."""
    scripts = [setting(NEW, f">={MAJOR}.{MINOR},<{MAJOR}.{MINOR + 1}"), *blocks("releasing.md", "Build")]
    with ThreadPoolExecutor() as pool:
        yield pool.submit(maintainer.run, "".join(scripts))


@pytest.fixture(scope="module")
def user(machine: Machine, index: PackageIndex, before: None, build: Future[str]) -> Machine:
    """A machine on which pip has installed keval in an environment, and uv as a tool."""
    (machine.folder / "eval.yaml").write_text(CONFIG, encoding="utf-8")
    (machine.folder / "questions.jsonl").write_text('{"id": "q1", "question": "What is it?"}\n', encoding="utf-8")
    machine.run('"$UV_PYTHON" -m venv venv')
    # A variable stands for pip's settings, and does not add to them.
    others = machine.run("venv/bin/pip config get global.extra-index-url || true")
    environ = {
        **machine.environ,
        "PATH": f"{machine.folder / 'venv' / 'bin'}{os.pathsep}{machine.environ['PATH']}",
        "PIP_EXTRA_INDEX_URL": f"{others} {ENVIRON.get('PIP_EXTRA_INDEX_URL', '')} {index.simple}",
    }
    there = attrs.evolve(machine, environ=environ)
    there.run(f"pip install keval=={OLD}")
    there.run("uv tool install keval")
    return there


@pytest.fixture(scope="module")
def published(machine: Machine, user: Machine, build: Future[str]) -> str:
    """Publish the next version, once the one before is installed; what the commands that built it print."""
    printed = build.result()
    attrs.evolve(machine, folder=machine.folder / f"keval-{NEW}").run("".join(blocks("releasing.md", "Publish")))
    return printed


@pytest.fixture(scope="module")
def upgraded(user: Machine, published: str) -> Machine:
    for command in ("pip install --upgrade keval", "uv tool upgrade keval"):
        assert f"`{command}`" in INSTALLING
        user.run(command)
    return user


@pytest.mark.parametrize("keval", ["venv/bin/keval", "tools/bin/keval"])
def test_keval_runs_where_it_was_installed(user: Machine, keval: str) -> None:
    version = user.run(f"{keval} --version")
    printed = user.run(f"{keval} run eval.yaml")

    assert f"keval, version {OLD}\n" == version
    assert "1 trial, none failed" in printed


def test_the_page_publishes_all_packages_the_core_first_and_keval_last(
    index: PackageIndex, maintainer: Machine, published: str
) -> None:
    tags = maintainer.run("git ls-remote --tags origin")

    files = [name for name in index.files if f"-{NEW}" in name]
    stems = [f"{name.replace('-', '_')}-{NEW}" for name in projects(ROOT)]
    assert sorted(f"{stem}{end}" for stem in stems for end in ("-py3-none-any.whl", ".tar.gz")) == sorted(files)
    assert ["keval_core"] * 2 == [name.partition("-")[0] for name in files[:2]]
    assert ["keval"] * 2 == [name.partition("-")[0] for name in files[-2:]]
    assert f"keval, version {NEW}" == published.splitlines()[-1]
    assert f"refs/tags/v{NEW}\n" in tags


def test_an_older_version_of_keval_stays_a_whole(user: Machine, published: str) -> None:
    resolved = user.run(f"echo 'keval=={OLD}' | uv pip compile -q --no-annotate --no-header -")

    packages = dict(line.split("==") for line in resolved.splitlines() if line.startswith("keval"))
    assert {"keval", "keval-core", "keval-mcp"} < packages.keys()
    assert {OLD} == {*packages.values()}


@pytest.mark.parametrize("environment", ["venv", "tools/keval"])
def test_pip_and_uv_upgrade_all_packages(upgraded: Machine, environment: str) -> None:
    packages = upgraded.versions(environment)

    version = upgraded.run(f"{environment}/bin/keval --version")

    assert packages.keys() > {"keval", "keval-core", "keval-mcp"}
    assert {NEW} == {*packages.values()}
    assert f"keval, version {NEW}\n" == version


def test_the_core_works_without_keval(upgraded: Machine) -> None:
    again = "pip install --force-reinstall --no-deps keval-core"
    script = upgraded.folder / "venv" / "bin" / "keval"

    upgraded.run("pip uninstall -y keval")
    version = upgraded.run("python -m keval --version")
    left = script.exists()
    upgraded.run(again)

    assert f"`{again}`" in " ".join(INSTALLING.split())
    assert f"keval, version {NEW}\n" == version
    assert (False, True) == (left, script.exists())


def test_all_packages_are_removed(upgraded: Machine) -> None:
    (remove,) = blocks("installing.md", "Upgrading and removing")

    upgraded.run(remove)
    upgraded.run("uv tool uninstall keval")

    assert "`uv tool uninstall keval`" in INSTALLING
    assert {} == upgraded.versions("venv")
    assert [] == [*(upgraded.folder / "tools" / "bin").iterdir()]


def test_a_minor_version_is_set_in_all_requirements(maintainer: Machine) -> None:
    minor = f"{MAJOR}.{MINOR + 1}"
    maintainer.run(setting(f"{minor}.0", f">={minor},<{MAJOR}.{MINOR + 2}"))

    packages = projects(maintainer.folder)
    exact = {name for name, needs in packages.items() if any("==" in str(need) for need in needs)}

    assert {"keval", "keval-mcp"} <= exact
    assert [] == [
        f"{name} requires {need}"
        for name, needs in packages.items()
        for need in needs
        if f"{minor}.0" not in need.specifier or OLD in need.specifier
    ]
    assert "" == maintainer.run(f"git grep -nE 'keval[a-z-]*>={MAJOR}[.]{MINOR},' -- '*.md' '*.toml' || true")
