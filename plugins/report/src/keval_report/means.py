"""The means of a run: of each metric and arm, and as the plain table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from keval.cli.console import safe
from keval.records.formats import interval, number
from keval_analysis.findings.formats import aligned
from keval_analysis.findings.summary import ArmScore, Summary
from keval_report.blocks import grouped
from keval_report.terminal.console import print_sections
from keval_report.totals import lost_scores
from keval_report.words import display_names, folded, one_line, padded, with_units


def mean_lines(summary: Summary, width: int) -> Iterator[Text]:
    """Yield one row for each metric of each arm: mean, 95 % interval, questions, band, and what was lost."""
    names = display_names(entry.scorer for entry in summary.scorers)
    scales = {entry.scorer: entry.scale for entry in summary.scorers}
    properties = {each.scorer for each in summary.properties}  # which have a table of their own
    scored = [entry for entry in summary.arms if entry.scorer not in properties]
    known = [entry for entry in scored if entry.mean is not None]
    arms = list(dict.fromkeys((entry.agent, entry.condition) for entry in summary.trials))
    means = dict(zip(map(id, known), aligned([number(entry.mean or 0.0) for entry in known]), strict=True))
    intervals = {id(entry): interval(entry.ci_low, entry.ci_high) for entry in known}
    name = min(max((cell_len(names[entry.scorer]) for entry in known), default=0), width // 2)
    mean, within = (max(map(len, found.values()), default=0) for found in (means, intervals))
    for position, arm in enumerate(arms):
        yield from [Text()] if position else []
        title = f"{one_line(arm[0])}, {one_line(arm[1])}"
        caption = "mean [95 % interval], n questions"
        yield from (Text(title, "bold"), Text(f"  {caption}", "dim"))
        for entry in (entry for entry in known if (entry.agent, entry.condition) == arm):
            line = Text(f"  {padded(names[entry.scorer], name)}  {means[id(entry)]:<{mean}}  ")
            line.append(f"{intervals[id(entry)]:<{within}}  " if within else "").append(f"n={entry.n:<4}", "dim")
            scale = scales[entry.scorer]
            unit = f"{scale.unit}{', less is better' if scale.better == 'lower' else ''}".lstrip(", ")
            band = " ".join(filter(None, (unit, entry.band)))
            for text, style in ((band, ""), (lost_scores([entry]), "yellow")):
                # What does not fit is left out, rather than a figure cut.
                if text and line.cell_len + 1 + cell_len(text) <= width:
                    line.append(f" {text}", style)
            line.rstrip()
            line.truncate(width, overflow="ellipsis")
            yield line
        absent = [names[e.scorer] for e in scored if (e.agent, e.condition) == arm and e.mean is None]
        if absent:
            yield Text(f"  no score: {', '.join(absent)}", "dim")


CAPTION = "mean ± standard deviation over answers"


@attrs.frozen
class PlainRow:
    """A metric, with its mean and standard deviation in each arm as texts; `–` where an arm has no mean."""

    metric: str
    cells: tuple[str, ...]


@attrs.frozen
class PlainTable:
    """Rows by category, a column for each of `arms` (agent, condition), agents side by side."""

    arms: tuple[tuple[str, str], ...]
    categories: tuple[tuple[str | None, tuple[PlainRow, ...]], ...]


def plain_table(summary: Summary) -> PlainTable:
    """Return the plain table of a run."""
    by_condition = grouped(((arm.agent, arm.condition) for arm in summary.trials), lambda arm: arm[1])
    arms = tuple([arm for group in by_condition.values() for arm in group])
    scores = {(entry.agent, entry.condition, *entry.scorer): entry for entry in summary.arms}
    names = display_names(entry.scorer for entry in summary.scorers)
    rows = {}
    for entry in summary.scorers:
        cells = _cells([scores.get((*arm, *entry.scorer)) for arm in arms])
        rows[entry.scorer] = PlainRow(with_units(names[entry.scorer], entry.scale), cells)
    by_category = grouped(summary.scorers, lambda entry: entry.category)
    categories = tuple([(name, tuple([rows[entry.scorer] for entry in of])) for name, of in by_category.items()])
    return PlainTable(arms, categories)


def _cells(entries: Sequence[ArmScore | None]) -> tuple[str, ...]:
    """Return the means of a metric, aligned on the decimal point, with their standard deviations."""
    known = [entry for entry in entries if entry is not None and entry.mean is not None]
    means = dict(zip(map(id, known), aligned([number(entry.mean) for entry in known]), strict=True))
    told = {id(each): means[id(each)] + ("" if each.sd is None else f" ± {number(each.sd)}") for each in known}
    return tuple([told.get(id(entry), "–") for entry in entries])


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
        print_sections([_plain_lines(table, [columns[place] for place in part], part, first)], console)
        console.print()
    used = "included" if summary.neutral == "count" else "left out"
    note = folded(f"{CAPTION}, which says nothing of chance; neutral scores are {used}.", width, hanging=0)
    print_sections([[Text(line, "dim") for line in note]], console)


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


def _plain_lines(
    table: PlainTable, columns: Sequence[Sequence[str]], part: Sequence[int], first: int
) -> Iterator[Text]:
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
