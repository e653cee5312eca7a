"""The plain table of a run: mean ± standard deviation of each metric and arm, and the arms in the order of their means.

It is what k-eval prints and what metrics-assessment.md compares: nothing in it says what may be chance.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from statistics import fmean

import attrs

from keval.records.formats import counted, number
from keval.records.scores import Scale, Scorer
from keval_analysis.findings.formats import aligned
from keval_analysis.findings.summary import ArmScore, Summary
from keval_report.blocks import grouped
from keval_report.words import display_names, with_units

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
    rows = {
        entry.scorer: PlainRow(
            with_units(names[entry.scorer], entry.scale), _cells([scores.get((*arm, *entry.scorer)) for arm in arms])
        )
        for entry in summary.scorers
    }
    categories = grouped(summary.scorers, lambda entry: entry.category)
    by, ranked_by = _ranked_by(summary)
    return PlainTable(
        arms,
        tuple([(name, tuple([rows[entry.scorer] for entry in of])) for name, of in categories.items()]),
        _ranking(summary, arms, by) if len(arms) > 1 else (),
        by,
        ranked_by,
    )


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
