"""The history of evaluations: in the terminal and for programs, and in full what one run changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import attrs
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from keval.cli.console import safe
from keval.errors import typed
from keval.records.formats import counted, interval, number
from keval.records.models import dollars
from keval.records.scores import Scorer
from keval.store.run import Run
from keval.store.serialization import to_plain
from keval_analysis.composition import TEXTS, PartChange, what_differs
from keval_analysis.findings.formats import decimals_of
from keval_analysis.history.database import PLAY, UNFINISHED
from keval_analysis.history.trends import Trend, TrendPoint, TrendRun
from keval_report.contexts import SHORT
from keval_report.terminal.comparison import difference_lines
from keval_report.terminal.console import print_sections
from keval_report.words import display_names, fitted, one_line, padded, picked, run_name, with_units

STEPS = "the interval lies above or below that of the run it is held against: a cautious sign of a change"
"""What the arrows of steps mean."""
_NAMED = 3
"""Runs that are named as left out."""
_SHORT = 30
"""Characters of what a part was and is, up to which both are told."""
_VERSION, _SCORER = "version of", "version of scorer"
_DIGESTS = ("dataset", _SCORER, "answers of agent", "file of", "listing of")
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


def _cell(point: TrendPoint | None, run: TrendRun, arrows: Mapping[str, str], places: int) -> str:
    """Return a figure with its interval and step, and the number of samples where it is not over all of a run's."""
    if point is None or point.value is None:
        return "–"
    parts = [number(point.value, places)]
    if within := interval(point.ci_low, point.ci_high, places):
        parts.append(within)
    if point.n != run.samples:
        parts.append(f"n={point.n}")
    return " ".join(parts) + (arrows[point.step] if point.step else "")


def _remarks(run: TrendRun, *, simulated: bool) -> Iterator[str]:
    """Yield what is special about a run: its note, models, its origin, failures, cost and gates."""
    if run.note:
        yield one_line(run.note)
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
    # Of these parts, what they were or are says nothing to people.
    if None in (each.before, each.now) and each.kind in ("agent", "condition", _SCORER):
        return " is new" if each.before is None else " is gone"
    if (
        each.kind in ("tools of", "parts of")
        and (was := _TOOLS.fullmatch(before))
        and (is_now := _TOOLS.fullmatch(now))
    ):
        old, new = was[1].split(", "), is_now[1].split(", ")
        moved = [f"+{tool}" for tool in new if tool not in old] + [f"-{tool}" for tool in old if tool not in new]
        return f": {' '.join(moved) or 'other words'}"
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


_GAP = 3
_NARROWEST = 12
_HEADS = ("run", "questions")
_TITLES = 2
"""Lines above the points of a column: agent and condition."""


def describe_history(trends: Iterable[Trend], root: Path) -> list[dict[str, Any]]:
    """Describe trends as plain data."""
    return [
        {
            **picked(trend, "evaluation", "metric", "judge"),
            "scale": to_plain(trend.scale),
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


def print_history(trends: Iterable[Trend], console: Console, root: Path) -> None:
    """Print a table for each evaluation: a line for each run, the newest first, and below it what it changed."""
    arrows = {"higher": " ^", "lower": " v"} if console.options.ascii_only else {"higher": " ↑", "lower": " ↓"}
    trends = [*trends]
    simulated = all(map(_is_simulated, trends))
    sections = [
        [_simulated(console.width)] if simulated else [],
        *([*_title(each, console.width, simulated), *_table(each, arrows, console.width)] for each in trends),
        _latest(trends, root, console.width),
        _notes(trends, arrows, root),
    ]
    print_sections([fitted(section, console.width) for section in sections], console)


def _is_simulated(trend: Trend) -> bool:
    return all(run.simulated for run in trend.runs)


def _simulated(width: int) -> Text:
    return Text("SIMULATED MODEL: shows that keval works, not what a model can do"[:width], "bold yellow")


def _title(trend: Trend, width: int, told: bool) -> Iterator[Text]:
    """Yield what is shown, and that models were simulated unless that was `told`."""
    metric = with_units(_names(trend)[trend.scorer], trend.scale)
    less = ", less is better" if trend.scale.better == "lower" else ""
    yield Text(f"{one_line(trend.evaluation)}: {metric}{less}, mean and 95 % interval", "bold")
    if _is_simulated(trend) and not told:
        yield _simulated(width)


def _names(trend: Trend) -> Mapping[Scorer, str]:
    return display_names([trend.scorer, *(entry.scorer for entry in trend.others)])


def _table(trend: Trend, arrows: Mapping[str, str], width: int) -> Iterator[Text]:
    """Yield the table in as many parts as the width needs. What runs changed stands in the first."""
    heads = [[run.id, f"{run.samples or '–'} × {run.repetitions}"] for run in trend.runs]
    sizes = [max(map(cell_len, column)) for column in zip(_HEADS, *heads, strict=True)]
    places = decimals_of(point.value for run in trend.runs for point in run.points.values())
    points = [[run.points.get(each) for run in trend.runs] for each in trend.series]
    columns = [
        [
            *map(one_line, (each.agent, each.condition)),
            *(_cell(*of, arrows, places) for of in zip(found, trend.runs, strict=True)),
        ]
        for each, found in zip(trend.series, points, strict=True)
    ]
    widths = [max(map(cell_len, column)) for column in columns]
    first = sum(sizes) + _GAP * len(sizes)

    def line(at: int, head: Sequence[str], part: Sequence[int], style: str = "") -> Text:
        text = Text("".join(padded(cell, size + _GAP) for cell, size in zip(head, sizes, strict=True)))
        for place in part:
            point = points[place][at - _TITLES] if at >= _TITLES else None
            color = "green" if point and point.step == trend.scale.better else "red" if point and point.step else ""
            text.append(padded(columns[place][at], widths[place] + _GAP), color)
        text.stylize(style)
        text.rstrip()
        return text

    for position, part in enumerate(_column_parts(widths, width - first)):
        yield from [Text()] if position else []
        titles = [at for at in range(_TITLES) if any(columns[place][at] for place in part)]
        for at in titles:
            yield line(at, _HEADS if at == titles[-1] else ("", ""), part, "dim" if at else "bold")
        for at, head in enumerate(heads):
            yield line(at + _TITLES, head, part)
            yield from [_below(trend, at, width)] if position == 0 else []


def _column_parts(widths: Sequence[int], width: int) -> Iterator[list[int]]:
    """Yield the numbers of the columns that fit side by side, with a gap between."""
    part: list[int] = []
    used = 0
    for place, cells in enumerate(widths):
        needed = max(cells, _NARROWEST) + _GAP
        if part and used + needed > width:
            yield part
            part, used = [], 0
        part.append(place)
        used += needed
    if part:
        yield part


def _below(trend: Trend, at: int, width: int) -> Text:
    """Return in one line what is special about a run, and what it changed against the run before it."""
    run = trend.runs[at]
    below = trend.runs[at + 1].run if at + 1 < len(trend.runs) else None
    told = "; ".join(change_texts(run.changes)) or "nothing changed"
    if run.before is None:
        told = "the first run"
    elif run.before != below:
        told = f"against {Path(run.before).name}: {told}"
    remarks = ", ".join(_remarks(run, simulated=_is_simulated(trend)))
    line = Text(f"  {'   '.join(filter(None, (remarks, told)))}", "dim")
    line.truncate(width, overflow="ellipsis")
    return line


def _latest(trends: Sequence[Trend], root: Path, width: int) -> Iterator[Text]:
    """Yield in which texts the newest run that is held against another one differs from that."""
    if run := next((run for trend in trends for run in trend.runs if run.before), None):
        found = what_differs(Run(root / run.run), Run(root / str(run.before)), {})
        if texts := [each for each in found if each.what.startswith(TEXTS)]:
            yield Text(f"texts of {run.id}, before → now:")
            yield from islice(difference_lines(texts, width, SHORT), 1, None)  # without its own heading


def _notes(trends: Sequence[Trend], arrows: Mapping[str, str], root: Path) -> Iterator[Text]:
    runs = [run for trend in trends for run in trend.runs]
    told = []
    if any(point.step for run in runs for point in run.points.values()):
        told.append(f"{arrows['higher'].strip()} {arrows['lower'].strip()} {STEPS}")
    if unshown := sum(trend.unshown for trend in trends):
        told.append(f"{counted(unshown, 'older run')} not shown; --limit N shows more")
    if len(trends) == 1 and (others := trends[0].others):
        names = _names(trends[0])
        told.append(f"other metrics: {', '.join(names[entry.scorer] for entry in others)}")
    if run := next((run for run in runs if run.before), None):
        before, now = (run_name(root / str(name)) for name in (run.before, run.run))
        told.append(f"question by question: {typed('compare', before, now)}")
        told.append(f"what changed, in full: {typed('history', '--changes', now)}")
    yield from (Text(text, "dim") for text in told)


def describe_changes(now: Run, before: Run) -> dict[str, Any]:
    """Describe what a run differs in from another one as plain data. Raises RunError."""
    # Without pairs of agents, all of them count, by their labels.
    return {"run": now.id, "against": before.id, "changes": to_plain(tuple(what_differs(now, before, {})))}


def print_changes(now: Run, before: Run, console: Console) -> None:
    """Print what a run differs in from another one, with all lines of texts that differ. Raises RunError."""
    console.print(safe(f"{now.id} against {before.id}", "bold"), soft_wrap=True)
    width = console.width
    print_sections([fitted(difference_lines([*what_differs(now, before, {})], width), width)], console)
    console.print()
    compare = typed("compare", run_name(before.path), run_name(now.path))
    print_sections([fitted([Text(f"question by question: {compare}", "dim")], width)], console)
