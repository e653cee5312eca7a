"""The tables of a wide report: means with arms as rows and metrics as columns, effects, uses of tools, grades."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from keval.cli.console import safe
from keval.records.formats import number, percent, short_number, signed
from keval.records.scores import Scale, Scorer
from keval_analysis.findings.effects import Effect
from keval_analysis.findings.formats import interval_of
from keval_analysis.findings.summary import ArmScore, Summary
from keval_report.blocks import grouped
from keval_report.reviews import confusion_tables
from keval_report.totals import PARETO, cost_effectiveness
from keval_report.use import tool_tables
from keval_report.words import vendor_and_name

_CELL = 18


def print_tables(summary: Summary, console: Console) -> None:
    """Print all means, effects, uses of tools and grades of a run as tables, and what their figures are."""
    scorers = list(dict.fromkeys(entry.scorer for entry in summary.arms))
    arms = [(entry.agent, entry.condition) for entry in summary.trials]
    first = max(cell_len(f"{agent} {condition}") for agent, condition in arms) + 4
    columns = max(1, (console.width - first - 2) // (_CELL + 1))
    for _, group in groupby(scorers, key=_whose):
        shared = list(group)
        for start in range(0, len(shared), columns):
            console.print()
            console.print(_table(summary, arms, shared[start : start + columns]))
    for part in (*tool_tables(summary), *confusion_tables(summary)):
        console.print()
        console.print(part)
    console.print()
    for line in _legend(summary):
        console.print(safe(line, "dim"))


def _table(summary: Summary, arms: Sequence[tuple[str, str]], scorers: Sequence[Scorer]) -> Table:
    """Return the table of one judge, or of one vendor's metrics. Its name stands once, above the arms."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    vendor, judge = _whose(scorers[0])
    who = f"{vendor}/" if vendor else ""
    if judge is not None:
        who = f"{who}\nby {judge}{' (simulated)' if summary.judges[judge].simulated else ''}".strip()
    table.add_column(Text(who, style="bold"), no_wrap=True, vertical="bottom")
    scales = {entry.scorer: entry.scale for entry in summary.scorers}
    for metric, judge in scorers:
        _, name = vendor_and_name(metric)
        heading = "\n".join([name, *_scale(scales[metric, judge])])
        table.add_column(Text(heading), justify="right", width=_CELL, vertical="bottom")
    means = {(e.agent, e.condition, *e.scorer): e for e in summary.arms}
    effects = {(e.agent, e.condition, *e.scorer): e for e in summary.effects if e.kind == "condition"}
    for agent, group in grouped(arms, lambda arm: arm[0]).items():
        for _, condition in group:
            found = (means.get((agent, condition, *scorer)) for scorer in scorers)
            cells = [Text.assemble(safe(agent), " ", safe(condition, "dim")), *map(_mean, found)]
            table.add_row(*_level(cells))
        for _, condition in group:
            if condition != summary.baseline:
                changes = (effects.get((agent, condition, *scorer)) for scorer in scorers)
                table.add_row(*_level([safe(f"  Δ {condition}", "dim"), *map(_change, changes)]), end_section=True)
    return table


def _level(cells: Sequence[Text]) -> Iterator[Text]:
    """Yield cells of the same height, so that the label and the figures stand on the first line."""
    height = max(cell.plain.count("\n") for cell in cells)
    yield from (cell.append("\n" * (height - cell.plain.count("\n"))) for cell in cells)


def _whose(scorer: Scorer) -> tuple[str, str | None]:
    """Return the vendor of a metric, and the judge, if it is a rubric."""
    return vendor_and_name(scorer[0])[0], scorer[1]


def _scale(scale: Scale) -> Iterator[str]:
    """Yield the lines of a heading that describe a scale; the usual one, from 0 to 1 with 1 best, has none."""
    usual = (scale.low, scale.high) == (0.0, 1.0)
    span = "" if usual or math.isinf(scale.high) else f"{short_number(scale.low)}-{short_number(scale.high)} "
    if unit := f"{span}{scale.unit}".strip():
        yield unit
    if scale.better == "lower":
        yield "less is better"


def _mean(entry: ArmScore | None) -> Text:
    """Return a mean with its band, and below it its counts, how repetitions differ, and what it is worth."""
    if entry is None:
        return Text("–", style="dim")
    counts = "/".join(map(_count, (entry.scored, entry.neutral, entry.unscored)))
    if entry.mean is None:
        return Text(f"{'neutral' if entry.neutral else '–'}\n{counts}", style="dim")
    band = f" {entry.band}" if entry.band else ""
    below = [f"n={_count(entry.n)} {counts}"]
    if (again := entry.repetitions) is not None and again.sd is not None:
        flips = "" if again.flip_rate is None else f" flip {percent(again.flip_rate)}"
        below.append(f"sd {number(again.sd)}{flips}")
    below += filter(None, [cost_effectiveness(entry, short=True)])
    return Text.assemble(f"{number(entry.mean)}{band}\n", ("\n".join(below), "dim"))


def _count(count: int) -> str:
    return str(count) if count < 10_000 else f"{round(count / 1000)}k"


def _change(entry: Effect | None) -> Text:
    if entry is None or entry.difference is None:
        return Text("–", style="dim")
    within = f"\n{found}" if (found := interval_of(entry)) else ""
    return Text.assemble(signed(entry.difference), (f" n={_count(entry.n)}{within}", "dim"))


def _legend(summary: Summary) -> Iterator[str]:
    use = "included in" if summary.neutral == "count" else "excluded from"
    told = f"5/2/1: 5 scores, 2 neutral (nothing to judge; {use} the means), 1 unscored."
    yield f"n counts samples; their repetitions are averaged first. {told}"
    if any(effect.kind == "condition" for effect in summary.effects):
        told = f"Δ is the mean difference to {summary.baseline} and its 95 % interval"
        yield f"{told}, over the samples that both have scores for."
    if any(arm.repetitions for arm in summary.arms):
        told = "sd is the standard deviation over the repetitions of a question; flip is how often two differ"
        yield f"{told} in passing the metric's threshold."
    if any(cost_effectiveness(arm) for arm in summary.arms):
        told = f"/$ and /1k tokens: the mean for each dollar or 1,000 tokens of an answer. {PARETO} marks the"
        yield f"{told} Pareto front: no other arm is at least as good at lower cost."
    # Once for all metrics that share them.
    for bands in dict.fromkeys(tuple(entry.scale.bands.items()) for entry in summary.scorers if entry.scale.bands):
        yield f"Bands: {', '.join(f'{name} from {short_number(begin)}' for name, begin in bands)}."
    if summary.simulated:
        yield f"Simulated: {', '.join(summary.simulated)}. The figures show that keval works, not what a model can do."
