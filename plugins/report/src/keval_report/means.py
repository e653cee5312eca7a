"""The means of a run: of each metric and arm, and as the plain table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from keval.cli.console import safe
from keval.records.formats import interval, number
from keval_analysis.findings.formats import aligned
from keval_analysis.findings.summary import ArmScore, Summary
from keval_report.blocks import grouped
from keval_report.totals import lost_scores
from keval_report.words import display_names, one_line, padded, with_units


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


def _cells(entries: Sequence[ArmScore | None]) -> tuple[str, ...]:
    """Return the means of a metric, aligned on the decimal point, with their standard deviations."""
    known = [entry for entry in entries if entry is not None and entry.mean is not None]
    means = dict(zip(map(id, known), aligned([number(entry.mean) for entry in known]), strict=True))
    told = {id(each): means[id(each)] + ("" if each.sd is None else f" ± {number(each.sd)}") for each in known}
    return tuple([told.get(id(entry), "–") for entry in entries])


_NAMES, _CELL = 26, 14
"""Columns of the terminal that names of metrics take, and at least a mean with its deviation."""


def print_plain_table(summary: Summary, console: Console) -> None:
    """Print mean ± standard deviation of each metric and arm, in as many parts as the console's width needs.

    Rows are by category, and agents stand side by side.
    """
    by_condition = grouped(((arm.agent, arm.condition) for arm in summary.trials), lambda arm: arm[1])
    arms = [arm for group in by_condition.values() for arm in group]
    scores = {(entry.agent, entry.condition, *entry.scorer): entry for entry in summary.arms}
    names = display_names(entry.scorer for entry in summary.scorers)
    categories = grouped(summary.scorers, lambda entry: entry.category)
    if summary.simulated:
        console.print(safe(f"simulated model: {', '.join(summary.simulated)}; the figures test keval, not a model"))
    most = max(1, (console.width - _NAMES) // _CELL)
    for part in (arms[start : start + most] for start in range(0, len(arms), most)):
        shown = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False)
        shown.add_column(overflow="fold")
        above = ""
        for agent, condition in (map(one_line, arm) for arm in part):
            head = Text.assemble((condition if condition != above else "", "dim"), "\n", (agent, "bold"))
            shown.add_column(head, overflow="fold")
            above = condition
        for category, entries in categories.items():
            if category is not None:
                shown.add_row(safe(category, "bold"))
            for entry in entries:
                name = with_units(names[entry.scorer], entry.scale)
                cells = _cells([scores.get((*arm, *entry.scorer)) for arm in part])
                shown.add_row(f"  {name}" if category else name, *cells)
        console.print(shown)
        console.print()
    used = "included" if summary.neutral == "count" else "left out"
    told = f"mean ± standard deviation over answers, which says nothing of chance; neutral scores are {used}."
    console.print(Text(told, "dim"))
