"""The history of evaluations: in the terminal, as lines for programs, and as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from keval.cli.console import print_sections
from keval.records.formats import counted
from keval.store.serialization import to_plain
from keval_analysis.history.trends import Trend, TrendRun
from keval_report.history import STEPS, HistoryTable, change_texts, history_table
from keval_report.terminal.plain_table import column_parts
from keval_report.words import folded, one_line, padded, run_name, tabbed

_STYLES = {"better": "green", "worse": "red", "": ""}
_GAP = 3
_HEADS = ("run", "questions")
_TITLES = 3
"""Lines above the points of a column: agent, condition, and what it is held against."""


def describe_history(trends: Iterable[Trend], root: Path) -> list[dict[str, Any]]:
    """Describe trends as plain data."""
    return [
        {
            "evaluation": trend.evaluation,
            "metric": trend.metric,
            "judge": trend.judge,
            "scale": to_plain(trend.scale),
            "of": "effects" if trend.effects else "means",
            "runs": [_described(run, root) for run in trend.runs],
        }
        for trend in trends
    ]


def _described(run: TrendRun, root: Path) -> dict[str, Any]:
    fields = to_plain(attrs.evolve(run, points={}))
    return {
        "run": fields.pop("id"),
        "path": str(root / fields.pop("run")),
        **fields,
        "before": run.before and str(root / run.before),
        "points": [{**to_plain(series), **to_plain(point)} for series, point in run.points.items()],
    }


def history_rows(trends: Iterable[Trend], root: Path) -> Iterator[str]:
    """Yield a line for each point, for programs, newest run first: 23 fields with tabs between; unknown ones are empty.

    The fields are evaluation, run, started, samples, repetitions, metric, judge, agent, condition, the agent and the
    condition that it is held against, n, value, ci_low, ci_high, verdict, step, gates that failed, dollars, the run
    before, whether that asked the same questions (yes, no), what changed, and path.
    """
    for trend in trends:
        for run in trend.runs:
            of_run: list[object] = [trend.evaluation, run.id, run.started, run.samples, run.repetitions]
            rest: list[object] = [run.gates["failed"] if run.gates else None, run.cost.usd]
            rest += [Path(run.before).name, "yes" if run.asks_the_same else "no"] if run.before else [None, None]
            rest += ["; ".join(change_texts(run.changes)), root / run.run]
            for series, point in run.points.items():
                against = series.against
                arm: list[object] = [trend.metric, trend.judge, series.agent, series.condition]
                arm += [against.agent, against.condition] if against else [None, None]
                arm += [point.n, point.value, point.ci_low, point.ci_high, point.verdict, point.step]
                yield tabbed([*of_run, *arm, *rest])


def print_history(trends: Iterable[Trend], console: Console, root: Path) -> None:
    """Print a table for each evaluation: a line for each run, the newest first, and below it what it changed."""
    arrows = {"higher": " ^", "lower": " v"} if console.options.ascii_only else {"higher": " ↑", "lower": " ↓"}
    tables = [history_table(trend) for trend in trends]
    simulated = all(table.simulated for table in tables)
    sections = [
        [_simulated(console.width)] if simulated else [],
        *([*_title(each, console.width, simulated), *_table(each, arrows, console.width)] for each in tables),
        _notes(tables, arrows, console.width, root),
    ]
    print_sections(sections, console)


def _simulated(width: int) -> Text:
    return Text("SIMULATED MODEL: shows that keval works, not what a model can do"[:width], "bold yellow")


def _title(table: HistoryTable, width: int, told: bool) -> Iterator[Text]:
    """Yield what is shown, and that models were simulated unless that was `told`."""
    what = f"{'difference' if table.trend.effects else 'mean'} and 95 % interval"
    for line in folded(f"{one_line(table.trend.evaluation)}: {table.metric}, {what}", width):
        yield Text(line, "bold")
    if table.simulated and not told:
        yield _simulated(width)


def _table(table: HistoryTable, arrows: Mapping[str, str], width: int) -> Iterator[Text]:
    """Yield the table in as many parts as the width needs. What runs changed stands in the first."""
    heads = [[row.run.id, f"{row.run.samples or '–'} × {row.run.repetitions}"] for row in table.rows]
    sizes = [max(map(cell_len, column)) for column in zip(_HEADS, *heads, strict=True)]
    columns = [[*titles] for titles in table.titles]
    for cells in (row.cells for row in table.rows):
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell.text + (arrows[cell.point.step] if cell.point and cell.point.step else ""))
    widths = [max(map(cell_len, column)) for column in columns]
    first = sum(sizes) + _GAP * len(sizes)

    def line(number: int, head: Sequence[str], part: Sequence[int], style: str = "") -> Text:
        text = Text("".join(padded(cell, size + _GAP) for cell, size in zip(head, sizes, strict=True)))
        for place in part:
            verdict = table.rows[number - _TITLES].cells[place].verdict if number >= _TITLES else ""
            text.append(padded(columns[place][number], widths[place] + _GAP), _STYLES[verdict])
        text.stylize(style)
        text.rstrip()
        return text

    for position, part in enumerate(column_parts(widths, width - first, gap=_GAP)):
        yield from [Text()] if position else []
        titles = [number for number in range(_TITLES) if any(columns[place][number] for place in part)]
        for number in titles:
            yield line(number, _HEADS if number == titles[-1] else ("", ""), part, "dim" if number else "bold")
        for number, head in enumerate(heads):
            yield line(number + _TITLES, head, part)
            yield from [_below(table, number, width)] if position == 0 else []


def _below(table: HistoryTable, number: int, width: int) -> Text:
    """Return in one line what is special about a run, and what it changed against the run before it."""
    row = table.rows[number]
    below = table.rows[number + 1].run.run if number + 1 < len(table.rows) else None
    told = "; ".join(row.changes) or "nothing changed"
    if row.run.before is None:
        told = "the first run"
    elif row.run.before != below:
        told = f"against {Path(row.run.before).name}: {told}"
    line = Text(f"  {'   '.join(filter(None, (', '.join(row.remarks), told)))}", "dim")
    line.truncate(width, overflow="ellipsis")
    return line


def _notes(tables: Sequence[HistoryTable], arrows: Mapping[str, str], width: int, root: Path) -> Iterator[Text]:
    runs = [run for table in tables for run in table.trend.runs]
    told = []
    if any(point.step for run in runs for point in run.points.values()):
        told.append(f"{arrows['higher']} {arrows['lower']} {STEPS}")
    if unshown := sum(table.trend.unshown for table in tables):
        told.append(f"{counted(unshown, 'older run')} not shown; --limit N shows more")
    if len(tables) == 1 and (others := tables[0].others):
        told.append(f"other metrics: {', '.join(others.values())}")
    if run := next((run for run in runs if run.before), None):
        before, now = (run_name(root / str(name)) for name in (run.before, run.run))
        told.append(f"question by question: keval compare {before} {now}")
        told.append(f"what changed, in full: keval history --changes {now}")
    yield from (Text(line, "dim") for text in told for line in folded(text, width))
