"""Answers for people to label: drawn at random, and how wide the intervals of corrected effects would be with more.

A draw is spread over the judge's levels, and takes the same questions in every arm.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

import attrs
import numpy as np

from keval.errors import RunError, typed
from keval.records.manifest import ScorerEntry
from keval.records.scores import ScoreLine
from keval.records.trial import TrialKey
from keval.store.run import Run
from keval_analysis.findings.draws import Draw, DrawnAnswer, DrawnFrom, Labels, draws_file, questions_digest
from keval_analysis.findings.effects import OfArm
from keval_analysis.findings.reviews import answer_digest, standing
from keval_analysis.stats.corrected import FEWEST, MAY_END, slope
from keval_analysis.stats.units import FloatArray, t_quantile

K = TypeVar("K", bound=Hashable)
Arm: TypeAlias = tuple[str, str]
Levels: TypeAlias = Mapping[Arm, Mapping[tuple[str, int], float]]
"""The mean level of each answer by arm, and by its question and repetition."""

CORRELATIONS = (0.9, 0.3)
"""What is assumed of how a judge's differences and those of people go together, while too few labels tell it."""


def draw_answers(run: Run, scorer: ScorerEntry, count: int, seed: int, at: str) -> Draw:
    """Draw answers of a run that were not drawn before; returns the draw, which is not written yet.

    It takes as many whole questions as `count` answers allow, or all that are left. `at` is the ISO time.

    Raises RunError: the run is written to, the scorer graded nothing, no question is left, or `count` is too small.
    """
    if run.is_locked:
        raise RunError(f"{run.path} is being written to; draw answers when it is finished")
    answered: dict[str, list[TrialKey]] = defaultdict(list)
    for key in run.known_trials.answered:
        answered[key.sample].append(key)
    levels = _means((line.trial, line.score.value) for line in _graded(run, scorer))
    if not levels:
        whose = f"{scorer.metric} by {scorer.judge}"
        raise RunError(
            f"{run.path} has no score of {whose}, over whose levels a draw is spread: {typed('score', run.path)}"
        )
    arms = [(agent, condition) for agent in run.manifest.agents for condition in run.manifest.conditions]
    drawn = {answer.sample for draw in run.labels().draws for answer in draw.answers}
    left = [name for name in run.samples.ids if name in answered and name not in drawn]
    if not left:
        raise RunError(f"all {len(answered)} questions of {run.path} are drawn already: review their answers")
    if count < len(arms):
        raise RunError(f"a draw takes each question in all {len(arms)} arms; draw {len(arms)} answers or more")
    rng = random.Random(seed)
    repetitions = {name: _in_one_repetition(answered[name], rng) for name in left}
    # Questions with equal levels are in random order.
    ranked = sorted(left, key=lambda name: (*_places(repetitions[name], arms, levels), rng.random()))
    chosen = _systematic(ranked, min(count // len(arms), len(ranked)), rng)
    rng.shuffle(chosen)
    return Draw(
        id=str(1 + sum(1 for _ in draws_file(run.path).read())),
        at=at,
        seed=seed,
        metric=scorer.metric,
        judge=scorer.judge,
        digest=scorer.digest,
        samples=questions_digest(run.known_trials),
        questions=len(answered),
        drawn=len(drawn) + len(chosen),
        frame=tuple(_frame([key for name in left for key in repetitions[name].values()], arms, levels)),
        answers=tuple(
            DrawnAnswer(key.id, answer_digest(run.trial(key.id)), key.sample, key.agent, key.condition, key.repetition)
            for name in chosen
            for key in repetitions[name].values()
        ),
    )


def _graded(run: Run, scorer: ScorerEntry) -> Iterator[ScoreLine]:
    return (line for line in run.scores() if line.scorer == scorer.scorer and line.score.value is not None)


def _means(levels: Iterable[tuple[K, float | None]]) -> dict[K, float]:
    """Return the mean of the levels that are known of each thing."""
    found: dict[K, list[float]] = defaultdict(list)
    for of, level in levels:
        if level is not None:
            found[of].append(level)
    return {of: sum(values) / len(values) for of, values in found.items()}


def _in_one_repetition(answered: Sequence[TrialKey], rng: random.Random) -> Mapping[Arm, TrialKey]:
    """Draw an answer to a question in each arm: of the same repetition, unless an arm failed there."""
    order = rng.sample(range(most := max(key.repetition for key in answered)), most)
    keys = sorted(answered, key=lambda key: order[key.repetition - 1], reverse=True)
    # Of several answers of an arm the last one stays, which is that of the repetition that was drawn first.
    return {(key.agent, key.condition): key for key in keys}


def _places(answers: Mapping[Arm, TrialKey], arms: Iterable[Arm], levels: Mapping[str, float]) -> Iterator[float]:
    """Yield by what a question is sorted: the level of its answer in each arm, above all others if it has none."""
    for arm in arms:
        yield levels.get(answers[arm].id, math.inf) if arm in answers else math.inf


def _systematic(ranked: Sequence[str], count: int, rng: random.Random) -> list[str]:
    """Choose so many at equal distances from a random start: each with the same probability, from all places.

    Source: Cochran, Sampling Techniques (1977), section 8.1, with a fractional interval.
    """
    start, step = rng.random(), len(ranked) / count
    return [ranked[int((place + start) * step)] for place in range(count)]


def _frame(keys: Iterable[TrialKey], arms: Iterable[Arm], levels: Mapping[str, float]) -> Iterator[DrawnFrom]:
    """Yield for each arm how many of the answers lie at which level."""
    counts: dict[Arm, Counter[str]] = {arm: Counter() for arm in arms}
    for key in keys:
        level = levels.get(key.id)
        counts[key.agent, key.condition]["none" if level is None else f"{level:g}"] += 1
    for arm, found in counts.items():
        yield DrawnFrom(*arm, found.total(), dict(sorted(found.items())))


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
    def of(cls, judged: Levels, people: Levels, arm: Arm, against: Arm) -> _Basis:
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
        # Without scatter of the judge's own, nothing can be assumed of people's.
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
        tuning = slope([(people, judge, np.ones(len(people)))])
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


def _judged(run: Run, scorer: ScorerEntry) -> Levels:
    """Return the mean level over the judge's gradings."""
    lines = _graded(run, scorer)
    given = _means(((line.agent, line.condition, line.sample, line.repetition), line.score.value) for line in lines)
    found: dict[Arm, dict[tuple[str, int], float]] = defaultdict(dict)
    for (agent, condition, sample, repetition), level in given.items():
        found[agent, condition][sample, repetition] = level
    return found


def _labelled(scorer: ScorerEntry, labels: Labels) -> Levels:
    """Return the mean level that people gave to each answer that was drawn."""
    reviews = (each for each in standing(labels.reviews) if each.rubric == scorer.rubric)
    said = _means(((each.trial, each.answer), each.level) for each in reviews)
    found: dict[Arm, dict[tuple[str, int], float]] = defaultdict(dict)
    for each in (answer for draw in labels.draws for answer in draw.answers):
        if (level := said.get((each.trial, each.answer))) is not None:
            found[each.agent, each.condition][each.sample, each.repetition] = level
    return found


def _by_question(levels: Mapping[tuple[str, int], float]) -> dict[str, float]:
    return _means((name, level) for (name, _), level in levels.items())
