"""The average over all metrics of an arm, and which arm has the highest; the mean of each metric and arm."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import attrs
from rich.cells import cell_len
from rich.text import Text

from keval.records.formats import interval, number
from keval_analysis.findings.effects import Arm, ArmAverage, AverageDifference, Averages
from keval_analysis.findings.formats import aligned
from keval_analysis.findings.summary import Summary
from keval_report.claims import EXPLORATORY
from keval_report.run_claims import HIGHEST_AVERAGE, NO_HIGHEST_AVERAGE
from keval_report.totals import lost_scores
from keval_report.words import display_names, folded, one_line, padded, with_interval


@attrs.frozen
class Winner:
    """Which condition of an agent, or which agent under a condition, has the highest average.

    `among` says whether conditions or agents are compared, and `within` is the agent or condition that they share.
    `leads` are the differences to the others, the least first, and `sure` says that each interval is above 0.
    """

    among: Literal["condition", "agent"]
    within: str
    winner: str
    leads: tuple[AverageDifference, ...]

    @property
    def sure(self) -> bool:
        """Whether the interval of each lead is above 0."""
        return HIGHEST_AVERAGE.holds(self.leads)


def winners(found: Averages) -> Iterator[Winner]:
    """Yield the best condition of each agent, and the best agent under each condition."""
    kinds: list[Literal["condition", "agent"]] = ["condition", "agent"]
    for among, shared in zip(kinds, reversed(kinds), strict=True):
        for within in dict.fromkeys(getattr(arm, shared) for arm in found.arms):
            rivals = [arm for arm in found.arms if getattr(arm, shared) == within]
            if len(rivals) > 1:
                best = max(rivals, key=lambda arm: arm.average)
                leads = [_lead(found, best, rival) for rival in rivals if rival is not best]
                leads.sort(key=lambda lead: -math.inf if lead.difference is None else lead.difference)
                yield Winner(among, within, getattr(best, among), tuple(leads))


def _lead(found: Averages, best: ArmAverage, rival: ArmAverage) -> AverageDifference:
    """Return how much the best arm is ahead of another."""
    one, other = (best.agent, best.condition), (rival.agent, rival.condition)
    for each in found.differences:
        ends = ((each.agent, each.condition), (each.against.agent, each.against.condition))
        if ends == (one, other):
            return each
        if ends == (other, one):
            turned = [None if end is None else -end for end in (each.difference, each.ci_high, each.ci_low)]
            return AverageDifference(*one, Arm(*other, each.against.run), *turned)
    raise ValueError(f"no difference between {one} and {other}")


def average_lines(summary: Summary) -> list[str]:
    """Return the averages in words, an agent a line; nothing for a single arm, or a single metric."""
    found = summary.averages
    if found is None or len(found.arms) < 2 or len(found.metrics) < 2:
        return []
    count, every = len(found.metrics), len(found.metrics) + len(found.left_out)
    of = f" of {every}" if found.left_out else ""
    lines = [f"Average over {count}{of} metrics as shares of their scales ({EXPLORATORY.says}):"]
    best = [] if summary.unfinished else [*winners(found)]
    by_agent = {each.within: each for each in best if each.among == "condition"}
    for agent in dict.fromkeys(arm.agent for arm in found.arms):
        told = ", ".join(f"{arm.condition} {number(arm.average)}" for arm in found.arms if arm.agent == agent)
        lines.append(f"  {agent}: {told}{_verdict(by_agent.get(agent))}")
    lines += [f"  {each.within}: {_verdict(each).lstrip('; ')}" for each in best if each.among == "agent" and each.sure]
    return lines


def _verdict(winner: Winner | None) -> str:
    if winner is None:
        return ""
    least = winner.leads[0]
    lead = "two arms share no question of a metric"
    if least.difference is not None:
        lead = with_interval(least.difference, least.ci_low, least.ci_high)
    statement = HIGHEST_AVERAGE if winner.sure else NO_HIGHEST_AVERAGE
    return f"; {statement.says.format(winner=winner.winner, lead=lead)}"


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
        yield from (Text(line, "bold") for line in folded(title, width, hanging=2))
        yield Text(f"  {caption}", "dim")
        for entry in (entry for entry in known if (entry.agent, entry.condition) == arm):
            line = Text(f"  {padded(names[entry.scorer], name)}  {means[id(entry)]:<{mean}}  ")
            line.append(f"{intervals[id(entry)]:<{within}}  " if within else "").append(f"n={entry.n:<4}", "dim")
            scale = scales[entry.scorer]
            unit = f"{scale.unit}{', less is better' if scale.better == 'lower' else ''}".lstrip(", ")
            band = " ".join(filter(None, (unit, entry.band)))
            for text, style in ((band, ""), (lost_scores([entry]), "yellow")):
                if text and line.cell_len + 1 + cell_len(text) <= width:
                    line.append(f" {text}", style)
            line.rstrip()
            line.truncate(width, overflow="ellipsis")
            yield line
        absent = [names[e.scorer] for e in scored if (e.agent, e.condition) == arm and e.mean is None]
        if absent:
            yield from (Text(line, "dim") for line in folded(f"no score: {', '.join(absent)}", width, indent=2))
