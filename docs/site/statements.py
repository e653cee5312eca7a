"""Writes the tables of what a report may say, and when, from the statements of keval-report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from keval_report.run_claims import STATEMENTS

if TYPE_CHECKING:  # tests write the tables without it
    from mkdocs.structure.pages import Page

_HEADS = {"first": "At first", "explained": "With `--explain`, in `--wide` and on the page"}


def on_page_markdown(markdown: str, page: Page, **_: object) -> str | None:
    return "\n".join([markdown, *tables()]) if page.file.src_uri == "statements.md" else None


def tables() -> Iterator[str]:
    """Yield the lines of a table for each level, with a row for each statement."""
    for level, head in _HEADS.items():
        yield from ("", f"## {head}", "", "| statement | printed if |", "|---|---|")
        yield from (f"| `{each.says}` | {each.when} |" for each in STATEMENTS.values() if each.level == level)
