"""The house's own rules: what imports what, what starting costs, and that every seam is documented."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from importlib_metadata import version
from packaging.requirements import Requirement

from keval import hookspecs
from keval.registry import GROUPS

ROOT = Path(__file__).parents[2]
CORE = ROOT / "core" / "keval"
# From the bottom up: a module may import from its own room and from those before it.
FLOORS = [
    {"errors", "nearest"},
    {"records"},
    {"recorder", "models", "scores"},
    {"judging"},
    {"providers"},
    {"contexts"},
    {"interfaces", "hookspecs"},
    {"registry"},
    {"config"},
    {"rubrics"},
    {"stats"},
    {"run"},
    {"report"},
    {"cli"},
    {"__main__"},
]
MEMBERS = sorted(path.parent for path in ROOT.glob("*/*/pyproject.toml") if path.parts[-3] != "tests")
HEAVY = ("mcp", "openai", "anthropic", "google", "agent_framework", "yaml", "jinja2", "starlette", "httpx", "rich")


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "keval" and len(parts) > 1 else None


def test_imports_of_the_core_run_one_way() -> None:
    floor_of = {name: index for index, floor in enumerate(FLOORS) for name in floor}
    back = []
    for path in CORE.rglob("*.py"):
        here = path.relative_to(CORE).parts[0].removesuffix(".py")
        for module in imported(path):
            there = room(module)
            if here != "__init__" and there in floor_of and floor_of[there] > floor_of[here]:
                back.append(f"{path.relative_to(ROOT)} imports {module}")

    assert [] == back


@pytest.mark.parametrize("member", MEMBERS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_plugins_import_what_the_core_offers_and_nothing_deeper(member: Path) -> None:
    deeper = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in (member / "src").rglob("*.py")
        for module in imported(path)
        if (CORE / (room(module) or "")).is_dir() or (CORE / f"{room(module)}.py").is_file()
        if room(module)
    ]

    assert [] == deeper


def test_no_module_imports_itself_around_a_corner() -> None:
    modules = {
        ".".join(path.relative_to(source).with_suffix("").parts): path
        for source in [ROOT / "core", *(member / "src" for member in MEMBERS)]
        for path in source.rglob("*.py")
        if path.stem != "__init__"
    }
    needs = {name: modules.keys() & set(imported(path)) - {name} for name, path in modules.items()}

    list(TopologicalSorter(needs).static_order())  # raises CycleError


@pytest.mark.parametrize("arguments", [["--help"], ["plugins"], ["--version"]], ids=" ".join)
def test_starting_imports_no_sdk(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom keval.cli import main\n"
        f"main({arguments!r}, standalone_mode=False)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]" == done.stderr.strip()


def test_planning_the_example_imports_no_sdk() -> None:
    code = (
        "import sys\nfrom keval.cli import main\n"
        "main(['validate', 'examples/weather/weather.yaml'], standalone_mode=False)\n"
        "sdks = ('mcp', 'openai', 'anthropic', 'google.adk', 'google.genai', 'agent_framework', 'uvicorn')\n"
        "print([name for name in sdks if name in sys.modules], file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)

    assert "[]" == done.stderr.strip()


def test_every_hook_is_documented() -> None:
    specs = [value for name, value in vars(hookspecs).items() if name.startswith("keval_")]

    assert specs
    assert [] == [spec.__name__ for spec in specs if not (spec.__doc__ or "").startswith("Called once per ")]


def test_every_entry_point_group_is_documented() -> None:
    guide = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")

    assert [] == [group for group in GROUPS if f"`{group}`" not in guide]


def test_every_module_says_what_it_is() -> None:
    modules = [*CORE.rglob("*.py"), *(path for member in MEMBERS for path in (member / "src").rglob("*.py"))]

    silent = [path for path in modules if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]

    assert [] == [str(path.relative_to(ROOT)) for path in silent]


@pytest.mark.parametrize("member", MEMBERS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_member_fits_the_versions_of_the_others(member: Path) -> None:
    """uv ignores version specifiers between members; pip does not."""
    project = tomllib.loads((member / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [Requirement(text) for text in project["dependencies"]]
    siblings = {requirement.name: requirement for requirement in needed if requirement.name.startswith("keval")}

    assert "keval" in siblings
    assert [] == [name for name, need in siblings.items() if version(name) not in need.specifier]
