"""Adds long tables to pages, from the code: what a report may say, all providers of models, all figures of a check."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from keval_instrument.examinations import EXAMINATIONS, figures_of
from keval_providers import ALIASES, PROVIDERS
from keval_report.run_claims import STATEMENTS

if TYPE_CHECKING:  # tests write the tables without it
    from mkdocs.structure.pages import Page

_LEVELS = {"first": "At first", "explained": "With `--explain` and on the page"}
_PROTOCOLS = {"openai-chat": "chat", "openai-responses": "responses", "anthropic": "anthropic", "gemini": "gemini"}


def on_page_markdown(markdown: str, page: Page, **_: object) -> str | None:
    table = TABLES.get(page.file.src_uri)
    return "\n".join([markdown, *table()]) if table else None


def statements() -> Iterator[str]:
    """Yield a table for each level of a report, with a row for each statement."""
    for level, head in _LEVELS.items():
        yield from _table(head, "statement", "printed if")
        yield from (f"| `{each.says}` | {each.when} |" for each in STATEMENTS.values() if each.level == level)


def providers() -> Iterator[str]:
    """Yield the table of all providers, with their variables and protocols."""
    yield from _table("All providers", "provider", "key", "base URL", "protocols")
    for each in PROVIDERS.values():
        names = [each.vendor, *sorted(name for name, meant in ALIASES.items() if meant == each.vendor)]
        wires = ", ".join(_PROTOCOLS[wire] for wire in each.wires)
        yield f"| {_codes(names, ', ')} | {_codes(each.key_variables)} | {_codes(each.url_variables)} | {wires} |"


def figures() -> Iterator[str]:
    """Yield the table of all figures of `keval check`."""
    yield from _table("All figures", "figure", "examination", "what it says")
    for examination in EXAMINATIONS:
        yield from (f"| `{name}` | {examination} | {told} |" for name, told in figures_of([examination]).items())


TABLES: Mapping[str, Callable[[], Iterator[str]]] = {
    "statements.md": statements,
    "models.md": providers,
    "check.md": figures,
}
"""What writes the tables of a page, by its name."""


def _table(head: str, *columns: str) -> Iterator[str]:
    yield from ("", f"## {head}", "", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}")


def _codes(names: tuple[str, ...] | list[str], between: str = " or ") -> str:
    return between.join(f"`{name}`" for name in names)
