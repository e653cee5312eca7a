"""What people's labels say of a judge arm by arm, and the effects that they correct."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import attrs
import numpy as np

from keval.records.manifest import Manifest, ScorerEntry
from keval_analysis.findings.effects import Arm
from keval_analysis.findings.reviews import ArmBias, CorrectedEffect, Rate
from keval_analysis.stats.corrected import MAY_END, Judged, Labelled, bias_difference, corrected, refusal
from keval_analysis.stats.effects import paired_values
from keval_analysis.stats.findings import Findings, compared_arms
from keval_analysis.stats.intervals import Values, mean_intervals
from keval_analysis.stats.paired import Differences, paired_effects

ArmName: TypeAlias = tuple[str, str]
"""The labels of an agent and a condition."""

NOT_RANDOM = "not drawn at random"
NOT_BLIND = "not blind"
OUTDATED = "drawn before the judge was changed"
"""Why a label counts for no corrected effect. A judge may be changed until it agrees with the labels that are known."""


@attrs.frozen
class Label:
    """An answer that people and a judge graded, with the mean level by each; `question` is what is independent."""

    sample: str
    question: str
    people: float
    judge: float


@attrs.define
class JudgeLabels:
    """The labels of one judge and rubric, by arm: those that count, and how many do not, by the reason."""

    entry: ScorerEntry
    counted: dict[ArmName, list[Label]] = attrs.field(factory=lambda: defaultdict(list))
    left_out: dict[ArmName, Counter[str]] = attrs.field(factory=lambda: defaultdict(Counter))

    def arms(self, manifest: Manifest) -> Iterator[ArmBias]:
        """Yield the judge's bias in each arm that has labels which count."""
        rubric = manifest.rubrics[self.entry.rubric or ""]
        two = sorted(rubric.levels) if rubric.kind == "levels" and len(rubric.levels) == 2 else None
        scale = self.entry.scale
        for agent in manifest.agents:
            for condition in manifest.conditions:
                labels = self.counted.get((agent, condition))
                if not labels:
                    continue
                above = np.array([label.judge - label.people for label in labels])
                middle = float(np.median(above))  # what nobody labelled may lie on either side of it
                found = paired_effects([Differences(above - middle, _units(labels), scale.high - scale.low)])[0]
                low, high = (None if end is None else end + middle for end in (found.low, found.high))
                rates = (None, None) if two is None else (_rate(labels, *two), _rate(labels, *reversed(two)))
                yield ArmBias(agent, condition, len(labels), float(np.mean(above)), low, high, *rates)

    def effects(self, manifest: Manifest, findings: Callable[[], Findings]) -> Iterator[CorrectedEffect]:
        """Yield each effect of whose arms people labelled answers; `findings` are asked for if labels are enough."""
        for kind, arm, against in compared_arms(manifest):
            names = [(each.agent, each.condition) for each in (arm, against)]
            left_out = self.left_out.get(names[0], Counter()) + self.left_out.get(names[1], Counter())
            sides = [self.counted.get(name, []) for name in names]
            if not any(sides) and not left_out:
                continue
            labels, judge = sum(map(len, sides)), self.entry.judge or ""
            whose = CorrectedEffect(self.entry.metric, judge, arm.agent, arm.condition, against, kind, labels)
            whose = self._corrected(whose, sides, findings)
            if whose.reason is not None and left_out:
                told = ", ".join(f"{count} {reason}" for reason, count in sorted(left_out.items()))
                whose = attrs.evolve(whose, reason=f"{whose.reason}; not counted: {told}")
            yield whose

    def _corrected(
        self, whose: CorrectedEffect, sides: Sequence[Sequence[Label]], findings: Callable[[], Findings]
    ) -> CorrectedEffect:
        """Return an effect with its figures, or with the reason for none."""
        span = self.entry.scale.high - self.entry.scale.low
        arm_labels, against_labels = (_labelled(side, _units(side)) for side in sides)
        # Checked before the findings are asked for, as these may take reading all scores of the run.
        if reason := refusal(arm_labels, against_labels, span):
            return attrs.evolve(whose, reason=reason)
        found = findings()
        if found.unfinished:
            return attrs.evolve(whose, reason="the run is unfinished")
        if found.manifest.looking is not None:
            return attrs.evolve(whose, reason=MAY_END)
        arm, against = (
            found.values(each, self.entry.scorer)
            for each in (Arm(whose.agent, whose.condition, whose.against.run), whose.against)
        )
        both = {sample: now - before for sample, before, now in paired_values(arm, against)}
        # An effect has the questions that both arms have a score for; so there may be too few labels now.
        kept = [[label for label in side if found.number(label.sample) in both] for side in sides]
        ours, theirs = (_labelled(side, [found.unit(found.number(label.sample)) for label in side]) for side in kept)
        if reason := refusal(ours, theirs, span):
            return attrs.evolve(whose, reason=reason)
        judged = Judged(np.array([*both.values()]), np.array([*map(found.unit, both)], np.int64), span)
        # Of the same labels, so that the bias explains the correction.
        effect, bias = corrected(judged, ours, theirs), bias_difference(ours, theirs, span)
        return attrs.evolve(
            whose,
            labels=len(kept[0]) + len(kept[1]),
            n=len(both),
            **attrs.asdict(effect),
            bias_difference=bias.difference,
            bias_low=bias.ci_low,
            bias_high=bias.ci_high,
        )


def _units(labels: Sequence[Label]) -> Sequence[int]:
    """Number what is independent of others among some labels."""
    numbers: dict[str, int] = {}
    return [numbers.setdefault(label.question, len(numbers)) for label in labels]


def _labelled(labels: Sequence[Label], units: Sequence[int]) -> Labelled:
    people, judge = (np.array([getattr(label, whose) for label in labels]) for whose in ("people", "judge"))
    return Labelled(people, judge, np.array(units, np.int64))


def _rate(labels: Sequence[Label], other: float, level: float) -> Rate | None:
    """Return how often the judge gives one of two levels where people do; `None` if they never do."""
    # The mean of several people may lie between the two levels: the nearer one counts.
    found = [label for label in labels if abs(label.people - level) < abs(label.people - other)]
    if not found:
        return None
    shares = [(label.judge - other) / (level - other) for label in found]
    ends = mean_intervals([Values(shares, _units(found), 0.0, 1.0)])[0]
    return Rate(len(found), sum(shares) / len(found), ends.low if ends else None, ends.high if ends else None)
