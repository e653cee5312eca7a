"""The means of a run: of each metric and arm, over all metrics with the arm that is highest, and as the plain table."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from statistics import fmean
from typing import Literal

import attrs
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from keval.cli.console import safe
from keval.records.formats import counted, interval, number
from keval.records.scores import Scale, Scorer
from keval_analysis.findings.effects import Arm, ArmAverage, AverageDifference, Averages
from keval_analysis.findings.formats import aligned
from keval_analysis.findings.summary import ArmScore, Summary
from keval_report.blocks import grouped
from keval_report.claims import EXPLORATORY
from keval_report.run_claims import HIGHEST_AVERAGE, NO_HIGHEST_AVERAGE
from keval_report.terminal.console import print_sections
from keval_report.totals import lost_scores
from keval_report.words import display_names, fitted, folded, one_line, padded, with_interval, with_units


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
                # An unknown lead comes first: without it nobody knows whether the arm is highest.
                leads.sort(key=lambda lead: -math.inf if lead.difference is None else lead.difference)
                yield Winner(among, within, getattr(best, among), tuple(leads))


def _lead(found: Averages, best: ArmAverage, rival: ArmAverage) -> AverageDifference:
    one, other = (best.agent, best.condition), (rival.agent, rival.condition)
    for each in found.differences:
        ends = ((each.agent, each.condition), (each.against.agent, each.against.condition))
        if ends == (one, other):
            return each
        if ends == (other, one):
            # Summaries have each difference once, in one direction.
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


CAPTION = "mean ± standard deviation over answers"
NO_FINDING = "A rank does not say what may be chance."


@attrs.frozen
class PlainRow:
    """A metric, with its mean and standard deviation in each arm as texts; `–` where an arm has no mean."""

    metric: str
    cells: tuple[str, ...]


@attrs.frozen
class RankedArm:
    """An arm, and its mean over metrics as shares of their scales: 1 is the better end of each."""

    agent: str
    condition: str
    share: float


@attrs.frozen
class PlainTable:
    """Rows by category, a column for each of `arms` (agent, condition), agents side by side; and the arms ranked.

    The ranks are by the mean of the metrics `by`, and `ranked_by` says so. A single arm has no rank.
    """

    arms: tuple[tuple[str, str], ...]
    categories: tuple[tuple[str | None, tuple[PlainRow, ...]], ...]
    ranking: tuple[RankedArm, ...]
    by: tuple[str, ...]
    ranked_by: str


def plain_table(summary: Summary) -> PlainTable:
    """Return the plain table of a run."""
    by_condition = grouped(((arm.agent, arm.condition) for arm in summary.trials), lambda arm: arm[1])
    arms = tuple([arm for group in by_condition.values() for arm in group])
    scores = {(entry.agent, entry.condition, *entry.scorer): entry for entry in summary.arms}
    names = display_names(entry.scorer for entry in summary.scorers)
    rows = {}
    for entry in summary.scorers:
        cells = _cells([scores.get((*arm, *entry.scorer)) for arm in arms])
        rows[entry.scorer] = PlainRow(with_units(names[entry.scorer], entry.scale), cells)
    by_category = grouped(summary.scorers, lambda entry: entry.category)
    categories = tuple([(name, tuple([rows[entry.scorer] for entry in of])) for name, of in by_category.items()])
    by, ranked_by = _ranked_by(summary)
    return PlainTable(arms, categories, _ranking(summary, arms, by) if len(arms) > 1 else (), by, ranked_by)


def _cells(entries: Sequence[ArmScore | None]) -> tuple[str, ...]:
    """Return the means of a metric, aligned on the decimal point, with their standard deviations."""
    known = [entry for entry in entries if entry is not None and entry.mean is not None]
    means = dict(zip(map(id, known), aligned([number(entry.mean) for entry in known]), strict=True))
    told = {id(each): means[id(each)] + ("" if each.sd is None else f" ± {number(each.sd)}") for each in known}
    return tuple([told.get(id(entry), "–") for entry in entries])


def _ranked_by(summary: Summary) -> tuple[tuple[str, ...], str]:
    """Return the metrics that arms are ranked by, and what they are: primary ones, else what judges grade, else all.

    A metric counts if its scale has an end and each arm has a mean of it.
    """
    usable = summary.averages.metrics if summary.averages else ()
    graded = {entry.metric for entry in summary.scorers if entry.judge is not None}
    for kind, among in (("primary metric", summary.primary), ("rubric", graded), ("metric", usable)):
        if found := tuple([name for name in usable if name in among]):
            return found, f"the mean of {counted(len(found), kind)} as a share of the scale"
    return (), ""


def _ranking(summary: Summary, arms: Iterable[tuple[str, str]], metrics: Collection[str]) -> tuple[RankedArm, ...]:
    """Rank the arms by their means over metrics, the best first; a rubric counts once, however many judges grade it."""
    scales = {entry.scorer: entry.scale for entry in summary.scorers}
    known = [entry for entry in summary.arms if entry.metric in metrics and entry.mean is not None]
    shares: dict[tuple[str, str], list[float]] = {}
    for (agent, condition, _), of in grouped(known, lambda e: (e.agent, e.condition, e.metric)).items():
        shares.setdefault((agent, condition), []).append(fmean([_share(entry, scales) for entry in of]))
    ranked = [RankedArm(*arm, fmean(shares[arm])) for arm in arms if arm in shares]
    return tuple(sorted(ranked, key=lambda arm: -arm.share))


def _share(entry: ArmScore, scales: dict[Scorer, Scale]) -> float:
    scale = scales[entry.scorer]
    share = ((entry.mean or 0.0) - scale.low) / (scale.high - scale.low)
    return 1.0 - share if scale.better == "lower" else share


_GAP = 3
_NARROWEST = 12


def print_plain_table(summary: Summary, console: Console) -> None:
    """Print the plain table of a run, in as many parts as the console's width needs."""
    table, width = plain_table(summary), console.width
    if summary.simulated:
        console.print(safe(f"simulated model: {', '.join(summary.simulated)}; the figures test keval, not a model"))
    names = max((cell_len(row.metric) for _, rows in table.categories for row in rows), default=0)
    first = min(names + 2, width // 2)
    columns = [_column(table, place) for place in range(len(table.arms))]
    for part in column_parts([max(map(cell_len, column)) for column in columns], width - first):
        print_sections([_plain_lines(table, [columns[place] for place in part], part, first)], console)
        console.print()
    print_sections([fitted(_notes(table, summary, width), width)], console)


def _column(table: PlainTable, number: int) -> list[str]:
    """Return the texts of a column: its condition, its agent and its cells."""
    agent, condition = table.arms[number]
    return [one_line(condition), one_line(agent), *(row.cells[number] for _, rows in table.categories for row in rows)]


def column_parts(widths: Sequence[int], width: int, gap: int = _GAP) -> Iterator[list[int]]:
    """Yield the numbers of the columns that fit side by side, with a gap between."""
    part: list[int] = []
    used = 0
    for place, cells in enumerate(widths):
        needed = max(cells, _NARROWEST) + gap
        if part and used + needed > width:
            yield part
            part, used = [], 0
        part.append(place)
        used += needed
    if part:
        yield part


def _plain_lines(
    table: PlainTable, columns: Sequence[Sequence[str]], part: Sequence[int], first: int
) -> Iterator[Text]:
    widths = [max(_NARROWEST, *map(cell_len, column)) for column in columns]

    def row(head: str, cells: Sequence[str]) -> str:
        told = (f"{' ' * _GAP}{padded(cell, width)}" for cell, width in zip(cells, widths, strict=True))
        return (padded(head, first) + "".join(told)).rstrip()

    conditions = [column[0] for column in columns]
    shown = [name if name != before else "" for before, name in zip([None, *conditions], conditions, strict=False)]
    yield Text(row("", shown), "dim")
    yield Text(row("", [column[1] for column in columns]), "bold")
    for category, rows in table.categories:
        if category is not None:
            yield safe(category, "bold")
        for each in rows:
            yield Text(row(f"  {each.metric}" if category else each.metric, [each.cells[number] for number in part]))


def _notes(table: PlainTable, summary: Summary, width: int) -> Iterator[Text]:
    used = "included" if summary.neutral == "count" else "left out"
    yield from (Text(line, "dim") for line in folded(f"{CAPTION}; neutral scores are {used}.", width, hanging=0))
    if not table.ranking:
        return
    yield Text()
    yield Text(f"rank by {table.ranked_by}", "bold")
    for place, arm in enumerate(table.ranking, 1):
        yield safe(f"  {place}  {number(arm.share)}  {one_line(arm.agent)}, {one_line(arm.condition)}")
    yield from (Text(line, "dim") for line in folded(f"{NO_FINDING} `keval report` does.", width, hanging=0))
