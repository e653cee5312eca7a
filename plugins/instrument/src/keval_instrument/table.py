"""What a check found, in the terminal: an examination a block, the worst first, then bounds and runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from keval.records.formats import counted, interval
from keval_instrument.findings import Checked, Examined, Figure
from keval_report.terminal.console import print_sections
from keval_report.words import flowed, folded, labelled, one_line, padded

_MOST_ROWS = 6
_MOST_COLUMNS = 4
_MOST_NAMED = 3
_LEAST_NAME = 8
_MORE = "--json"
_GOOD_WHEN_LARGE = frozenset({"detection", "golden", "noticed", "repeat", "solutions", "untouched"})
"""Shares that are good when they are large; all others are good when they are small."""


def print_checked(checked: Checked, console: Console) -> None:
    """Print what a check found, in about a screen; what does not fit is counted."""
    width = console.width
    done = sorted((each for each in checked.examined if each.reason is None), key=lambda each: -len(each.defects))
    undone = [f"{each.examination}: {one_line(each.reason)}" for each in checked.examined if each.reason is not None]
    sections = [[Text(line, "bold") for line in folded(f"check of {one_line(checked.evaluation)}", width)]]
    sections += [[*_block(each, width)] for each in done]
    sections.append([Text(line, "yellow") for line in labelled("not done", undone, width)])
    sections.append([*_ending(checked, width)])
    print_sections(sections, console)


def _block(examined: Examined, width: int) -> Iterator[Text]:
    """Yield an examination: tables of its figures, then its defects."""
    yield Text(examined.examination, "bold")
    for kinds, figures in by_kinds(examined.figures).items():
        if not kinds:
            sizes = ["" if figure.unit == "count" else f" n={figure.n}" for figure in figures]
            alone = [f"{each.name} {_cell(each, wide=True)}{n}" for each, n in zip(figures, sizes, strict=True)]
            yield from (Text(f"  {line}") for line in flowed(alone, width - 2))
        elif len(kinds) == 1:
            yield from _table(kinds[0], _rows(figures, kinds[0]), width)
        elif (
            len({figure.name for figure in figures}) == 1
            and len({each.of[kinds[1]] for each in figures}) <= _MOST_COLUMNS
        ):
            yield from _table(kinds[0], _rows(figures, *kinds), width)
    for defect in examined.defects[:_MOST_NAMED]:
        told = one_line(f"{defect.sample}: {defect.problem}" if defect.sample is not None else defect.problem)
        yield from (Text(line, "red") for line in folded(told, width, indent=2))
    if (more := len(examined.defects) - _MOST_NAMED) > 0:
        yield Text(f"  and {more:,} more like these: {_MORE}", "dim")


def by_kinds(figures: Sequence[Figure]) -> Mapping[tuple[str, ...], list[Figure]]:
    """Return figures by the kinds of things that they are of."""
    found: dict[tuple[str, ...], list[Figure]] = {}
    for figure in figures:
        found.setdefault((*figure.of,), []).append(figure)
    return found


def _rows(figures: Sequence[Figure], kind: str, across: str | None = None) -> dict[str, dict[str, Figure]]:
    """Return the figures of each thing of a kind, by name, and by what they are of `across`."""
    rows: dict[str, dict[str, Figure]] = {}
    for figure in figures:
        column = figure.name if across is None else f"{figure.name} {one_line(figure.of[across])}"
        rows.setdefault(one_line(figure.of[kind]), {})[column] = figure
    return rows


def _table(kind: str, rows: Mapping[str, Mapping[str, Figure]], width: int) -> Iterator[Text]:
    """Yield a row for each thing, the worst first, and a column for each figure, with its interval if there is room."""
    columns = [*dict.fromkeys(column for each in rows.values() for column in each)]
    known = [row for row, each in rows.items() if _is_known([*each.values()])]
    shown = sorted(known, key=lambda row: max(map(_badness, rows[row].values())), reverse=True)[:_MOST_ROWS]
    name = min(max(map(cell_len, [kind, *shown])), width // 3)
    cells: dict[str, list[str]] = {}
    widths: list[int] = []
    # Intervals are given up before names are cut.
    for wide in (True, False):
        cells = {row: [_cell(rows[row].get(column), wide=wide) for column in columns] for row in shown}
        widths = [max(map(cell_len, each)) for each in zip(columns, *cells.values(), strict=True)]
        if sum(widths) + 2 * len(widths) + name + 8 <= width:
            break
    name = max(min(name, width - sum(widths) - 2 * len(widths) - 8), _LEAST_NAME)
    if shown:
        yield Text(_line(padded(kind, name), columns, widths, "n"), "dim")
    for row, each in cells.items():
        sizes = {figure.n for figure in rows[row].values() if figure.value is not None}
        n = str(min(sizes)) if len(sizes) == 1 else f"{min(sizes)}-{max(sizes)}"
        yield Text(_line(padded(row, name), each, widths, n))
    if (more := len(known) - len(shown)) > 0:
        yield Text(f"  and {counted(more, 'more row')}, none worse: {_MORE}", "dim")
    if unknown := [row for row in rows if row not in known]:
        others = f" and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
        reasons = {one_line(each.reason) for row in unknown for each in rows[row].values() if each.reason}
        why = next(iter(reasons)) if len(reasons) == 1 else f"{_MORE} says why"
        told = f"nothing known of {', '.join(unknown[:_MOST_NAMED])}{others}: {why}"
        yield from (Text(line, "dim") for line in folded(told, width, indent=2))


def _is_known(figures: Sequence[Figure]) -> bool:
    """Return whether anything is known: more than a count of what is not, where there is more than counts."""
    telling = [figure for figure in figures if figure.unit != "count"] or figures
    return any(figure.value is not None for figure in telling)


def _line(begin: str, cells: Sequence[str], widths: Sequence[int], n: str) -> str:
    parts = (padded(cell, width, right=True) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(["", begin, *parts, n])


def _cell(figure: Figure | None, *, wide: bool) -> str:
    if figure is None:
        return ""
    return " ".join(filter(None, (figure.told, interval(figure.low, figure.high) if wide else "")))


def _badness(figure: Figure) -> tuple[bool, float]:
    """Return how bad a figure is: shares count before points and counts, which have no common measure."""
    if figure.value is None:
        return (False, 0.0)
    if figure.unit != "share":
        return (False, abs(figure.value))
    return (True, 1 - figure.value if figure.name in _GOOD_WHEN_LARGE else figure.value)


def _ending(checked: Checked, width: int) -> Iterator[Text]:
    """Yield the bounds, those that are not met first, and where the runs are."""
    words = {True: ("met", "green"), False: ("not met", "red"), None: ("not examined", "yellow")}
    for place, bound in enumerate(sorted(checked.bounds, key=lambda each: (each.met is not False, each.met is True))):
        told, style = words[bound.met]
        text = one_line(f"{bound.bound}  {told} ({bound.reason})")
        yield from (Text(line, style) for line in labelled("" if place else "bounds", [text], width))
    runs = [f"{name}: keval report {one_line(shlex.quote(run))}" for name, run in checked.runs.items()]
    yield from (Text(line, "dim") for line in labelled("runs", runs, width))
