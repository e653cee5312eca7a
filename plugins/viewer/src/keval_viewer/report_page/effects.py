"""Effects: those of a run, or between two arms, as forest plots, and the scores of two arms sample by sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import attrs
from markupsafe import Markup

from keval import Scale
from keval.records.formats import number, signed
from keval.records.scores import Scorer
from keval_analysis.comparison import ArmComparison, RunArm, SampleScores
from keval_analysis.findings.effects import Effect
from keval_report.blocks import Block
from keval_report.claims import Claim
from keval_report.effects import verdict_words
from keval_report.report import Report
from keval_report.words import display_names, one_line
from keval_viewer.report_page.rendering import Axis, axis_around_zero, axis_of, render

_SIDE = 330.0
"""The side of the scatter, in pixels."""
_RADIUS = 4.5
_MOST_LINKS = 1_000
"""Samples up to which each has a dot of its own, which is a link; more are counted by cell."""
_CELLS = 30


_Row: TypeAlias = tuple[Claim, int, str]
"""A claim, over how many rows its metric's name stands (0 if it stands above already), and the verdict in words."""
_Table: TypeAlias = tuple[Axis, Sequence[_Row]]
"""The claims of a block whose scales have one range, over an axis that they share."""


def effects(report: Report) -> Markup:
    """Render the effects of conditions and agents, on scores and on what an answer costs."""
    summary = report.summary
    found = report.blocks
    several = any(block.about != "condition" for block in found)
    sections = [(block, [*_tables(block.claims)], block.about == "condition" and several) for block in found]
    return render(
        "effects.html",
        sections=sections,
        interactions=summary.interactions,
        every=[*summary.effects, *(effect for contrast in summary.contrasts for effect in contrast.effects)],
        names=report.names,
        expenses=report.expenses,
        properties=report.properties,
    )


def forest(block: Block, effects: Sequence[Effect]) -> Markup:
    """Render one block by itself, such as that of a comparison, with all figures of its effects.

    A block without a title has none, where the page is titled so already.
    """
    return render(
        "effects.html",
        sections=[(block, [*_tables(block.claims)], False)],
        interactions=(),
        every=effects,
        names=display_names(dict.fromkeys(effect.scorer for effect in effects)),
        expenses=(),
        properties=(),
    )


def _tables(claims: Iterable[Claim]) -> Iterator[_Table]:
    """Yield a table for each range of scales, in the order of the first claim of each."""
    groups: dict[tuple[float, float, str], list[Claim]] = {}
    for claim in claims:
        groups.setdefault((claim.scale.low, claim.scale.high, claim.scale.unit), []).append(claim)
    for group in groups.values():
        ends = ((claim.effect.difference, claim.effect.ci_low, claim.effect.ci_high) for claim in group)
        axis = axis_around_zero(end for each in ends for end in each if end is not None)
        yield axis, [*_rows(group)]


def _rows(claims: Iterable[Claim]) -> Iterator[_Row]:
    by_name: dict[str, list[Claim]] = {}
    for claim in claims:
        by_name.setdefault(claim.name, []).append(claim)
    for group in by_name.values():
        for position, claim in enumerate(group):
            yield claim, 0 if position else len(group), verdict_words(claim)


@attrs.frozen
class _Dot:
    """A sample, or several whose scores are alike: where it is drawn, how large, and what it is."""

    x: float
    y: float
    radius: float
    told: str
    url: str | None
    verdict: str


@attrs.frozen
class Ranked:
    """The samples that changed by one scorer, worst first and best first, and how many did not change."""

    worse: Sequence[SampleScores]
    better: Sequence[SampleScores]
    same: int


def arm_name(arm: RunArm, among: RunArm) -> str:
    """Return what to call an arm beside another one: as much as tells it apart."""
    is_other = (arm.agent, arm.condition) != (among.agent, among.condition)
    told = [arm.agent if arm.agent != among.agent else "", arm.condition if arm.condition != among.condition else ""]
    name = " ".join(filter(None, told)) if is_other else f"{arm.agent} {arm.condition}"
    return one_line(name if arm.run.path == among.run.path else f"{name} of {arm.run.id}")


def ranked_scores(found: ArmComparison, scorer: Scorer) -> Ranked:
    """Return the samples by how much their score changed."""
    scores, scale = found.scores[scorer], _scale(found, scorer)
    by_gain = [(each, each.difference if scale.better == "higher" else -each.difference) for each in scores]
    worse = sorted((pair for pair in by_gain if pair[1] < 0), key=lambda pair: pair[1])
    better = sorted((pair for pair in by_gain if pair[1] > 0), key=lambda pair: -pair[1])
    same = len(by_gain) - len(worse) - len(better)
    return Ranked([each for each, _ in worse], [each for each, _ in better], same)


def scatter(found: ArmComparison, scorer: Scorer, link: Callable[[str], str | None]) -> Markup:
    """Draw each sample's score in both arms; `link` returns where a sample's dot leads to, by the sample's id.

    A dot above the diagonal scored higher in the arm than in the one that it is held against. Dots that would hide each
    other are moved apart by up to their radius.
    """
    scores, scale = found.scores[scorer], _scale(found, scorer)
    axis = attrs.evolve(axis_of(scale, (value for each in scores for value in (each.now, each.before))), width=_SIDE)
    dots = _linked(scores, axis, scale, link) if len(scores) <= _MOST_LINKS else _counted(scores, axis, scale)
    return render(
        "scatter.html",
        axis=axis,
        side=_SIDE,
        dots=[*dots],
        arm=arm_name(found.arm, found.against),
        against=arm_name(found.against, found.arm),
        linked=len(scores) <= _MOST_LINKS,
    )


def _scale(found: ArmComparison, scorer: Scorer) -> Scale:
    return next(entry.scale for entry in found.scorers if entry.scorer == scorer)


def _verdict(difference: float, scale: Scale) -> str:
    if not difference:
        return "same"
    return "better" if (difference > 0) == (scale.better == "higher") else "worse"


def _linked(
    scores: Sequence[SampleScores], axis: Axis, scale: Scale, link: Callable[[str], str | None]
) -> Iterator[_Dot]:
    seen: dict[tuple[float, float], int] = {}
    for each in scores:
        x, y = axis.x(each.before), _SIDE - axis.x(each.now)
        rank = seen[x, y] = seen.get((x, y), -1) + 1
        # A sunflower: the next dot at a golden angle, a little further out.
        angle, away = rank * math.pi * (3 - math.sqrt(5)), 2.2 * _RADIUS * math.sqrt(rank / 2)
        told = f"{each.sample}: {number(each.before)} → {number(each.now)} ({signed(each.difference)})"
        yield _Dot(
            round(x + away * math.cos(angle), 1),
            round(y + away * math.sin(angle), 1),
            _RADIUS,
            told,
            link(each.sample),
            _verdict(each.difference, scale),
        )


def _counted(scores: Sequence[SampleScores], axis: Axis, scale: Scale) -> Iterator[_Dot]:
    pitch = _SIDE / _CELLS
    cells: dict[tuple[int, int], list[SampleScores]] = {}
    for each in scores:
        at = (round(axis.x(each.before) / pitch), round((_SIDE - axis.x(each.now)) / pitch))
        cells.setdefault(at, []).append(each)
    most = max(map(len, cells.values()), default=1)
    for (column, row), group in cells.items():
        mean = sum(each.difference for each in group) / len(group)
        radius = max(1.5, round(pitch / 2 * math.sqrt(len(group) / most), 1))
        told = f"{len(group):,} questions, {signed(mean)} on average"
        yield _Dot(column * pitch, row * pitch, radius, told, None, _verdict(mean, scale))
