"""Effects as a forest plot: a row per metric and agent, with the interval drawn and in figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs
from markupsafe import Markup

from keval.effects import Effect
from keval.report.figures import better_share, is_flat, verdict_words
from keval.report.page.drawing import Axis, axis_around_zero
from keval.report.page.rendering import render
from keval.report.page.report import Report
from keval.scores import Scale, Scorer

__all__ = ["Claims", "claims_of", "effects"]

_Range: TypeAlias = tuple[float, float, str]
_RESOURCES = {"seconds": "s", "tokens": "", "usd": "$", "tool_calls": ""}


@attrs.frozen
class _Row:
    """An effect with its place in its metric's group and, if it has a difference, where it is drawn."""

    effect: Effect
    name: str
    rows: int
    verdict: str
    axis: Axis


@attrs.frozen
class Claims:
    """The effects of one condition or agent: those worth a row, by range of their scales, and the names of the others.

    `flat` are metrics that do not differ at all, `missing` those that could not be compared.
    """

    title: str
    between_agents: bool
    shown: Mapping[_Range, Sequence[Sequence[Effect]]]
    flat: Sequence[str]
    missing: Sequence[str]


def claims_of(report: Report) -> list[Claims]:
    """Return the effects by what is compared. Large and sure ones come first, then what is open, then no difference."""
    groups: dict[str, list[Effect]] = {}
    for effect in report.summary.effects:
        groups.setdefault(_title(effect), []).append(effect)
    return [_claims(title, group, report.names, report.scales) for title, group in groups.items()]


def effects(report: Report) -> Markup:
    """Render the effects of conditions and agents, on scores and on what an answer costs."""
    sections = []
    folded = any(effect.kind == "condition" for effect in report.summary.effects)
    for claims in claims_of(report):
        tables = [
            (span, axis, [*_rows(metrics, axis, report.names)])
            for span, metrics in claims.shown.items()
            for axis in [_axis(effect for metric in metrics for effect in metric)]
        ]
        sections.append((claims, tables))
    return render(
        "effects.html",
        sections=sections,
        folded=folded,
        summary=report.summary,
        names=report.names,
        expenses=[*_expenses(report.summary.expenses)],
        verdict_words=verdict_words,
    )


def _title(effect: Effect) -> str:
    if effect.kind == "condition":
        return f"{effect.condition} against {effect.against.condition}"
    if effect.kind == "agent":
        return f"{effect.agent} against {effect.against.agent}, {effect.condition}"
    return f"against run {effect.against.run}"


def _claims(title: str, group: Iterable[Effect], names: Mapping[Scorer, str], scales: Mapping[Scorer, Scale]) -> Claims:
    metrics: dict[Scorer, list[Effect]] = {}
    for effect in group:
        metrics.setdefault(effect.scorer, []).append(effect)
    known = {
        scorer: [e for e in found if e.difference is not None]
        for scorer, found in metrics.items()
        if any(e.difference is not None for e in found)
    }
    ranked = sorted(
        (scorer for scorer, found in known.items() if not all(map(is_flat, found))),
        key=lambda scorer: _rank(known[scorer], scales[scorer]),
    )
    shown: dict[_Range, list[list[Effect]]] = {}
    for scorer in ranked:
        scale = scales[scorer]
        shown.setdefault((scale.low, scale.high, scale.unit), []).append(known[scorer])
    return Claims(
        title=title,
        between_agents=next(iter(metrics.values()))[0].kind == "agent",
        shown=shown,
        flat=[names[scorer] for scorer, found in known.items() if all(map(is_flat, found))],
        missing=[names[scorer] for scorer in metrics if scorer not in known],
    )


def _rank(effects: Sequence[Effect], scale: Scale) -> tuple[int, float]:
    """Order metrics: sure ones, then open ones, then those without a difference; larger ones first."""
    order = {"worse": 0, "better": 0, "unclear": 1, "unknown": 1, "same": 2}
    largest = max(abs(better_share(e.difference or 0.0, scale) or 0.0) for e in effects)
    return min(order[e.verdict] for e in effects), -largest


def _axis(effects: Iterable[Effect]) -> Axis:
    ends = ([e.difference, e.ci_low, e.ci_high] for e in effects)
    return axis_around_zero(end for each in ends for end in each if end is not None)


def _rows(metrics: Iterable[Sequence[Effect]], axis: Axis, names: Mapping[Scorer, str]) -> Iterator[_Row]:
    for metric in metrics:
        for position, effect in enumerate(metric):
            rows = len(metric) if position == 0 else 0
            yield _Row(effect, names[effect.scorer], rows, verdict_words(effect), axis)


def _expenses(effects: Iterable[Effect]) -> Iterator[tuple[str, Effect]]:
    """Yield effects on what an answer costs with the name of the resource; those that are 0 throughout say nothing."""
    for effect in effects:
        if effect.difference is not None and not is_flat(effect):
            unit = _RESOURCES.get(effect.metric, "")
            name = effect.metric.replace("_", " ")
            yield f"{name} ({unit})" if unit else name, effect
