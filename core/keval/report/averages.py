"""The average over all metrics of an arm, and which arm wins by it. It summarises, and decides nothing.

Each metric counts as a share of its scale, 1 being the better end, and a rubric as one metric however many judges grade
by it. A scale without an end has no shares and is left out, and so is a metric that an arm has no mean of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import attrs
from rich.cells import cell_len
from rich.text import Text

from keval.records.effects import Effect
from keval.records.scores import Scale, Scorer
from keval.records.summary import ArmScore, Summary
from keval.report.totals import lost_scores
from keval.report.words import aligned, display_names, folded, number, one_line, padded

_Arm: TypeAlias = tuple[str, str]


@attrs.frozen
class ArmAverage:
    """The average of one arm, from 0 to 1. `error` is how far its 95 % interval reaches to a side, at most.

    It is `None` if an interval is unknown.
    """

    agent: str
    condition: str
    average: float
    error: float | None


@attrs.frozen
class Winner:
    """Which condition of an agent, or which agent under a condition, has the highest average.

    `among` says whether conditions or agents are compared, and `within` is the agent or condition that they share.
    `winner` is `None` if the best one does not exceed the next by more than the error.
    """

    among: Literal["condition", "agent"]
    within: str
    winner: str | None


@attrs.frozen
class Averages:
    """The averages of all arms over the same `metrics`; `left_out` are the other ones, with the reason."""

    metrics: tuple[str, ...]
    left_out: Mapping[str, str]
    arms: tuple[ArmAverage, ...]
    winners: tuple[Winner, ...]


def averages(summary: Summary) -> Averages:
    """Average the metrics of each arm, and compare arms that share their agent or their condition.

    The error of an average is the mean of the errors of its metrics, which is as large as it can be: it is that when
    they rise and fall together. A difference has the error of the paired effects if the summary has them, else that of
    two independent arms.
    """
    cells = {(arm.agent, arm.condition, *arm.scorer): arm for arm in summary.arms}
    arms = [(trials.agent, trials.condition) for trials in summary.trials]
    left_out: dict[str, str] = {}
    scales: dict[Scorer, Scale] = {}
    for entry in summary.scorers:
        if math.isinf(entry.scale.high):
            left_out[entry.metric] = "its scale has no end"
        elif any((found := cells.get((*arm, *entry.scorer))) is None or found.mean is None for arm in arms):
            left_out[entry.metric] = "an arm has no mean of it"
        else:
            scales[entry.scorer] = entry.scale
    scales = {scorer: scale for scorer, scale in scales.items() if scorer[0] not in left_out}
    metrics = tuple(dict.fromkeys(metric for metric, _ in scales))
    reached = {arm: _average([cells[(*arm, *scorer)] for scorer in scales], scales) for arm in arms if scales}
    effects = {(*_ends(effect), *effect.scorer): effect for effect in summary.effects if effect.kind != "run"}
    return Averages(
        metrics=metrics,
        left_out=left_out,
        arms=tuple(ArmAverage(*arm, average, error) for arm, (average, error) in reached.items()),
        winners=tuple(_winners(reached, effects, scales)),
    )


def average_lines(summary: Summary) -> list[str]:
    """Return the averages in words, an agent a line; nothing for a single arm, or a single metric."""
    # Conditions that lack one tool are ranked among themselves.
    kept = tuple(arm for arm in summary.trials if arm.condition not in summary.ablated)
    found = averages(attrs.evolve(summary, trials=kept))
    if len(found.arms) < 2 or len(found.metrics) < 2:
        return []
    count, every = len(found.metrics), len(found.metrics) + len(found.left_out)
    of = f" of {every}" if found.left_out else ""
    lines = [f"Average over {count}{of} metrics as shares of their scales, no more than a summary:"]
    winners = {(each.among, each.within): each for each in found.winners}
    for agent in dict.fromkeys(arm.agent for arm in found.arms):
        told = ", ".join(f"{arm.condition} {arm.average:.2f}" for arm in found.arms if arm.agent == agent)
        lines.append(f"  {agent}: {told}{_verdict(winners.get(('condition', agent)))}")
    best = (each for each in found.winners if each.among == "agent" and each.winner)
    lines += [f"  {each.within}: {each.winner} is the best agent" for each in best]
    return lines


def _verdict(winner: Winner | None) -> str:
    if winner is None:
        return ""
    return f"; {winner.winner} wins" if winner.winner else "; no winner: the difference is within the error"


def _ends(effect: Effect) -> tuple[_Arm, _Arm]:
    return (effect.agent, effect.condition), (effect.against.agent, effect.against.condition)


def _average(cells: Sequence[ArmScore], scales: Mapping[Scorer, Scale]) -> tuple[float, float | None]:
    """Return the average over one arm's metrics, and its error."""
    shares = {cell.scorer: _share(cell.mean or 0.0, scales[cell.scorer]) for cell in cells}
    errors = {cell.scorer: _scaled(_reach(cell), scales[cell.scorer]) for cell in cells}
    return _over_metrics(shares), _error(errors)


def _winners(
    found: Mapping[_Arm, tuple[float, float | None]],
    effects: Mapping[tuple[_Arm, _Arm, str, str | None], Effect],
    scales: Mapping[Scorer, Scale],
) -> Iterator[Winner]:
    kinds: list[tuple[Literal["condition", "agent"], int]] = [("condition", 0), ("agent", 1)]
    for among, shared in kinds:
        for within in dict.fromkeys(arm[shared] for arm in found):
            rivals = sorted((arm for arm in found if arm[shared] == within), key=lambda arm: -found[arm][0])
            if len(rivals) < 2:
                continue
            best, *others = rivals
            errors = [_error_between(best, rival, found, effects, scales) for rival in others]
            leads = [found[best][0] - found[rival][0] for rival in others]
            sure = all(error is not None and lead > error for lead, error in zip(leads, errors, strict=True))
            yield Winner(among, within, best[1 - shared] if sure else None)


def _error_between(
    one: _Arm,
    other: _Arm,
    found: Mapping[_Arm, tuple[float, float | None]],
    effects: Mapping[tuple[_Arm, _Arm, str, str | None], Effect],
    scales: Mapping[Scorer, Scale],
) -> float | None:
    """Return the error of the difference of two averages."""
    errors: dict[Scorer, float | None] = {}
    for scorer, scale in scales.items():
        paired = effects.get((one, other, *scorer)) or effects.get((other, one, *scorer))
        if paired is None:
            independent = [found[arm][1] for arm in (one, other)]
            known = [error for error in independent if error is not None]
            return math.hypot(*known) if len(known) == len(independent) else None
        # Where no question differs, a metric decides nothing, however few there are.
        flat = paired.difference == 0 and paired.stderr == 0
        errors[scorer] = 0.0 if flat else _scaled(_reach(paired), scale)
    return _error(errors)


def _reach(found: ArmScore | Effect) -> float | None:
    """Return how far the 95 % interval reaches to its longer side."""
    middle = found.mean if isinstance(found, ArmScore) else found.difference
    if middle is None or found.ci_low is None or found.ci_high is None:
        return None
    return max(middle - found.ci_low, found.ci_high - middle)


def _share(value: float, scale: Scale) -> float:
    share = (value - scale.low) / (scale.high - scale.low)
    return 1 - share if scale.better == "lower" else share


def _scaled(error: float | None, scale: Scale) -> float | None:
    return None if error is None else error / (scale.high - scale.low)


def _error(errors: Mapping[Scorer, float | None]) -> float | None:
    known = {scorer: error for scorer, error in errors.items() if error is not None}
    return _over_metrics(known) if len(known) == len(errors) else None


def _over_metrics(values: Mapping[Scorer, float]) -> float:
    """Return the mean over metrics, each the mean over its judges."""
    by_metric: dict[str, list[float]] = {}
    for (metric, _), value in values.items():
        by_metric.setdefault(metric, []).append(value)
    return _mean(_mean(judged) for judged in by_metric.values())


def _mean(values: Iterable[float]) -> float:
    kept = list(values)
    return math.fsum(kept) / len(kept)


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
