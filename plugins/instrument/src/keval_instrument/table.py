"""What a check found, in the terminal: an examination a block, the worst first, then bounds and runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from keval.plugin import counted, flowed, folded, interval, labelled, number, one_line, padded, print_sections
from keval_instrument.findings import Checked, Defect, Examined, Figure

_MOST_ROWS = 6
_MOST_DEFECTS = 3
MORE_IS_BETTER = frozenset({"detection", "drop", "golden", "noticed", "solutions", "untouched"})
"""Figures that are good when they are large; all others are good when they are small."""


def print_checked(checked: Checked, console: Console) -> None:
    """Print what a check found, in about a screen; the rest is counted."""
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
    for kind, figures in _by_kind(examined.figures).items():
        if kind:
            yield from _table(kind, figures, width)
        else:
            yield from (Text(f"  {line}") for line in flowed([_alone(figure) for figure in figures], width - 2))
    yield from _reasons(examined.figures, width)
    for defect in examined.defects[:_MOST_DEFECTS]:
        yield from (Text(line, "red") for line in folded(_told(defect), width, indent=2))
    if (more := len(examined.defects) - _MOST_DEFECTS) > 0:
        yield Text(f"  and {more:,} more like these: --json or --html", "dim")


def _by_kind(figures: Sequence[Figure]) -> Mapping[str, list[Figure]]:
    """Return the figures of at most one thing each, by what kind of thing that is."""
    found: dict[str, list[Figure]] = {}
    for figure in figures:
        if len(figure.of) < 2:
            found.setdefault(next(iter(figure.of), ""), []).append(figure)
    return found


def _alone(figure: Figure) -> str:
    """Return a figure of nothing in particular, with its name."""
    n = "" if figure.unit == "count" else f" n={figure.n}"
    return f"{figure.name} {_cell(figure, wide=True)}{n}"


def _table(kind: str, figures: Sequence[Figure], width: int) -> Iterator[Text]:
    """Yield a row for each thing, the worst first, and a column for each figure, with its interval if there is room."""
    columns = [*dict.fromkeys(figure.name for figure in figures)]
    rows: dict[str, dict[str, Figure]] = {}
    for figure in figures:
        rows.setdefault(one_line(figure.of[kind]), {})[figure.name] = figure
    kept = sorted(rows, key=lambda row: max(map(_badness, rows[row].values())), reverse=True)
    shown = kept[:_MOST_ROWS]
    name = min(max(map(cell_len, [kind, *shown])), width // 3)
    cells: dict[str, list[str]] = {}
    widths: list[int] = []
    for wide in (True, False):
        cells = {row: [_cell(rows[row].get(column), wide=wide) for column in columns] for row in shown}
        widths = [max(map(cell_len, each)) for each in zip(columns, *cells.values(), strict=True)]
        if sum(widths) + 2 * len(widths) + name + 8 <= width:
            break
    yield Text(_line(padded(kind, name), columns, widths, "n"), "dim")
    for row, each in cells.items():
        yield Text(_line(padded(row, name), each, widths, _sizes([*rows[row].values()])))
    if (more := len(kept) - _MOST_ROWS) > 0:
        yield Text(f"  and {counted(more, 'row')} that are better: --json or --html", "dim")


def _reasons(figures: Sequence[Figure], width: int) -> Iterator[Text]:
    """Yield why figures have no value, each reason with the figures that it is of."""
    found: dict[tuple[str, str], list[str]] = {}
    for figure in figures:
        if figure.reason is not None:
            found.setdefault((figure.name, figure.reason), []).extend(map(one_line, figure.of.values()))
    for (name, reason), of in found.items():
        more = f" and {len(of) - _MOST_DEFECTS} more" if len(of) > _MOST_DEFECTS else ""
        told = f"no {name}{' of ' if of else ''}{', '.join(of[:_MOST_DEFECTS])}{more}: {one_line(reason)}"
        yield from (Text(line, "dim") for line in folded(told, width, indent=2))


def _line(begin: str, cells: Sequence[str], widths: Sequence[int], n: str) -> str:
    parts = (padded(cell, width, right=True) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(["", begin, *parts, n])


def _cell(figure: Figure | None, *, wide: bool) -> str:
    if figure is None:
        return ""
    told = f"{figure.value:,.0f}" if figure.value is not None and figure.unit == "count" else number(figure.value)
    return " ".join(filter(None, (told, interval(figure.low, figure.high) if wide else "")))


def _sizes(figures: Sequence[Figure]) -> str:
    sizes = {figure.n for figure in figures if figure.value is not None}
    return "" if not sizes else str(min(sizes)) if len(sizes) == 1 else f"{min(sizes)}-{max(sizes)}"


def _badness(figure: Figure) -> float:
    """Return how bad a figure is among those of its name."""
    if figure.value is None:
        return -1.0
    return 1 - figure.value if figure.name in MORE_IS_BETTER else figure.value


def _told(defect: Defect) -> str:
    return one_line(f"{defect.sample}: {defect.problem}" if defect.sample is not None else defect.problem)


def _ending(checked: Checked, width: int) -> Iterator[Text]:
    """Yield the bounds, and where the runs are."""
    words = {True: ("met", "green"), False: ("not met", "red"), None: ("not examined", "yellow")}
    for place, bound in enumerate(sorted(checked.bounds, key=lambda each: (each.met is not False, each.met is True))):
        told, style = words[bound.met]
        text = one_line(f"{bound.bound}  {told} ({bound.reason})")
        yield from (Text(line, style) for line in _labelled("bounds" if place == 0 else "", text, width))
    for place, (name, run) in enumerate(checked.runs.items()):
        text = f"{name}: keval report {one_line(run)}"
        yield from (Text(line, "dim") for line in _labelled("runs" if place == 0 else "", text, width))


def _labelled(label: str, text: str, width: int) -> Iterator[str]:
    return labelled(label, [text], width)
