"""The words of a history: points with their intervals, and what runs changed in a few words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import attrs

from keval.records.formats import counted, interval, number, signed
from keval.records.models import dollars
from keval.records.scores import Scorer
from keval_analysis.composition import PartChange
from keval_analysis.findings.formats import decimals_of
from keval_analysis.history.database import PLAY, UNFINISHED
from keval_analysis.history.trends import Trend, TrendPoint, TrendRun, TrendSeries
from keval_report.words import display_names, one_line, with_units

STEPS = "the interval lies above or below that of the run it is held against: a cautious sign of a change"
"""What the arrows of steps mean."""
_NAMED = 3
"""Runs that are named as left out."""
_SHORT = 30
"""Characters of what a part was and is, up to which both are told."""
_VERSION, _SCORER = "version of", "version of scorer"
_DIGESTS = ("dataset", _SCORER, "answers of agent", "file of")
"""Kinds of parts whose values are digests, which say nothing to people."""
_TOOLS = re.compile(r"(.*) \((\w+)\)")


def left_out_texts(left_out: Mapping[str, str]) -> Iterator[str]:
    """Yield which runs are left out of a history, by their reasons."""
    means = {UNFINISHED: "`keval resume` goes on with one that was interrupted", PLAY: "a play has no end"}
    for reason, told in means.items():
        if runs := [run for run, why in left_out.items() if why == reason]:
            named = ", ".join(runs[:_NAMED]) + (f" and {len(runs) - _NAMED} more" if len(runs) > _NAMED else "")
            yield f"left out ({reason}): {named}; {told}"
    yield from (f"skipped: {why}" for why in left_out.values() if why not in means)


@attrs.frozen
class HistoryCell:
    """A point as text, such as `0.57 [0.44, 0.67] n=12`, and whether its step is to the better or the worse."""

    text: str
    point: TrendPoint | None = None
    verdict: Literal["better", "worse", ""] = ""


@attrs.frozen
class HistoryRow:
    """A run of a table: a cell for each series, what is special about the run, and what it changed, in a few words."""

    run: TrendRun
    cells: tuple[HistoryCell, ...]
    remarks: tuple[str, ...]
    changes: tuple[str, ...]


@attrs.frozen
class HistoryTable:
    """A trend in words: `metric` names it, and `titles` are agent, condition and what that is against by series.

    The rows are newest first. All models of a `simulated` table were simulated, which no row remarks.
    """

    trend: Trend
    metric: str
    others: Mapping[Scorer, str]
    titles: tuple[tuple[str, str, str], ...]
    rows: tuple[HistoryRow, ...]
    simulated: bool


def history_table(trend: Trend) -> HistoryTable:
    """Return a trend in words."""
    names = display_names([trend.scorer, *(entry.scorer for entry in trend.others)])
    less = ", less is better" if trend.scale.better == "lower" else ""
    simulated = all(run.simulated for run in trend.runs)
    places = decimals_of(point.value for run in trend.runs for point in run.points.values())
    return HistoryTable(
        trend,
        with_units(names[trend.scorer], trend.scale) + less,
        {entry.scorer: names[entry.scorer] for entry in trend.others},
        tuple(map(_titles, trend.series)),
        tuple(
            HistoryRow(
                run,
                tuple(_cell(run.points.get(series), run, trend, places) for series in trend.series),
                tuple(_remarks(run, simulated=simulated)),
                tuple(change_texts(run.changes)),
            )
            for run in trend.runs
        ),
        simulated,
    )


def _titles(series: TrendSeries) -> tuple[str, str, str]:
    against = series.against
    other = "" if against is None else against.condition if against.agent == series.agent else against.agent
    return one_line(series.agent), one_line(series.condition), one_line(f"against {other}") if other else ""


def _cell(point: TrendPoint | None, run: TrendRun, trend: Trend, places: int) -> HistoryCell:
    """Return a figure with its interval, and the number of samples where it is not over all of a run's."""
    if point is None or point.value is None:
        return HistoryCell("–")
    told = signed if trend.effects else number
    parts = [told(point.value, places)]
    if within := interval(point.ci_low, point.ci_high, places, signs=trend.effects):
        parts.append(within)
    if point.n != run.samples:
        parts.append(f"n={point.n}")
    verdict: Literal["better", "worse", ""] = ""
    if point.step is not None:
        verdict = "better" if (point.step == "higher") == (trend.scale.better == "higher") else "worse"
    return HistoryCell(" ".join(parts), point, verdict)


def _remarks(run: TrendRun, *, simulated: bool) -> Iterator[str]:
    """Yield what is special about a run: its models, its origin, failures, cost and gates."""
    if run.simulated and not simulated:
        yield "simulated"
    if run.replay_of:
        yield f"replay of {run.replay_of}"
    if run.failed:
        yield f"{run.failed:,} of {counted(run.trials, 'trial')} failed"
    if run.cost.usd:
        yield f"{dollars(run.cost.usd)}{' and unknown' if run.cost.unknown else ''}"
    if run.gates:
        verdicts = (f"{run.gates[each]} {each}" for each in ("failed", "undecided", "held") if run.gates[each])
        yield f"gates {', '.join(verdicts)}"


def change_texts(changes: Sequence[PartChange]) -> list[str]:
    """Return changes in a few words each, without long texts; parts of one kind that changed alike share words."""
    names: dict[tuple[str, str], list[str]] = {}
    for each in changes:
        if each.kind != _VERSION:
            names.setdefault((each.kind, _change(each)), []).append(each.name)
    told = [f"{kind} {', '.join(of)}".rstrip() + change for (kind, change), of in names.items()]
    return [*map(one_line, told), *_versions([each for each in changes if each.kind == _VERSION])]


def _change(each: PartChange) -> str:
    """Return how a part changed: `: before → now`, or less where that is long or says nothing."""
    before, now = each.before or "none", each.now or "none"
    if None in (each.before, each.now) and each.kind in ("agent", "condition", _SCORER):
        return " is new" if each.before is None else " is gone"
    if each.kind == "tools of" and (was := _TOOLS.fullmatch(before)) and (is_now := _TOOLS.fullmatch(now)):
        old, new = was[1].split(", "), is_now[1].split(", ")
        moved = [f"+{tool}" for tool in new if tool not in old] + [f"-{tool}" for tool in old if tool not in new]
        return f": {' '.join(moved) or 'other definitions'}"
    told = each.kind not in _DIGESTS and max(len(before), len(now)) <= _SHORT
    return f": {before} → {now}" if told else ""


def _versions(changes: Sequence[PartChange]) -> Iterator[str]:
    """Yield the version of keval, and of one other package, or how many others changed."""
    others = [each for each in changes if each.name != "keval"]
    for each in changes:
        if each.name == "keval" or len(others) == 1:
            yield one_line(f"{each.name} {each.before or 'none'} → {each.now or 'none'}")
    if len(others) > 1:
        yield f"versions of {len(others)} other packages"
