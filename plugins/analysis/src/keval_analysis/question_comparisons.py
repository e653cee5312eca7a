"""Comparisons question by question: how much each score of an arm differs from that of another arm."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from operator import attrgetter

import attrs

from keval.records.manifest import Manifest
from keval.records.scores import SMALL_SHARE, Scale, Scorer
from keval_analysis.findings.effects import better_share
from keval_analysis.outline import ArmKey, Outline
from keval_analysis.stats.contrasts import ablated, made_conditions, revisions
from keval_analysis.stats.pairs import agent_pairs

_STEPS = (0.025, 0.15, 0.35, 0.65)
"""Shares of a scale from which a difference has the next darker colour."""


@attrs.frozen
class Tile:
    """One metric of one question: the difference (or the mean, if nothing is compared), and its share of the scale.

    `share` is positive for the better; for a scale without an end it is relative to the largest difference. `telling`
    says that it tells one question from another: its scale has an end, and it is no trait of an agent, which differs
    alike for all questions.
    """

    scorer: Scorer
    value: float
    share: float
    telling: bool

    @property
    def level(self) -> str:
        """The name of its colour: `b1` to `b4` for better, `w1` to `w4` for worse, `z` for no difference."""
        step = bisect_right(_STEPS, abs(self.share))
        return f"{'b' if self.share > 0 else 'w'}{step}" if step else "z"


@attrs.frozen(slots=False)
class QuestionComparison:
    """An arm and the arm that it is measured against; without `against`, the arm alone.

    `tiles` has for each question, by its index, the metrics that both arms have a score of. An `ablation` holds an arm
    that lacks one tool against the arm that has it.
    """

    arm: ArmKey
    against: ArmKey | None
    label: str
    tiles: Mapping[int, Sequence[Tile]]
    ablation: bool = False

    def worst(self, question: int) -> Tile | None:
        """Return the metric that fell most for this question; `None` if none tells anything."""
        return self._ends.get(question, (None, None))[0]

    def best(self, question: int) -> Tile | None:
        """Return the metric that gained most for this question; `None` if none tells anything."""
        return self._ends.get(question, (None, None))[1]

    @cached_property
    def _ends(self) -> Mapping[int, tuple[Tile, Tile]]:
        """The worst and the best tile of each question that has any which tells something."""
        share = attrgetter("share")
        telling = ((question, [tile for tile in tiles if tile.telling]) for question, tiles in self.tiles.items())
        return {question: (min(tiles, key=share), max(tiles, key=share)) for question, tiles in telling if tiles}

    def got_worse(self, question: int) -> bool:
        """Whether a metric of this question fell by a twentieth of its scale or more."""
        worst = self.worst(question)
        return self.against is not None and worst is not None and worst.share <= -SMALL_SHARE + 1e-9

    def got_better(self, question: int) -> bool:
        """Whether a metric of this question gained a twentieth of its scale or more."""
        best = self.best(question)
        return self.against is not None and best is not None and best.share >= SMALL_SHARE - 1e-9


def compare(manifest: Manifest, outline: Outline, scales: Mapping[Scorer, Scale]) -> tuple[QuestionComparison, ...]:
    """Return the comparisons of a run: conditions with the baseline, agents as `agent_pairs` has them, then ablations.

    A run with a single arm has that arm alone, with its means in place of differences.
    """
    found = [_pair(*each, outline, scales) for each in _pairs(manifest)]
    for of, tools in ablated(manifest).items():
        for label, agent in product(tools.values(), manifest.agents):
            lacking = _pair((agent, label), (agent, of), f"{agent}: {label} against {of}", outline, scales)
            found.append(attrs.evolve(lacking, ablation=True))
    return (*found,) or (_alone((next(iter(manifest.agents)), next(iter(manifest.conditions))), outline, scales),)


def _pairs(manifest: Manifest) -> Iterator[tuple[ArmKey, ArmKey, str]]:
    made = made_conditions(manifest)
    agents, conditions = [*manifest.agents], [label for label in manifest.conditions if label not in made]
    for agent, condition in product(agents, conditions):
        if condition != manifest.baseline:
            told = f"{agent}: {condition} against {manifest.baseline}"
            yield (agent, condition), (agent, manifest.baseline), told
    for agent, (condition, base) in product(agents, revisions(manifest).items()):
        if {condition, base} <= manifest.conditions.keys():
            yield (agent, condition), (agent, base), f"{agent}: {condition} against {base}"
    for condition, (agent, other) in product(conditions, agent_pairs(agents)):
        yield (agent, condition), (other, condition), f"{condition}: {agent} against {other}"


def _pair(
    arm: ArmKey, against: ArmKey, label: str, outline: Outline, scales: Mapping[Scorer, Scale]
) -> QuestionComparison:
    ours, theirs = outline.values.get(arm, {}), outline.values.get(against, {})
    differences = {
        scorer: {n: value - theirs[scorer][n] for n, value in ours[scorer].items() if n in theirs[scorer]}
        for scorer in scales
        if scorer in ours and scorer in theirs
    }
    tiles: dict[int, list[Tile]] = {}
    for scorer, by_question in differences.items():
        scale = scales[scorer]
        spread = max(by_question.values(), default=0.0) - min(by_question.values(), default=0.0)
        # What differs between agents by the same on every question is a trait of theirs.
        trait = arm[0] != against[0] and len(by_question) > 1 and spread < 1e-9
        largest = max(map(abs, by_question.values()), default=0.0) or 1.0
        for number, difference in by_question.items():
            share, telling = better_share(difference, scale), not trait
            if share is None:
                share, telling = difference / largest * (-1 if scale.better == "lower" else 1), False
            tiles.setdefault(number, []).append(Tile(scorer, difference, share, telling))
    return QuestionComparison(arm, against, label, tiles)


def _alone(arm: ArmKey, outline: Outline, scales: Mapping[Scorer, Scale]) -> QuestionComparison:
    """Return the means of an arm, coloured by how far they are from the middle of their scale."""
    tiles: dict[int, list[Tile]] = {}
    for scorer, means in outline.values.get(arm, {}).items():
        scale = scales[scorer]
        if math.isinf(scale.high):
            continue
        middle = (scale.low + scale.high) / 2
        for number, mean in means.items():
            # From the middle, it is half a scale to either end.
            share = 2 * (better_share(mean - middle, scale) or 0.0)
            tiles.setdefault(number, []).append(Tile(scorer, mean, share, telling=True))
    return QuestionComparison(arm, None, f"{arm[0]}: {arm[1]}", tiles)
