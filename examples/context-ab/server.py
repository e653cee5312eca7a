"""An MCP server for the documentation of Molehill, a backup tool that was invented for this example.

It serves over stdio, with two tools: `search_docs` finds sections of the pages in docs/, `read_page` returns a page.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import NamedTuple

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parent / "docs").glob("*.md"))}
MOST_HITS = 3

server = MCPServer(
    "molehill-docs", instructions="The documentation of Molehill, a command-line backup tool.", log_level="WARNING"
)


class Section(NamedTuple):
    """A part of a page, under one heading; `title` is the page's own."""

    page: str
    title: str
    heading: str
    text: str

    @property
    def words(self) -> set[str]:
        return words(f"{self.title} {self.heading} {self.text}")


def words(text: str) -> set[str]:
    """Return a text's words as they are compared: in lower case, and without the commonest endings."""
    found = re.findall(r"[a-z0-9]{2,}", text.lower())
    return {re.sub(r"(?<=\w{3})(?:ing|ed|es|s|e)$", "", word) for word in found}


def sections(page: str, text: str) -> list[Section]:
    title, _, body = text.removeprefix("# ").partition("\n")
    parts = re.split(r"^## (.+)$", body, flags=re.MULTILINE)
    headings = [title, *parts[1::2]]
    return [Section(page, title, heading, part.strip()) for heading, part in zip(headings, parts[::2], strict=True)]


SECTIONS = [section for page, text in PAGES.items() for section in sections(page, text)]


@server.tool()
def search_docs(query: str) -> str:
    """Search the documentation; returns the sections that fit the query best, each with the name of its page."""
    asked = words(query)
    rarity = {word: math.log(len(SECTIONS) / (1 + sum(word in each.words for each in SECTIONS))) for word in asked}

    def relevance(section: Section) -> float:
        return sum(rarity[word] for word in asked & section.words)

    hits = [section for section in sorted(SECTIONS, key=relevance, reverse=True) if relevance(section) > 0][:MOST_HITS]
    if not hits:
        return "No section fits the query."
    return "\n\n".join(f"page: {hit.page}\n\n## {hit.heading}\n\n{hit.text}" for hit in hits)


@server.tool()
def read_page(page: str) -> str:
    """Read one page of the documentation, by the name that a search gives."""
    if page not in PAGES:
        raise ToolError(f"there is no page {page!r}; there are {', '.join(PAGES)}")
    return PAGES[page]


if __name__ == "__main__":
    server.run("stdio")
