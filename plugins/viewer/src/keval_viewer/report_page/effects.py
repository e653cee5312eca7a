"""Effects as a forest plot: the claims of the report, with their intervals drawn and in figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs
from markupsafe import Markup

from keval.plugin import Block, Claim, Effect, Report, display_names, verdict_words
from keval_viewer.report_page.drawing import Axis, axis_around_zero
from keval_viewer.report_page.rendering import render


@attrs.frozen
class _Row:
    """A claim, and over how many rows its metric's name stands; 0 if it stands above already."""

    claim: Claim
    rows: int
    verdict: str


@attrs.frozen
class _Table:
    """The claims of a block whose scales have one range, over an axis that they share."""

    axis: Axis
    rows: Sequence[_Row]


@attrs.frozen
class _Section:
    """A block with its tables. A `closed` one shows its title only, until it is opened."""

    block: Block
    tables: Sequence[_Table]
    label: str
    closed: bool


def effects(report: Report) -> Markup:
    """Render the effects of conditions and agents, on scores and on what an answer costs."""
    summary = report.summary
    found = report.blocks
    several = any(block.about != "condition" for block in found)
    sections = [
        _Section(block, [*_tables(block.claims)], block.about, closed=block.about == "condition" and several)
        for block in found
    ]
    return render(
        "effects.html",
        sections=sections,
        interactions=summary.interactions,
        every=[*summary.effects, *(effect for contrast in summary.contrasts for effect in contrast.effects)],
        names=report.names,
        expenses=report.expenses,
    )


def forest(block: Block, effects: Sequence[Effect]) -> Markup:
    """Render one block by itself, such as that of a comparison, with all figures of its effects.

    A block without a title has none, where the page is titled so already.
    """
    return render(
        "effects.html",
        sections=[_Section(block, [*_tables(block.claims)], block.about, closed=False)],
        interactions=(),
        every=effects,
        names=display_names(dict.fromkeys(effect.scorer for effect in effects)),
        expenses=(),
    )


def _tables(claims: Iterable[Claim]) -> Iterator[_Table]:
    """Yield a table for each range of scales, in the order of the first claim of each."""
    groups: dict[tuple[float, float, str], list[Claim]] = {}
    for claim in claims:
        groups.setdefault((claim.scale.low, claim.scale.high, claim.scale.unit), []).append(claim)
    for group in groups.values():
        ends = ((claim.effect.difference, claim.effect.ci_low, claim.effect.ci_high) for claim in group)
        axis = axis_around_zero(end for each in ends for end in each if end is not None)
        yield _Table(axis, [*_rows(group)])


def _rows(claims: Iterable[Claim]) -> Iterator[_Row]:
    by_name: dict[str, list[Claim]] = {}
    for claim in claims:
        by_name.setdefault(claim.name, []).append(claim)
    for group in by_name.values():
        for position, claim in enumerate(group):
            yield _Row(claim, 0 if position else len(group), verdict_words(claim))
