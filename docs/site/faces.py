"""Writes pages for the public modules of the core: the names that a stub lists, a page for each heading that it has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path

import attrs
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from outside_pages import ROOT, navigation

FACES = {
    "keval": "keval/__init__.pyi",
    "keval.plugin": "keval/plugin.pyi",
    "keval_testing": "../plugins/testing/src/keval_testing/__init__.pyi",
}
"""The public modules, and the stub of each."""
_IMPORT = re.compile(r"^from (?P<home>\S+) import (?P<names>\([^)]*\)|.*)$|^# (?!ruff)(?P<heading>.+)$", re.MULTILINE)


@attrs.frozen
class Section:
    """Names of a public module that its stub has under one heading, each with the module that defines it."""

    module: str
    heading: str
    about: str
    names: list[str] = attrs.field(factory=list)

    @property
    def uri(self) -> str:
        """Where its page lies in the site."""
        slug = re.sub(r"\W+", "-", f"{self.module} {self.heading.partition(',')[0]}".lower()).strip("-")
        return f"reference/python/{slug}.md"

    def page(self) -> str:
        """Return its page, to which mkdocstrings adds the docstrings."""
        title = f"# {self.module}{': ' if self.heading else ''}{self.heading[:1].lower()}{self.heading[1:]}"
        about = self.about or f"Names to import from `{self.module}`."
        return "\n\n".join([title, about, *(f"::: {name}" for name in self.names)])


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the pages to the navigation."""
    entries = []
    for module, found in groupby(sections(), lambda section: section.module):
        pages = [{section.heading: section.uri} for section in found]
        entries.append({module: pages if len(pages) > 1 else next(iter(pages[0].values()))})
    navigation(config)["Reference"].append({"Python": entries})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for section in sections():
        files.append(File.generated(config, section.uri, content=section.page()))
    return files


@cache
def sections() -> list[Section]:
    """Read the sections of all public modules."""
    found = [section for module, stub in FACES.items() for section in _sections(module, ROOT / "core" / stub)]
    return [section for section in found if section.names]


def _sections(module: str, stub: Path) -> Iterator[Section]:
    text = stub.read_text(encoding="utf-8")
    section = Section(module, "", ast.get_docstring(ast.parse(text)) or "")
    for found in _IMPORT.finditer(text):
        if found["heading"]:
            yield section
            heading, _, about = found["heading"].rstrip(".").partition(": ")
            section = Section(module, heading, f"{about[:1].upper()}{about[1:]}." if about else "")
        else:
            section.names.extend(f"{found['home']}.{name}" for name in re.findall(r"(\w+) as", found["names"]))
    yield section
