"""The plain table of a run: mean ± standard deviation of each metric and arm, and the arms in the order of their means.

It is what k-eval prints and what metrics-assessment.md compares: nothing in it says what may be chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

import attrs

from keval.records.scores import Scale, Scorer
from keval.records.summary import ArmScore, Summary
from keval.report.blocks import grouped
from keval.report.words import aligned, counted, display_names, number, with_units

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

    `ranked_by` says what the ranks are the mean of. A single arm has no rank.
    """

    arms: tuple[tuple[str, str], ...]
    categories: tuple[tuple[str | None, tuple[PlainRow, ...]], ...]
    ranking: tuple[RankedArm, ...]
    ranked_by: str


def plain_table(summary: Summary) -> PlainTable:
    """Return the plain table of a run."""
    by_condition = grouped(((arm.agent, arm.condition) for arm in summary.trials), lambda arm: arm[1])
    arms = tuple([arm for group in by_condition.values() for arm in group])
    scores = {(entry.agent, entry.condition, *entry.scorer): entry for entry in summary.arms}
    names = display_names(entry.scorer for entry in summary.scorers)
    rows = {
        entry.scorer: PlainRow(
            with_units(names[entry.scorer], entry.scale),
            _cells([scores.get((*arm, *entry.scorer)) for arm in arms]),
        )
        for entry in summary.scorers
    }
    categories = grouped(summary.scorers, lambda entry: entry.category)
    ranking, ranked_by = _ranking(summary, arms)
    return PlainTable(
        arms,
        tuple([(name, tuple([rows[entry.scorer] for entry in of])) for name, of in categories.items()]),
        ranking,
        ranked_by,
    )


def _cells(entries: Sequence[ArmScore | None]) -> tuple[str, ...]:
    """Return the means of a metric, aligned on the decimal point, with their standard deviations."""
    known = [entry for entry in entries if entry is not None and entry.mean is not None]
    means = dict(zip(map(id, known), aligned([number(entry.mean) for entry in known]), strict=True))
    return tuple([_cell(means[id(entry)], entry) if entry and id(entry) in means else "–" for entry in entries])


def _cell(mean: str, entry: ArmScore) -> str:
    return mean if entry.sd is None else f"{mean} ± {number(entry.sd)}"


def _ranking(summary: Summary, arms: Iterable[tuple[str, str]]) -> tuple[tuple[RankedArm, ...], str]:
    """Rank the arms, the best first: by the primary metrics, else by what judges grade, else by all metrics.

    A metric counts if its scale has an end and each arm has a mean of it.
    """
    if summary.averages is None or len(summary.averages.arms) < 2:
        return (), ""
    usable = summary.averages.metrics
    graded = {entry.metric for entry in summary.scorers if entry.judge is not None}
    choices = {"primary metric": summary.primary, "rubric": graded, "metric": usable}
    kinds = ((kind, [name for name in usable if name in among]) for kind, among in choices.items())
    kind, metrics = next((kind, names) for kind, names in kinds if names)
    scales = {entry.scorer: entry.scale for entry in summary.scorers}
    shares: dict[tuple[str, str], list[float]] = {}
    for (agent, condition, _), of in grouped(
        (entry for entry in summary.arms if entry.metric in metrics), lambda e: (e.agent, e.condition, e.metric)
    ).items():
        told = [_share(entry, scales) for entry in of if entry.mean is not None]
        shares.setdefault((agent, condition), []).append(fmean(told))
    ranked = [RankedArm(*arm, fmean(shares[arm])) for arm in arms if arm in shares]
    return tuple(
        sorted(ranked, key=lambda arm: -arm.share)
    ), f"the mean of {counted(len(metrics), kind)} as a share of the scale"


def _share(entry: ArmScore, scales: dict[Scorer, Scale]) -> float:
    scale = scales[entry.scorer]
    share = ((entry.mean or 0.0) - scale.low) / (scale.high - scale.low)
    return 1.0 - share if scale.better == "lower" else share
