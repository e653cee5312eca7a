"""Writes llms.txt, by which a language model finds its way through the site, and the pages as Markdown that it names.

See https://llmstxt.org for the format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

_TOP = """# {name}

> {description}

keval asks agents the same questions under several conditions (which MCP servers and instructions they get), scores
every answer, and says which condition or agent is better, and by how much. A coding agent begins with
[SKILL.md](skill/keval/SKILL.md). All pages in one file: [llms-full.txt](llms-full.txt).
"""
_pages: list[Page] = []


def on_env(env: object, config: MkDocsConfig, files: Files) -> None:
    """Keep the pages in the order of the navigation."""
    _pages.clear()
    home = files.get_file_from_path("index.md")
    page = home.page if home else None
    while isinstance(page, Page):
        _pages.append(page)
        page = page.next_page


def on_post_build(config: MkDocsConfig) -> None:
    site = Path(config.site_dir)
    for page in _pages:
        if not _is_generated_from_code(page):
            text = page.file.content_string if page.meta else page.markdown or ""  # a skill stays as it is
            (site / page.file.src_uri).parent.mkdir(parents=True, exist_ok=True)
            (site / page.file.src_uri).write_text(text, encoding="utf-8")
    (site / "llms.txt").write_text("\n".join(_index(config)), encoding="utf-8")
    whole = "\n\n".join(page.markdown or "" for page in _pages if not _is_generated_from_code(page))
    (site / "llms-full.txt").write_text(whole, encoding="utf-8")


def _index(config: MkDocsConfig) -> Iterator[str]:
    base = config.site_url or ""
    yield _TOP.format(name=config.site_name, description=config.site_description)
    for section, pages in groupby(_pages, lambda page: list(page.ancestors)[-1].title):
        # What stands under Optional can be skipped where space is short.
        yield f"## {'Optional' if section == 'Contributing' else section}\n"
        for page in pages:
            target = page.url if _is_generated_from_code(page) else page.file.src_uri
            yield f"- [{page.title}]({base}{target}): {first_sentence(page.markdown or '')}"
        yield ""


def _is_generated_from_code(page: Page) -> bool:
    """Return whether the text of a page comes from docstrings, so that its Markdown says nothing."""
    return "\n::: " in (page.markdown or "")


def first_sentence(markdown: str) -> str:
    """Return the first sentence below the heading of a page, without its links and emphasis."""
    for paragraph in re.split(r"\n{2,}", re.sub(r"^```.*?^```", "", markdown, flags=re.MULTILINE | re.DOTALL)):
        if paragraph and not re.match(r"[#|!<\s]|:::", paragraph):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split())).replace("**", "")
            return re.split(r"(?<=[.?:])\s+(?=[A-Z`]|keval)", text)[0].removesuffix(":")
    raise ValueError(f"the page has no paragraph of text: {markdown[:60]!r}")
