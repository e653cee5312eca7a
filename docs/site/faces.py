"""Writes a page for each public module of the core: the names that its stub lists, under the headings that it has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pages import ROOT

_CORE = ROOT / "core"
FACES = {"keval": "keval/__init__.pyi", "keval.plugin": "keval/plugin.pyi"}
"""The public modules, and the stub that lists the names of each."""
_IMPORT = re.compile(r"^from (?P<home>\S+) import (?P<names>\([^)]*\)|.*)$|^# (?!ruff)(?P<heading>.+)$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for module, stub in FACES.items():
        uri = f"reference/{module.rpartition('.')[2]}.md"
        files.append(File.generated(config, uri, content="\n".join(_page(module, _CORE / stub))))
    return files


def _page(module: str, stub: Path) -> Iterator[str]:
    text = stub.read_text(encoding="utf-8")
    yield f"# {module}\n\n{ast.get_docstring(ast.parse(text))}\n"
    headings = False
    for found in _IMPORT.finditer(text):
        if found["heading"]:
            title, _, rest = found["heading"].partition(": ")
            yield f"## {title.rstrip('.')}\n\n{rest.capitalize() + '.' if rest else ''}\n"
            headings = True
            continue
        if not headings:
            yield "## Names\n"
            headings = True
        for name in re.findall(r"(\w+) as", found["names"]):
            yield f"::: {found['home']}.{name}\n"
