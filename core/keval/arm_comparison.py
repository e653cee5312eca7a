"""Comparing two arms, of one run or of two: the effects, and what each sample scored in both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from keval.compare import Difference, spans, what_differs
from keval.effects import Arm, Effect
from keval.errors import RunError
from keval.manifest import ScorerEntry
from keval.scores import Scorer
from keval.store.run import Run
from keval.summary import ArmScore, ScorerScale

__all__ = ["ArmComparison", "RunArm", "SampleScores", "arms_of", "compare_arms"]


@attrs.frozen
class RunArm:
    """An arm of a run: an agent under a condition."""

    run: Run
    agent: str
    condition: str


@attrs.frozen
class SampleScores:
    """The mean scores of one sample over its repetitions: of the arm, and of the arm that it is held against."""

    sample: str
    now: float
    before: float

    @property
    def difference(self) -> float:
        """By how much the arm scored higher."""
        return self.now - self.before


@attrs.frozen
class ArmComparison:
    """An arm held against another.

    `effects` has one for each scorer that both runs share on the same scale, and `scores` every sample that has a score
    in both arms, in the order of the arm's dataset. `means` are those of each arm alone, and `differences` what else
    differs between the runs, if they are two.
    """

    arm: RunArm
    against: RunArm
    scorers: tuple[ScorerScale, ...]
    effects: tuple[Effect, ...]
    means: tuple[tuple[ArmScore, ...], tuple[ArmScore, ...]]
    scores: Mapping[Scorer, tuple[SampleScores, ...]]
    differences: tuple[Difference, ...]


def arms_of(run: Run) -> list[RunArm]:
    """Return the arms of a run, agent by agent. Raises RunError."""
    manifest = run.manifest
    return [RunArm(run, agent, condition) for agent in manifest.agents for condition in manifest.conditions]


def compare_arms(arm: RunArm, against: RunArm) -> ArmComparison:
    """Compare two arms on the samples that both have scores for.

    p is adjusted for the number of scorers. Raises RunError: a run cannot be read or has no such arm, or the two runs
    share no scorer.
    """
    # NumPy takes a tenth of a second to import
    from keval.stats.effects import Kind, adjust, effect, paired_values
    from keval.stats.summarise import Summariser

    for each in (arm, against):
        if each not in arms_of(each.run):
            raise RunError(f"{each.run.path} has no agent {each.agent!r} under the condition {each.condition!r}")
    numbers: dict[str, int] = {}
    is_one = arm.run.path == against.run.path
    ours = Summariser(arm.run.manifest, numbers).read(arm.run.trials(), arm.run.scores()).findings()
    theirs = ours
    if not is_one:
        other = against.run
        theirs = Summariser(other.manifest, numbers).read(other.trials(), other.scores()).findings()
    names = list(numbers)
    kind: Kind = "run" if not is_one else "condition" if arm.agent == against.agent else "agent"
    effects, scores = [], {}
    entries = [*_shared(arm.run, against.run)]
    here, there = (Arm(each.agent, each.condition, each.run.manifest.run) for each in (arm, against))
    for entry in entries:
        mine, others = ours.values(here, entry.scorer), theirs.values(there, entry.scorer)
        effects.append(effect(kind, ours.measure(entry), mine, others))
        scores[entry.scorer] = tuple(SampleScores(names[n], now, was) for n, was, now in paired_values(mine, others))
    return ArmComparison(
        arm,
        against,
        scorers=tuple(ScorerScale(entry.metric, entry.judge, entry.scale) for entry in entries),
        effects=tuple(adjust(effects, {entry.scorer: entry.scale for entry in entries})),
        means=(_of(here, ours.arms()), _of(there, theirs.arms())),
        scores=scores,
        differences=() if is_one else tuple(what_differs(arm.run.manifest, against.run.manifest)),
    )


def _shared(run: Run, against: Run) -> Iterator[ScorerEntry]:
    """Yield the scorers that both runs have on the same scale. Raises RunError if there is none."""
    known = {entry.scorer: spans(entry) for entry in against.manifest.scorers}
    found = [entry for entry in run.manifest.scorers if known.get(entry.scorer) == spans(entry)]
    if not found:
        raise RunError(
            f"{run.path} and {against.path} have no metric in common on the same scale;"
            " `keval score RUN --metric NAME` scores a run again"
        )
    yield from found


def _of(arm: Arm, scores: tuple[ArmScore, ...]) -> tuple[ArmScore, ...]:
    return tuple(each for each in scores if (each.agent, each.condition) == (arm.agent, arm.condition))
