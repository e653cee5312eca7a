"""The wide report of a run: a table of means with arms as rows and metrics as columns, and each condition's effect."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from keval.findings.effects import Effect, Repetitions
from keval.findings.summary import ArmScore, Summary
from keval.records.scores import Scale, Scorer
from keval.report.averages import average_lines
from keval.report.blocks import grouped
from keval.report.reviews import confusion_tables, judging_lines, review_lines
from keval.report.server_starts import start_total
from keval.report.terminal.console import safe
from keval.report.terminal.overview import replay_lines
from keval.report.terminal.tools import tool_tables
from keval.report.totals import (
    PARETO,
    compliance_lines,
    cost_effectiveness,
    missing_lines,
    remark_sentences,
    trial_lines,
    unscored_lines,
)
from keval.report.words import number, signed, time_span

_CELL = 17


def print_tables(summary: Summary, console: Console, run: Path, *, under_way: bool) -> None:
    """Print the summary of a run; `run` is its directory.

    `under_way` says that missing trials and scores are still being made.
    """
    if summary.simulated:
        names = ", ".join(summary.simulated)
        told = f": {names}. The figures show that keval works, not what a model can do."
        console.print(Text.assemble(("Simulated model", "bold"), safe(told)))
    for line in replay_lines(summary.replay, console.width):
        console.print(line)
    scorers = list(dict.fromkeys(entry.scorer for entry in summary.arms))
    arms = [(entry.agent, entry.condition) for entry in summary.trials]
    first = max(len(f"{agent} {condition}") for agent, condition in arms) + 4
    columns = max(1, (console.width - first - 2) // (_CELL + 1))
    for _, group in groupby(scorers, key=_whose):
        shared = list(group)
        for start in range(0, len(shared), columns):
            console.print(_table(summary, arms, shared[start : start + columns]))
            console.print()
    for part in (*tool_tables(summary), *confusion_tables(summary)):
        console.print(part)
        console.print()
    _print_footer(summary, console, run, under_way=under_way)


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
        name = metric.rpartition("/")[2].replace("_", " ")
        heading = "\n".join([name, *_scale(scales[metric, judge])])
        table.add_column(Text(heading), justify="right", width=_CELL, vertical="bottom")
    means = {(e.agent, e.condition, *e.scorer): e for e in summary.arms}
    effects = {(e.agent, e.condition, *e.scorer): e for e in summary.effects if e.kind == "condition"}
    for agent, group in grouped(arms, lambda arm: arm[0]).items():
        for _, condition in group:
            found = (means.get((agent, condition, *scorer)) for scorer in scorers)
            cells = [Text.assemble(safe(agent), " ", safe(condition, "dim")), *map(_mean, found)]
            height = max(cell.plain.count("\n") for cell in cells)
            # The label and the means stand on the first line.
            table.add_row(*(cell.append("\n" * (height - cell.plain.count("\n"))) for cell in cells))
        for _, condition in group:
            if condition != summary.baseline:
                changes = (effects.get((agent, condition, *scorer)) for scorer in scorers)
                table.add_row(safe(f"  Δ {condition}", "dim"), *map(_change, changes), end_section=True)
    return table


def _whose(scorer: Scorer) -> tuple[str, str | None]:
    """Return the vendor of a metric, and the judge, if it is a rubric."""
    return scorer[0].rpartition("/")[0], scorer[1]


def _scale(scale: Scale) -> Iterator[str]:
    """Yield the lines of a heading that describe a scale; the usual one, from 0 to 1 with 1 best, has none."""
    usual = (scale.low, scale.high) == (0.0, 1.0)
    span = "" if usual or math.isinf(scale.high) else f"{scale.low:g}-{scale.high:g} "
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
    below = [
        f"n={_count(entry.n)} {counts}",
        *_repeated(entry.repetitions),
        *filter(None, [cost_effectiveness(entry, short=True)]),
    ]
    return Text.assemble(f"{number(entry.mean)}{band}\n", ("\n".join(below), "dim"))


def _repeated(repetitions: Repetitions | None) -> Iterator[str]:
    if repetitions is not None and repetitions.sd is not None:
        flips = "" if repetitions.flip_rate is None else f" flip {repetitions.flip_rate:.0%}"
        yield f"sd {number(repetitions.sd)}{flips}"


def _count(count: int) -> str:
    return str(count) if count < 10_000 else f"{count / 1000:.0f}k"


def _change(entry: Effect | None) -> Text:
    if entry is None or entry.difference is None:
        return Text("–", style="dim")
    error = f" ±{number(entry.stderr)}" if entry.stderr is not None else ""
    return Text.assemble(f"{signed(entry.difference)}{error}", (f" n={_count(entry.n)}", "dim"))


def _bands(scales: Iterable[Scale]) -> list[str]:
    """Return the meaning of bands, once for all metrics that share them."""
    told = ((f"{name} from {begin:g}" for name, begin in scale.bands.items()) for scale in scales)
    return list(dict.fromkeys(f"Bands: {', '.join(parts)}." for parts in map(list, told) if parts))


def _print_footer(summary: Summary, console: Console, run: Path, *, under_way: bool) -> None:
    console.print(
        f"[dim]n counts samples; their repetitions are averaged first. 5/2/1: 5 scores, 2 neutral (nothing to"
        f" judge; {'included in' if summary.neutral == 'count' else 'excluded from'} the means), 1 unscored.[/]"
    )
    if any(effect.kind == "condition" for effect in summary.effects):
        console.print(
            safe(
                f"Δ is the mean difference to {summary.baseline} ± its standard error, over the samples that both"
                " have scores for.",
                "dim",
            )
        )
    if any(arm.repetitions for arm in summary.arms):
        told = "sd is the standard deviation over the repetitions of a question; flip is how often two differ"
        console.print(safe(f"{told} in passing the metric's threshold.", "dim"))
    if any(cost_effectiveness(arm) for arm in summary.arms):
        told = f"/$ and /1k tokens: the mean for each dollar or 1,000 tokens of an answer. {PARETO} marks the"
        console.print(safe(f"{told} Pareto front: no other arm is at least as good at lower cost.", "dim"))
    for named in _bands(entry.scale for entry in summary.scorers):
        console.print(safe(named, "dim"))
    for line in (*unscored_lines(summary), *missing_lines(summary, run, under_way=under_way)):
        console.print(line)
    for told in average_lines(summary):
        console.print(safe(told))
    for told in (*judging_lines(summary), *review_lines(summary)):
        console.print(safe(told))
    for line in compliance_lines(summary):
        console.print(line)
    for told in remark_sentences(summary):
        console.print(safe(told, "yellow"))
    done, failed = sum(entry.trials for entry in summary.trials), sum(entry.failed for entry in summary.trials)
    retried = sum(entry.retried for entry in summary.trials)
    took = f" It took {time_span(summary.elapsed)}." if summary.elapsed is not None else ""
    started = f", {starts}" if (starts := start_total(summary)) is not None else ""
    console.print(f"{done} of {summary.planned} trials, {failed} failed, {retried} retried{started}.{took}")
    for line in trial_lines(summary, under_way=under_way):
        console.print(line)
