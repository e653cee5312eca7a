"""The words of a history: points with their intervals, and what runs changed in a few words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from keval.analysis.composition import PartChange
from keval.analysis.history.rows import PLAY, UNFINISHED
from keval.analysis.history.trends import Point, Series, Trend, TrendRun
from keval.records.models import dollars
from keval.records.scores import Scale
from keval.report.words import counted, display_names, number, one_line, signed, with_units

STEPS = "the interval lies above or below that of the run it is held against: a cautious sign of a change"
"""What the marks of steps mean."""
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


def metric_name(trend: Trend) -> str:
    """Return what to call the metric of a trend, with its units, and whether less is better."""
    names = display_names([trend.scorer, *(entry.scorer for entry in trend.others)])
    less = ", less is better" if trend.scale.better == "lower" else ""
    return with_units(names[trend.scorer], trend.scale) + less


def series_names(series: Series) -> tuple[str, str, str]:
    """Return the agent and the condition of a series, and what it is held against, if it is."""
    against = series.against
    other = "" if against is None else against.condition if against.agent == series.agent else against.agent
    return one_line(series.agent), one_line(series.condition), one_line(f"against {other}") if other else ""


def point_text(point: Point | None, series: Series, samples: int | None) -> str:
    """Return a figure with its interval, and the number of samples where it is not over all of a run's `samples`."""
    if point is None or point.value is None:
        return "–"
    told = signed if series.against else number
    parts = [told(point.value)]
    if point.ci_low is not None and point.ci_high is not None:
        parts.append(f"[{told(point.ci_low)}, {told(point.ci_high)}]")
    if point.n != samples:
        parts.append(f"n={point.n}")
    return " ".join(parts)


def step_verdict(point: Point, scale: Scale) -> str:
    """Return whether a step is to the better or the worse; empty without a step."""
    if point.step is None:
        return ""
    return "better" if (point.step == "higher") == (scale.better == "higher") else "worse"


def remarks(run: TrendRun) -> list[str]:
    """Return what is special about a run: its models, its origin, failures, cost and gates."""
    gates = ", ".join(
        f"{run.gates[verdict]} {verdict}" for verdict in ("failed", "undecided", "held") if run.gates[verdict]
    )
    found = {
        "simulated": bool(run.simulated),
        f"replay of {run.replay_of}": run.replay_of,
        f"{run.failed:,} of {counted(run.trials, 'trial')} failed": run.failed,
        f"{dollars(run.cost.usd or 0)}{' and unknown' if run.cost.unknown else ''}": run.cost.usd,
        f"gates {gates}": gates,
    }
    return [text for text, applies in found.items() if applies]


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
