"""Effects: those of a run, or between two arms, as forest plots, and the scores of two arms sample by sample."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from markupsafe import Markup

from keval import Scale
from keval.records.scores import Scorer
from keval_analysis.comparison import ArmComparison, RunArm
from keval_analysis.findings.effects import Effect
from keval_report.blocks import Block, property_rows
from keval_report.claims import Claim
from keval_report.effects import verdict_words
from keval_report.report import Report
from keval_report.words import display_names, one_line, run_title
from keval_viewer.report_page.rendering import Axis, axis_around_zero, render, rounded

_MOST_ASKED = 160
"""Characters of a question that the table of two arms shows."""
_Row: TypeAlias = tuple[Claim, bool, str]
"""A claim, whether it is the first of its metric, and the verdict in words."""
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
        arms=report.arms,
        every=[*summary.effects, *(effect for contrast in summary.contrasts for effect in contrast.effects)],
        names=report.names,
        expenses=report.expenses,
        properties=[*property_rows(summary)],
    )


def forest(block: Block, effects: Sequence[Effect]) -> Markup:
    """Render one block by itself, such as that of a comparison, with all figures of its effects.

    A block without a title has none, where the page is titled so already.
    """
    return render(
        "effects.html",
        sections=[(block, [*_tables(block.claims)], False)],
        arms=(),
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
            yield claim, not position, verdict_words(claim)


def arm_name(arm: RunArm, among: RunArm) -> str:
    """Return what to call an arm beside another one: as much as tells it apart."""
    is_other = (arm.agent, arm.condition) != (among.agent, among.condition)
    told = [arm.agent if arm.agent != among.agent else "", arm.condition if arm.condition != among.condition else ""]
    name = " ".join(filter(None, told)) if is_other else f"{arm.agent} {arm.condition}"
    if arm.run.path == among.run.path:
        return one_line(name)
    title = run_title(arm.run.manifest, among.run.manifest)
    return f"{one_line(name)} of {title}" if is_other else title


def paired_scores(found: ArmComparison, scorer: Scorer) -> dict[str, Any]:
    """Return what the script of pages draws as lines: each sample's scores in both arms, and their scale."""

    def asked(sample: str) -> str:
        return " ".join(found.arm.run.sample(sample).question.split())[:_MOST_ASKED]

    return {
        "pairs": [
            (each.sample, rounded(each.before), rounded(each.now), asked(each.sample)) for each in found.scores[scorer]
        ],
        "names": [arm_name(found.against, found.arm), arm_name(found.arm, found.against)],
        **scale_data(_scale(found, scorer)),
    }


def scale_data(scale: Scale) -> dict[str, Any]:
    """Return a scale as data of a page's script has it; one without an end has no `high`."""
    return {"low": scale.low, "high": None if math.isinf(scale.high) else scale.high, "lower": scale.better == "lower"}


def _scale(found: ArmComparison, scorer: Scorer) -> Scale:
    return next(entry.scale for entry in found.scorers if entry.scorer == scorer)
