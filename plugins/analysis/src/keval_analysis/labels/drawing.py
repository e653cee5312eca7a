"""Answers for people to label, drawn at random.

A draw is spread over the judge's levels, and takes the same questions in every arm.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from keval.errors import RunError, typed
from keval.records.manifest import ScorerEntry
from keval.records.trial import TrialKey
from keval.store.run import Run
from keval_analysis.findings.draws import Draw, DrawnAnswer, DrawnFrom, draws_file, questions_digest
from keval_analysis.findings.reviews import answer_digest

Arm: TypeAlias = tuple[str, str]


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
    levels = _levels(run, scorer)
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


def _levels(run: Run, scorer: ScorerEntry) -> dict[str, float]:
    """Return the mean level that the judge gave each trial."""
    found: dict[str, list[float]] = defaultdict(list)
    for line in run.scores():
        if line.scorer == scorer.scorer and line.score.value is not None:
            found[line.trial].append(line.score.value)
    return {trial: sum(values) / len(values) for trial, values in found.items()}


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
