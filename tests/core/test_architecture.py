"""The house's own rules: what imports what, what starting costs, and that every seam is documented."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from types import ModuleType

import attrs
import click
import pytest
from importlib_metadata import version
from packaging.requirements import Requirement

import keval
import keval_testing
from keval import plugin
from keval.cli import main
from keval.seams import hooks as hookspecs, registry
from keval.seams.registry import GROUPS

ROOT = Path(__file__).parents[2]
CORE = ROOT / "core" / "keval"
# From the bottom up: a module imports from its own room and from those before it.
ROOMS = [
    *("errors", "redaction", "processes", "files", "records", "seams", "config"),
    *("dataset", "store", "plan", "execute", "score", "run", "cli", "__main__", "plugin"),
]
LONGEST_CHAIN = 10
CORE_LINES = 12_500
"""Lines of code of all that keval-core brings: without blank lines, comments and docstrings."""
LOOSE_MODULES = 8
MEMBERS = sorted(path.parent for path in ROOT.glob("*/*/pyproject.toml") if path.parts[-3] != "tests")
# Companions of the core require it and each other in exactly their own version (tests/test_repository.py holds it), so
# they may import each other's modules. All other packages are made to fit a range of versions, as anybody's plugins
# are, and import only faces.
COMPANIONS = {
    *("analysis", "clients", "formats", "gateway", "instrument", "loopback", "mcp", "programs", "providers"),
    *("ray", "remote", "replay", "report", "start", "testing", "viewer", "workspace"),
}
ROOMS_OF_COMPANIONS = {
    "keval",
    *(path.name for member in MEMBERS if member.name in COMPANIONS for path in (member / "src").iterdir()),
}
DEEP = {
    ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
    for source in [ROOT / "core", *(member / "src" for member in MEMBERS)]
    for path in source.rglob("*.py")
    if len(path.relative_to(source).parts) > 2 or path.stem not in ("__init__", "plugin")
}
FACES = [keval, plugin, keval_testing]
MOST_NAMES = {"keval": 25, "keval.plugin": 120}
MOST_PUBLIC_NAMES = 250
"""Of all faces together."""
MOST_LINES = 500
WORD = re.compile(r"\w+")
HEAVY = (
    "mcp",
    "openai",
    "anthropic",
    "google",
    "agent_framework",
    "yaml",
    "jinja2",
    "starlette",
    "httpx",
    "rich",
    "numpy",
    "scipy",
)


def public_names(face: str) -> set[str]:
    return {*getattr(import_module(face), "__all__", ())} - {"__version__"}


@attrs.frozen
class Module:
    """What the rules ask of a module; `texts` are its constants, by line."""

    docstring: str | None
    imports: list[ast.Import | ast.ImportFrom]
    texts: list[tuple[int, str]]


@cache
def module_of(path: Path) -> Module:
    """Read a module once for all rules."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = [*ast.walk(tree)]
    constants = [each for each in nodes if isinstance(each, ast.Constant)]
    return Module(
        ast.get_docstring(tree),
        [each for each in nodes if isinstance(each, ast.Import | ast.ImportFrom)],
        [(each.lineno, each.value) for each in constants if isinstance(each.value, str)],
    )


def imported(path: Path) -> Iterator[str]:
    for node in module_of(path).imports:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "keval" and len(parts) > 1 else None


def lines_of_code(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr)]
    texts = [each for each in nodes if isinstance(each.value, ast.Constant) and isinstance(each.value.value, str)]
    said = {line for each in texts for line in range(each.lineno, (each.end_lineno or each.lineno) + 1)}
    blank = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.COMMENT}
    tokens = [each for each in tokenize.generate_tokens(io.StringIO(text).readline) if each.type not in blank]
    return len({line for each in tokens for line in range(each.start[0], each.end[0] + 1)} - said)


def room_of(path: Path) -> str:
    return path.relative_to(CORE).parts[0].removesuffix(".py").removesuffix(".pyi")


def test_the_core_imports_nothing_but_itself_and_one_way() -> None:
    floor_of = {name: index for index, name in enumerate(ROOMS)}
    back = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in CORE.rglob("*.py")
        for module in imported(path)
        if module.startswith("keval_")
        or (room_of(path) != "__init__" and floor_of.get(str(room(module)), 0) > floor_of[room_of(path)])
    ]

    assert [] == back


def test_no_chain_of_rooms_is_long() -> None:
    needs: dict[str, set[str]] = {name: set() for name in ROOMS if (CORE / name).is_dir() or name == "errors"}
    for path in CORE.rglob("*.py"):
        found = {str(room(module)) for module in imported(path)} & {*ROOMS}
        needs.setdefault(room_of(path), set()).update(found - {room_of(path)})

    chains: dict[str, int] = {}
    for name in TopologicalSorter(needs).static_order():
        chains[name] = 1 + max((chains[each] for each in needs.get(name, ())), default=0)

    assert LONGEST_CHAIN >= max(chains[name] for name in needs if name in ROOMS[:-2])


def test_the_core_is_small_and_its_root_nearly_empty() -> None:
    assert CORE_LINES >= sum(lines_of_code(path) for path in CORE.rglob("*.py"))
    assert len(list(CORE.glob("*.py"))) <= LOOSE_MODULES


@pytest.mark.parametrize("member", MEMBERS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_plugins_import_what_others_offer_and_nothing_deeper(member: Path) -> None:
    (own,) = (member / "src").iterdir()
    theirs = {own.name, *(ROOMS_OF_COMPANIONS if member.name in COMPANIONS else ())}
    deeper = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in own.rglob("*.py")
        for module in imported(path)
        if module in DEEP and module.partition(".")[0] not in theirs
    ]

    assert [] == deeper


@pytest.mark.parametrize("module", FACES, ids=lambda module: module.__name__)
def test_what_is_public_is_there_and_shown(module: ModuleType) -> None:
    names: list[str] = dir(module)

    assert names == module.__all__
    assert [] == [name for name in names if getattr(module, name, None) is None]


@pytest.mark.parametrize("module", FACES, ids=lambda module: module.__name__)
def test_a_stub_says_where_a_module_has_its_names(module: ModuleType) -> None:
    stub = ast.parse(Path(str(module.__file__)).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    said = {alias.name: str(node.module) for node in imports for alias in node.names}
    objects = {name: getattr(import_module(home), name) for name, home in said.items()}

    assert sorted(said) == [name for name in dir(module) if name != "__version__"]
    assert [] == [name for name, each in objects.items() if each is not getattr(module, name)]


def names_imported(path: Path) -> Iterator[tuple[str, str]]:
    for node in module_of(path).imports:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name) for alias in node.names)


def names_used() -> dict[str, set[str]]:
    """The faces that members import from, each with the names that they use; companions may do without each other's."""
    used: dict[str, set[str]] = {"keval": set(), "keval.plugin": set(), "keval_testing": set()}
    packages = {path.name: member for member in MEMBERS for path in (member / "src").iterdir()}
    for own, member in packages.items():
        for path in (member / "src").rglob("*.py"):
            for face, name in names_imported(path):
                if face not in (*packages, "keval", "keval.plugin") or face == own:
                    continue
                among = member.name in COMPANIONS and face.partition(".")[0] in ROOMS_OF_COMPANIONS
                used.setdefault(face, set()).update(() if among else {name})
    return used


def words_shown() -> set[str]:
    """The words of all code that the documentation shows, besides the glossary, which names whatever there is."""
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/*/README.md")]
    texts = [page.read_text(encoding="utf-8") for page in pages if page.name != "glossary.md"]
    shown = [code for text in texts for code in re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL)]
    kits = [*(ROOT / "tests" / "third_party").rglob("*.py"), *(ROOT / "plugins" / "start").rglob("*.py.j2")]
    return {
        word for text in [*shown, *(kit.read_text(encoding="utf-8") for kit in kits)] for word in WORD.findall(text)
    }


def test_faces_are_small() -> None:
    counts = {face: len(public_names(face)) for face in names_used()}

    assert {} == {face: counts[face] for face, most in MOST_NAMES.items() if counts[face] > most}
    assert MOST_PUBLIC_NAMES >= sum(counts.values())


def test_every_public_name_is_used_by_a_plugin_or_shown_to_authors_of_plugins() -> None:
    shown = words_shown()

    unused = {face: sorted(public_names(face) - names - shown) for face, names in names_used().items()}
    assert {} == {face: names for face, names in unused.items() if names}


def test_a_name_that_a_package_brings_is_told_with_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "components", lambda group: ())
    monkeypatch.delitem(vars(keval), "evaluate", raising=False)

    with pytest.raises(plugin.PluginError, match="'evaluate' comes with keval-viewer, which is not installed: `"):
        _ = keval.evaluate
    assert "evaluate" not in dir(keval)


def test_no_name_is_public_twice() -> None:
    public = [*dir(keval), *dir(plugin), *dir(keval_testing)]

    assert sorted(set(public)) == sorted(public)


def plugin_names() -> set[str]:
    """The names and packages of the plugins that ship with keval."""
    names: set[str] = set()
    for member in MEMBERS:
        project = tomllib.loads((member / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        names |= {project["name"], project["name"].replace("-", "_")}
        groups = project.get("entry-points", {}).items()
        # Where the core asks by itself, names are its own: roles, words of other tools' configs, names of its API.
        named = [points for group, points in groups if group in registry.groups()]
        names |= {name for points in named for name in points}
    return names


def test_the_core_names_no_plugin_and_no_word_of_weather() -> None:
    transports = {"http", "sse", "stdio"}
    # Of proxies, of what makes tasks and of what mirrors results: the core asks for them.
    roles = {"models", "servers", "scripted", "remote", "tasks"}
    # Of plugins: a command and an exporter by which options of the core's ask for them, and commands in messages.
    commands = {"view", "html", "list", "review"}
    wires = {"anthropic", "gemini"}
    # Of manifest and summary, of contexts, of `results:`, of configs, of datasets, and of MCP.
    keys = {"simulated", "tap", "recorded", "verify", "history", "tools", "plugins"}
    # Kinds of plugins, findings, errors and texts, beside the plugins of these names, and the default workspace.
    ordinary = {"command", "file", "python", "mcp", "instructions", "skill", "folder", "plugin", "check"}
    ordinary |= {"tools", "history", "verify", "record", "json"}
    known = plugin_names() - transports - roles - commands - wires - keys - ordinary
    found = [
        f"{path.relative_to(ROOT)}:{line} names {text!r}"
        for path in CORE.rglob("*.py")
        for line, text in module_of(path).texts
        if text in known
    ]
    words = [
        str(path.relative_to(ROOT))
        for path in CORE.rglob("*.py")
        if "weather" in path.read_text(encoding="utf-8").lower()
    ]

    assert ([], []) == (found, words)


def test_no_module_is_long() -> None:
    sources = [CORE, *(member / "src" for member in MEMBERS)]
    lines = {
        path: len(path.read_text(encoding="utf-8").splitlines()) for root in sources for path in root.rglob("*.py")
    }

    assert {} == {str(path.relative_to(ROOT)): count for path, count in lines.items() if count > MOST_LINES}


def test_no_module_imports_itself_around_a_corner() -> None:
    modules = {
        ".".join(path.relative_to(source).with_suffix("").parts): path
        for source in [ROOT / "core", *(member / "src" for member in MEMBERS)]
        for path in source.rglob("*.py")
        if path.stem != "__init__"
    }
    needs = {name: modules.keys() & set(imported(path)) - {name} for name, path in modules.items()}

    list(TopologicalSorter(needs).static_order())  # raises CycleError


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]], ids=" ".join)
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


def test_the_core_imports_no_package() -> None:
    sources = [path for path in CORE.rglob("*.py") if not path.stem.endswith(("_command", "__main__"))]  # have options
    modules = [".".join(path.relative_to(ROOT / "core").with_suffix("").parts) for path in sources]
    wanted = sorted(name.removesuffix(".__init__") for name in modules)
    code = (
        f"import importlib, sys\nfor name in {wanted!r}: importlib.import_module(name)\n"
        "print([name for name in sys.modules if name.startswith('keval_') or name in ('numpy', 'scipy', 'mcp')])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]" == done.stdout.strip()


def test_the_list_of_commands_begins_with_those_that_are_described() -> None:
    lines = (CORE / "cli" / "commands.txt").read_text(encoding="utf-8").splitlines()
    described = [line.partition(": ")[0] for line in lines[: lines.index("Old names")] if ": " in line]
    context = click.Context(main)

    assert described == main.list_commands(context)[: len(described)]
    assert [] == [name for name in described if main.get_command(context, name) is None]


def test_every_hook_is_documented() -> None:
    specs = [value for name, value in vars(hookspecs).items() if name.startswith("keval_")]

    assert specs
    assert [] == [spec.__name__ for spec in specs if not (spec.__doc__ or "").startswith("Called once per ")]


def test_every_entry_point_group_is_documented() -> None:
    guide = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")

    assert [] == [group for group in GROUPS if not re.search(rf"[`.\"]{group}[`\"\]]", guide)]


def test_every_module_says_what_it_is() -> None:
    modules = [*CORE.rglob("*.py"), *(path for member in MEMBERS for path in (member / "src").rglob("*.py"))]

    silent = [path for path in modules if not module_of(path).docstring]

    assert [] == [str(path.relative_to(ROOT)) for path in silent]


@pytest.mark.parametrize("member", MEMBERS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_member_fits_the_versions_of_the_others(member: Path) -> None:
    """uv ignores version specifiers between members; pip does not."""
    project = tomllib.loads((member / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [Requirement(text) for text in project["dependencies"]]
    siblings = {requirement.name: requirement for requirement in needed if requirement.name.startswith("keval")}

    assert "keval-core" in siblings
    assert [] == [name for name, need in siblings.items() if version(name) not in need.specifier]
