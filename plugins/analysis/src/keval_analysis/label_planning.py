"""How wide the intervals of corrected effects would be with more labels by people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs
import numpy as np

from keval.records.manifest import ScorerEntry
from keval.store.run import Run
from keval_analysis.findings.draws import Labels
from keval_analysis.findings.effects import OfArm
from keval_analysis.findings.reviews import standing
from keval_analysis.stats.corrected import FEWEST, MAY_END
from keval_analysis.stats.units import FloatArray, t_quantile

CORRELATIONS = (0.9, 0.3)
"""What is assumed of how a judge's differences and those of people go together, while too few labels tell it."""

Arm: TypeAlias = tuple[str, str]


@attrs.frozen
class ExpectedWidth:
    """How far the 95 % interval of a corrected effect reaches to either side with so many `more` labels.

    `questions` are then labelled in both arms. The reach lies between `narrow` and `wide`, in points of the scale;
    `reason` says why there is none.
    """

    more: int
    questions: int
    narrow: float | None = None
    wide: float | None = None
    reason: str | None = None


@attrs.frozen
class LabelPlan(OfArm):
    """What further labels would bring to the effect of a condition against the baseline.

    If it `is_assumed`, the labels are too few to say how well judge and people agree: then the people's differences
    are taken to scatter as the judge's do, with a correlation within `CORRELATIONS`.
    """

    metric: str
    judge: str | None
    is_assumed: bool
    widths: tuple[ExpectedWidth, ...]


def plan_labels(
    run: Run, scorer: ScorerEntry, labels: Labels, more: Sequence[int] = (0, 20, 40, 80)
) -> list[LabelPlan]:
    """Return for each effect by a judge how wide its corrected interval would be with `more` labels. Raises RunError.

    There is no effect if the run has one condition.
    """
    manifest = run.manifest
    others = [condition for condition in manifest.conditions if condition != manifest.baseline]
    arms = len(manifest.agents) * len(manifest.conditions)
    judged, people = _judged(run, scorer), _labelled(scorer, labels)
    plans = []
    for agent in manifest.agents:
        for condition in others:
            basis = _Basis.of(judged, people, (agent, condition), (agent, manifest.baseline))
            widths = tuple(basis.width(extra, extra // arms) for extra in more)
            if manifest.looking is not None:
                widths = tuple(ExpectedWidth(each.more, each.questions, reason=MAY_END) for each in widths)
            plans.append(LabelPlan(agent, condition, *scorer.scorer, basis.is_assumed, widths))
    return plans


@attrs.frozen(eq=False)
class _Basis:
    """What is known of one effect.

    `mean` are the judge's differences by question, over all repetitions, and `single` those of single answers; `pairs`
    has the differences by people and judge of labelled questions.
    """

    mean: FloatArray
    single: FloatArray
    pairs: FloatArray

    @classmethod
    def of(
        cls,
        judged: Mapping[Arm, Mapping[tuple[str, int], float]],
        people: Mapping[Arm, Mapping[tuple[str, int], float]],
        arm: Arm,
        against: Arm,
    ) -> _Basis:
        ours, theirs = judged.get(arm, {}), judged.get(against, {})
        means = [_by_question(each) for each in (ours, theirs)]
        said = [_by_question(people.get(each, {})) for each in (arm, against)]
        # The judge's levels of the answers that people labelled, and of no others.
        told = [
            _by_question({key: level for key, level in levels.items() if key in people.get(which, {})})
            for which, levels in ((arm, ours), (against, theirs))
        ]
        shared = said[0].keys() & said[1].keys() & told[0].keys() & told[1].keys()
        pairs = [(said[0][name] - said[1][name], told[0][name] - told[1][name]) for name in sorted(shared)]
        return cls(
            np.array([means[0][name] - means[1][name] for name in sorted(means[0].keys() & means[1].keys())]),
            np.array([ours[key] - theirs[key] for key in sorted(ours.keys() & theirs.keys())]),
            np.array(pairs, np.float64).reshape(-1, 2),
        )

    @property
    def is_assumed(self) -> bool:
        return len(self.pairs) < FEWEST

    def width(self, more: int, further: int) -> ExpectedWidth:
        """Return what `more` labels bring, with `further` questions labelled in both arms."""
        questions = min(len(self.pairs) + further, len(self.mean))
        if questions < FEWEST:
            return ExpectedWidth(more, questions, reason=f"fewer than {FEWEST} questions labelled in both arms")
        if self.is_assumed and not np.ptp(self.single):
            return ExpectedWidth(more, questions, reason="the judge's differences are all the same, so nothing tells")
        reaches = [self._reach(questions, *each) for each in self._residuals()]
        return ExpectedWidth(more, questions, min(reaches), max(reaches))

    def _residuals(self) -> Iterator[tuple[float, float]]:
        """Yield λ with the variance of what it leaves of people's differences; two if they are assumed."""
        if self.is_assumed:
            scatter = float(np.var(self.single, ddof=1))
            yield from ((correlation, scatter * (1 - correlation**2)) for correlation in CORRELATIONS)
            return
        people, judge = self.pairs.T
        apart = judge - judge.mean()
        slope = float(apart @ people / (apart @ apart)) if np.ptp(judge) else 0.0
        tuning = min(max(slope, 0.0), 1.0)
        rest = people - tuning * judge
        yield tuning, float(np.sum((rest - rest.mean()) ** 2)) / (len(rest) - 2)

    def _reach(self, labelled: int, tuning: float, residual: float) -> float:
        """Return the reach of the interval, as it is where the same questions are labelled in both arms.

        Source: as `keval_analysis.stats.corrected`; what λ leaves does not go with the judge's differences.
        """
        left = residual * (labelled - 2) / labelled  # as λ and a mean are estimated
        variance = tuning**2 * float(np.var(self.mean)) / len(self.mean) + left / labelled
        stderr = float(np.sqrt(variance * 2 * labelled / (2 * labelled - 3)))
        return float(t_quantile(labelled - 2, 0.95)) * stderr


def _judged(run: Run, scorer: ScorerEntry) -> dict[Arm, dict[tuple[str, int], float]]:
    """Return the mean level over the judge's gradings by arm, and by question and repetition."""
    given: dict[Arm, dict[tuple[str, int], list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in run.scores():
        if line.scorer == scorer.scorer and line.score.value is not None:
            given[line.agent, line.condition][line.sample, line.repetition].append(line.score.value)
    return {arm: {key: _mean(values) for key, values in found.items()} for arm, found in given.items()}


def _labelled(scorer: ScorerEntry, labels: Labels) -> dict[Arm, dict[tuple[str, int], float]]:
    """Return the mean level that people gave to each answer that was drawn, likewise."""
    said: dict[tuple[str, str], list[float]] = defaultdict(list)
    for review in standing(labels.reviews):
        if review.level is not None and review.rubric == scorer.rubric:
            said[review.trial, review.answer].append(float(review.level))
    found: dict[Arm, dict[tuple[str, int], float]] = defaultdict(dict)
    for each in (answer for draw in labels.draws for answer in draw.answers):
        if levels := said.get((each.trial, each.answer)):
            found[each.agent, each.condition][each.sample, each.repetition] = _mean(levels)
    return found


def _by_question(levels: Mapping[tuple[str, int], float]) -> dict[str, float]:
    """Return the mean level by question."""
    found: dict[str, list[float]] = defaultdict(list)
    for (name, _), level in levels.items():
        found[name].append(level)
    return {name: _mean(values) for name, values in found.items()}


def _mean(values: Iterable[float]) -> float:
    return float(np.mean([*values]))
