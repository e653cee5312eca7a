"""The lines of an arm's means, for a run in which nothing is compared."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.text import Text

from keval.report.figures import aligned, number
from keval.report.lines import folded, one_line, padded
from keval.report.losses import lost_scores
from keval.report.names import display_names
from keval.scores import Scale
from keval.summary import ArmScore, Summary

__all__ = ["mean_lines"]


def mean_lines(summary: Summary, width: int) -> Iterator[Text]:
    """Yield one row for each metric of each arm: mean, 95 % interval, questions, band, and what was lost."""
    names = display_names(entry.scorer for entry in summary.scorers)
    scales = {entry.scorer: entry.scale for entry in summary.scorers}
    known = [entry for entry in summary.arms if entry.mean is not None]
    arms = list(dict.fromkeys((entry.agent, entry.condition) for entry in summary.trials))
    means = dict(zip(map(id, known), aligned([number(entry.mean or 0.0) for entry in known]), strict=True))
    intervals = {id(entry): _interval(entry) for entry in known}
    name = min(max((cell_len(names[entry.scorer]) for entry in known), default=0), width // 2)
    mean, within = (max(map(len, found.values()), default=0) for found in (means, intervals))
    for position, arm in enumerate(arms):
        yield from [Text()] if position else []
        title = f"{one_line(arm[0])}, {one_line(arm[1])}"
        caption = "mean, 95 % interval, n questions"
        yield from (Text(line, "bold") for line in folded(title, width, hanging=2))
        yield Text(f"  {caption}", "dim")
        for entry in (entry for entry in known if (entry.agent, entry.condition) == arm):
            line = Text(f"  {padded(names[entry.scorer], name)}  {means[id(entry)]:<{mean}}  ")
            line.append(f"{intervals[id(entry)]:<{within}}  " if within else "").append(f"n={entry.n:<4}", "dim")
            for text, style in ((_band(entry, scales[entry.scorer]), ""), (lost_scores([entry]), "yellow")):
                if text and line.cell_len + 1 + cell_len(text) <= width:
                    line.append(f" {text}", style)
            line.rstrip()
            line.truncate(width, overflow="ellipsis")
            yield line
        absent = [names[e.scorer] for e in summary.arms if (e.agent, e.condition) == arm and e.mean is None]
        if absent:
            yield from (Text(line, "dim") for line in folded(f"no score: {', '.join(absent)}", width, indent=2))


def _interval(entry: ArmScore) -> str:
    if entry.mean is None or entry.ci_low is None or entry.ci_high is None:
        return ""
    below, above = entry.mean - entry.ci_low, entry.ci_high - entry.mean
    if abs(below - above) < 0.01:
        return f"±{number(max(below, above))}"
    return f"[{number(entry.ci_low)}, {number(entry.ci_high)}]"


def _band(entry: ArmScore, scale: Scale) -> str:
    unit = f"{scale.unit}{', less is better' if scale.better == 'lower' else ''}".lstrip(", ")
    return " ".join(filter(None, (unit, entry.band)))
