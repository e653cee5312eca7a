"""The line that installs a package fits how keval was installed; tests/installation tries the lines themselves."""

from __future__ import annotations

import json
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import attrs
import pytest

from keval.seams.installation import CORE, Installation, Origin, package_of

INDEX = Origin()
FOLDER = Origin("folder", "/src/keval")
GIT = Origin("git", "https://example.org/keval", "main", "c0ffee")
WHEELS = Origin("wheels", "/srv/wheels")
EDITABLE = Origin("folder", "/my src", editable=True)


@pytest.fixture
def installed(tmp_path: Path) -> Installation:
    """keval in an environment that pip fills, called as a program on the path."""
    prefix = tmp_path / "venv"
    (prefix / "bin").mkdir(parents=True)
    pip = prefix / "bin" / "pip"
    pip.touch()
    pip.chmod(0o755)
    python = str(prefix / "bin" / "python")
    environ = {"PATH": str(prefix / "bin"), "VIRTUAL_ENV": str(prefix)}
    return Installation("keval", INDEX, "pip", prefix, python, tmp_path, environ)


@pytest.mark.parametrize(
    ("origin", "installer", "line"),
    [
        (INDEX, "pip", "pip install keval-ray"),
        (INDEX, "uv", "uv pip install keval-ray"),
        (WHEELS, "pip", "pip install --find-links /srv/wheels keval-ray"),
        # pip would look for what the package requires in an index.
        (FOLDER, "pip", "uv pip install /src/keval/plugins/ray"),
        (GIT, "pip", "uv pip install 'keval-ray @ git+https://example.org/keval@main#subdirectory=plugins/ray'"),
    ],
)
def test_an_environment_is_added_to_from_where_keval_came(
    installed: Installation, origin: Origin, installer: str, line: str
) -> None:
    assert line == attrs.evolve(installed, origin=origin, installer=installer).line("keval-ray")


def test_an_environment_that_is_not_active_is_named(installed: Installation) -> None:
    elsewhere = attrs.evolve(installed, environ={})

    assert f"{installed.python} -m pip install keval-ray" == elsewhere.line("keval-ray")
    assert f"uv pip install --python {installed.python} keval-ray" == attrs.evolve(elsewhere, installer="uv").line(
        "keval-ray"
    )


RECEIPT = """
[tool]
requirements = [
    { name = "httpie", specifier = ">=3" },
    { name = "keval", extras = ["s3"] },
    { name = "acme-kit", git = "https://example.org/acme?subdirectory=kits%2Fone&rev=v2" },
    { name = "acme-brevity", editable = "/home/me/acme-brevity" },
    { name = "acme-notes", directory = "/home/me/acme-notes" },
]
"""


def test_a_tool_of_uv_keeps_what_was_installed_with_it(installed: Installation) -> None:
    (installed.prefix / "uv-receipt.toml").write_text(RECEIPT, encoding="utf-8")

    assert (
        "uv tool install 'keval[s3]' --with 'httpie>=3'"
        " --with 'acme-kit @ git+https://example.org/acme@v2#subdirectory=kits/one'"
        " --with-editable /home/me/acme-brevity --with /home/me/acme-notes --with keval-ray"
    ) == installed.line("keval-ray")
    editable = attrs.evolve(installed, origin=attrs.evolve(FOLDER, editable=True)).line("keval-ray")
    assert editable.startswith("uv tool install --editable '/src/keval[s3]' --with 'httpie>=3' ")
    assert editable.endswith(" --with /src/keval/plugins/ray")


def test_other_managers_have_lines_of_their_own(installed: Installation, tmp_path: Path) -> None:
    cached = attrs.evolve(installed, origin=FOLDER, prefix=tmp_path / "archive-v0" / "Xy")
    (tmp_path / "uv.lock").write_text('[[package]]\nname = "keval-core"\n', encoding="utf-8")
    project = attrs.evolve(installed, origin=FOLDER)
    clone = attrs.evolve(installed, origin=attrs.evolve(FOLDER, place=str(tmp_path)))

    assert "uvx --from /src/keval --with /src/keval/plugins/ray keval" == cached.line("keval-ray")
    assert "uv add /src/keval/plugins/ray" == project.line("keval-ray")
    assert "uv add --editable ./acme" == project.line(editable="./acme")
    assert "uv sync --inexact --package keval-ray" == clone.line("keval-ray")
    (installed.prefix / "pipx_metadata.json").touch()
    assert "pipx inject venv keval-ray" == installed.line("keval-ray")


def test_keval_is_called_as_the_user_calls_it(installed: Installation, tmp_path: Path) -> None:
    by_uv = attrs.evolve(installed, environ={**installed.environ, "UV_RUN_RECURSION_DEPTH": "1"})
    cached = attrs.evolve(installed, origin=GIT, prefix=tmp_path / "archive-v0" / "Xy")

    assert "keval" == installed.call(tmp_path)
    assert "uv run keval" == by_uv.call(tmp_path / "inner")
    assert f"uv run --project {tmp_path} keval" == by_uv.call(Path("/elsewhere"))
    assert "uvx --from 'keval @ git+https://example.org/keval@main' keval" == cached.call(tmp_path)


@pytest.mark.parametrize(
    ("name", "told", "origin"),
    [
        ("keval", None, INDEX),
        ("keval", {"url": "file:///src/keval", "dir_info": {}}, FOLDER),
        (CORE, {"url": "file:///src/keval/core", "dir_info": {"editable": False}}, FOLDER),
        (
            "keval",
            {"url": "file:///my%20src", "dir_info": {"editable": True}},
            EDITABLE,
        ),
        ("keval", {"url": "file:///srv/wheels/keval-0.1.0-py3-none-any.whl", "archive_info": {}}, WHEELS),
        ("keval", {"url": "https://example.org/keval-0.1.0-py3-none-any.whl", "archive_info": {}}, INDEX),
        (
            CORE,
            {
                "url": "https://example.org/keval",
                "vcs_info": {"vcs": "git", "commit_id": "c0ffee", "requested_revision": "main"},
                "subdirectory": "core",
            },
            GIT,
        ),
    ],
)
def test_where_keval_came_from_is_what_its_installer_noted(
    tmp_path: Path, name: str, told: dict[str, Any] | None, origin: Origin
) -> None:
    info = tmp_path / f"{name.replace('-', '_')}-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 0.1.0\n", encoding="utf-8")
    if told is not None:
        (info / "direct_url.json").write_text(json.dumps(told), encoding="utf-8")

    assert origin == Origin.of(Distribution.at(info))


def test_what_ships_a_plugin_is_known_by_its_vendor_or_name() -> None:
    assert "keval-metrics-weather" == package_of("keval.metrics", "weather/accuracy")
    assert "keval-viewer" == package_of("keval.commands", "view")
    assert package_of("keval.commands", "weather") is None
