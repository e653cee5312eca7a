"""The plain table of a run in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from keval.cli.console import print_sections, safe
from keval.records.formats import number
from keval_analysis.findings.summary import Summary
from keval_report.plain_table import CAPTION, NO_FINDING, PlainTable, plain_table
from keval_report.words import folded, one_line, padded

_GAP = 3
_NARROWEST = 12


def print_plain_table(summary: Summary, console: Console) -> None:
    """Print the plain table of a run, in as many parts as the console's width needs."""
    table, width = plain_table(summary), console.width
    if summary.simulated:
        console.print(safe(f"simulated model: {', '.join(summary.simulated)}; the figures test keval, not a model"))
    names = max((cell_len(row.metric) for _, rows in table.categories for row in rows), default=0)
    first = min(names + 2, width // 2)
    columns = [_column(table, place) for place in range(len(table.arms))]
    for part in column_parts([max(map(cell_len, column)) for column in columns], width - first):
        print_sections([_lines(table, [columns[place] for place in part], part, first)], console)
        console.print()
    print_sections([_notes(table, summary, width)], console)


def _column(table: PlainTable, number: int) -> list[str]:
    """Return the texts of a column: its condition, its agent and its cells."""
    agent, condition = table.arms[number]
    return [one_line(condition), one_line(agent), *(row.cells[number] for _, rows in table.categories for row in rows)]


def column_parts(widths: Sequence[int], width: int, gap: int = _GAP) -> Iterator[list[int]]:
    """Yield the numbers of the columns that fit side by side, with a gap between."""
    part: list[int] = []
    used = 0
    for place, cells in enumerate(widths):
        needed = max(cells, _NARROWEST) + gap
        if part and used + needed > width:
            yield part
            part, used = [], 0
        part.append(place)
        used += needed
    if part:
        yield part


def _lines(table: PlainTable, columns: Sequence[Sequence[str]], part: Sequence[int], first: int) -> Iterator[Text]:
    widths = [max(_NARROWEST, *map(cell_len, column)) for column in columns]

    def row(head: str, cells: Sequence[str]) -> str:
        told = (f"{' ' * _GAP}{padded(cell, width)}" for cell, width in zip(cells, widths, strict=True))
        return (padded(head, first) + "".join(told)).rstrip()

    conditions = [column[0] for column in columns]
    shown = [name if name != before else "" for before, name in zip([None, *conditions], conditions, strict=False)]
    yield Text(row("", shown), "dim")
    yield Text(row("", [column[1] for column in columns]), "bold")
    for category, rows in table.categories:
        if category is not None:
            yield safe(category, "bold")
        for each in rows:
            yield Text(row(f"  {each.metric}" if category else each.metric, [each.cells[number] for number in part]))


def _notes(table: PlainTable, summary: Summary, width: int) -> Iterator[Text]:
    used = "included" if summary.neutral == "count" else "left out"
    yield from (Text(line, "dim") for line in folded(f"{CAPTION}; neutral scores are {used}.", width, hanging=0))
    if not table.ranking:
        return
    yield Text()
    yield from (Text(line, "bold") for line in folded(f"rank by {table.ranked_by}", width, hanging=2))
    for place, arm in enumerate(table.ranking, 1):
        yield safe(f"  {place}  {number(arm.share)}  {one_line(arm.agent)}, {one_line(arm.condition)}")
    yield from (Text(line, "dim") for line in folded(f"{NO_FINDING} `keval report` does.", width, hanging=0))
