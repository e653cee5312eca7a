"""Brings the Markdown that lies outside docs/ into the site, and leads links to where their targets are there.

A link names a file of the repository, so that the same text works on a code host.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from textwrap import indent
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
_OWN = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
_CODE = r"^```.*?^```|`[^`\n]+`"
_TABLE_CODE = re.compile(r"(?<=[ |(])`[^`\n]*\\\|[^`\n]*`")
_LIST_CODE = re.compile(r"^   ```\w.*?^   ```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(rf"{_CODE}|\]\(\s*([^)\s#:]+)(#[^)\s]*)?\)", re.MULTILINE | re.DOTALL)


def members() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the folder of each package of the workspace, and the `project` table of its pyproject.toml."""
    root = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for pattern in (".", *root["tool"]["uv"]["workspace"]["members"]):
        for file in sorted(ROOT.glob(f"{pattern}/pyproject.toml")):
            yield file.parent, tomllib.loads(file.read_text(encoding="utf-8"))["project"]


@cache
def packages() -> dict[str, str]:
    """Return the pages of the packages: the path of a README in the repository, and that of its page in the site."""
    readmes = {
        str((folder / "README.md").relative_to(ROOT)): f"packages/{project['name']}.md" for folder, project in members()
    }
    return readmes | _OWN


@cache
def examples() -> dict[str, str]:
    """Return the pages of the examples, as `packages` does."""
    found = sorted((ROOT / "examples").glob("*/README.md"))
    return {str(file.relative_to(ROOT)): f"examples/{file.parent.name}.md" for file in found}


def uri_of(path: str) -> str:
    """Return where a file of the repository lies in the site."""
    if known := {**packages(), **examples()}.get(path):
        return known
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"files/{path}/index.md" if (ROOT / path).is_dir() else f"files/{path}"


def path_of(uri: str) -> str:
    """Return the file of the repository that a page of the site shows; a generated page is as one of docs/."""
    return {page: path for path, page in {**packages(), **examples()}.items()}.get(uri, f"docs/{uri}")


def linked(uri: str, markdown: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield each link of a page within the repository, and the path that it names."""
    folder = posixpath.dirname(path_of(uri))
    for link in _LINK.finditer(markdown):
        if link[1]:
            yield link, posixpath.normpath(posixpath.join(folder, link[1]))


def navigation(config: MkDocsConfig) -> dict[str, Any]:
    """Return the sections of the navigation by title, each a list that can be added to."""
    return {title: pages for section in config.nav or [] for title, pages in section.items()}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add packages, examples and decisions to the navigation, so that no list of them need be kept."""
    sections = navigation(config)
    readmes = {path: page for path, page in packages().items() if path not in _OWN}
    for folder, found in groupby(readmes, lambda path: path.partition("/")[0]):
        sections["Plugins"].append({folder.capitalize(): [readmes[path] for path in found]})
    sections["Tutorials"].append({"Examples": [*examples().values()]})
    decisions = sorted(f"decisions/{file.name}" for file in (ROOT / "docs" / "decisions").glob("[!R]*.md"))
    sections["Contributing"].append({"Decisions": ["decisions/README.md", *decisions]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/, and every other file that a page links to."""
    for path, uri in {**packages(), **examples()}.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    paths = {path for page in files.documentation_pages() for _, path in linked(page.src_uri, page.content_string)}
    for path in sorted(paths):
        uri, source = uri_of(path), ROOT / path
        if not uri.startswith("files/"):
            continue
        contents = sorted(each for each in source.iterdir() if each.is_file()) if source.is_dir() else [source]
        if source.is_dir():
            listing = "\n".join(f"- [{each.name}]({each.name})" for each in contents)
            files.append(File.generated(config, uri, content=f"# {path}\n\n{listing}\n"))
        for file in contents:
            if file.exists():
                files.append(File.generated(config, f"files/{file.relative_to(ROOT)}", abs_src_path=str(file)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead each link to where its target is in the site; MkDocs reports those that lead nowhere.

    Two things are written for code hosts: a bar in the code of a table is escaped, whose backslash would be shown here,
    and code in a numbered list is indented by three spaces, where Python-Markdown wants four.
    """
    markdown = _TABLE_CODE.sub(lambda code: code[0].replace(r"\|", "|"), markdown)
    markdown = _LIST_CODE.sub(lambda code: indent(code[0], " "), markdown)
    here, pieces, end = page.file.src_uri, [], 0
    for link, path in linked(here, markdown):
        target = posixpath.relpath(uri_of(path), posixpath.dirname(here))
        pieces += [markdown[end : link.start()], f"]({target}{link[2] or ''})"]
        end = link.end()
    return "".join([*pieces, markdown[end:]])
