"""The arms of a run: how the scores of each are spread, what became of its trials, and how they used tools."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import attrs
from markupsafe import Markup

from keval import Scale
from keval.plugin import ArmScore, Report
from keval_viewer.report_page.drawing import Axis, Histogram, axis_of, histogram
from keval_viewer.report_page.rendering import render


@attrs.frozen
class _Spread:
    """How the scores of one arm are spread; without a histogram, no question has a score that counts."""

    arm: ArmScore
    drawn: Histogram | None
    lost: str


@attrs.frozen
class _Metric:
    name: str
    scale: Scale
    axis: Axis
    spreads: Sequence[_Spread]


def distributions(report: Report) -> Markup:
    """Render for each metric the histogram of each arm, over questions."""
    metrics = [*_metrics(report)]
    return render(
        "distributions.html",
        metrics=[metric for metric in metrics if any(spread.drawn for spread in metric.spreads)],
        empty=[metric.name for metric in metrics if not any(spread.drawn for spread in metric.spreads)],
        variance=report.summary.variance,
        names=report.names,
        agreement=report.judging,
        infinite=math.isinf,
        worth=report.worth,
        pareto=report.pareto,
    )


def trials(report: Report) -> Markup:
    """Render what became of each arm's trials: failures, tokens, time and cost."""
    return render("trials.html", summary=report.summary)


def tools(report: Report) -> Markup:
    """Render how the trials of each condition used each tool; nothing for a run without tools."""
    return render("tools.html", conditions=report.tools, heads=report.tool_heads, cells=report.tool_cells)


def _metrics(report: Report) -> Iterator[_Metric]:
    by_scorer: dict[tuple[str, str | None], list[ArmScore]] = {}
    for arm in report.summary.arms:
        by_scorer.setdefault(arm.scorer, []).append(arm)
    for scorer, arms in by_scorer.items():
        values: Mapping[tuple[str, str], Sequence[float]] = {
            key: [*by.get(scorer, {}).values()] for key, by in report.outline.values.items()
        }
        axis = axis_of(report.scales[scorer], (value for found in values.values() for value in found))
        spreads = []
        for arm in arms:
            found = values.get((arm.agent, arm.condition), ())
            spreads.append(_Spread(arm, histogram(found, axis) if found else None, ", ".join(_lost(arm))))
        yield _Metric(report.names[scorer], report.scales[scorer], axis, spreads)


def _lost(arm: ArmScore) -> Iterator[str]:
    """Yield what is not among the scores of an arm."""
    if arm.neutral:
        yield f"{arm.neutral} neutral"
    if arm.unscored:
        kinds = ", ".join(f"{count} × {kind}" for kind, count in arm.failures.items())
        yield f"{arm.unscored} unscored" + (f" ({kinds})" if kinds else "")
    if arm.missing:
        yield f"{arm.missing} missing"
