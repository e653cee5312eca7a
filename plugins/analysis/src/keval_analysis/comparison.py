"""Comparing runs, and two arms of one run or of two: effects, what else differs, and how each sample changed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from keval.errors import RunError
from keval.records.manifest import ReplayEntry, ScorerEntry
from keval.records.scores import Scale, Scorer
from keval.store.run import Run
from keval_analysis.composition import Difference, what_differs
from keval_analysis.findings.effects import Arm, Effect
from keval_analysis.findings.summary import ArmScore, ScorerScale
from keval_analysis.stats.findings import Findings, read_findings
from keval_analysis.stats.observations import numbered, unlike_pasts
from keval_analysis.stats.pairs import Families, Kind, Pair

if TYPE_CHECKING:
    from keval_analysis.stats.effects import Drop


@attrs.frozen
class SampleChange:
    """How the mean score of one sample changed from one run to another, in the units of the metric's scale."""

    sample: str
    agent: str
    condition: str
    metric: str
    judge: str | None
    before: float
    now: float

    @property
    def difference(self) -> float:
        """By how much the mean rose."""
        return self.now - self.before


@attrs.frozen
class RunArms:
    """The arms of one run, as far as they are compared. `graded_only` says that only judges' models are simulated."""

    run: str
    evaluation: str
    simulated: tuple[str, ...]
    graded_only: bool
    replay: ReplayEntry | None
    arms: tuple[ArmScore, ...]


@attrs.frozen
class Comparison:
    """A run held against another: `runs` has the run and then that other one.

    `agents` has the agents of the run that are compared, each with the one of the other run. `changes` are the samples
    whose mean differs in an arm, the largest loss for the metric's scale first and the largest gain last.
    """

    runs: tuple[RunArms, RunArms]
    agents: Mapping[str, str]
    scorers: tuple[ScorerScale, ...]
    differences: tuple[Difference, ...]
    effects: tuple[Effect, ...]
    changes: tuple[SampleChange, ...]


def compare_runs(run: Run, against: Run, agents: Mapping[str, str] | None = None) -> Comparison:
    """Compare the arms of a run with those of another by every scorer that both have, on the samples that both have.

    `agents` names agents of the run, each with the one of the other that it is compared with. Without them, those of
    one name are; if there are none, and each run has one agent, these two are.

    Raises RunError: there is no such agent; the runs share no agent, condition, scorer or sample with a score; or one
    of them cannot be read.
    """
    from keval_analysis.stats.effects import changed, effects_of  # NumPy takes a tenth of a second to import

    paired = _paired_agents(run, against, agents)
    shared = _Shared.of(run, against, paired)
    effects = effects_of(shared.pairs, shared.families)
    if not any(found.n for found in effects):
        raise RunError(
            f"{run.path} and {against.path} have no sample in common that both have a score for; compare runs of one"
            " dataset, and see `keval report RUN` for what failed"
        )
    changes = [
        SampleChange(shared.samples[sample], pair.arm.arm.agent, pair.arm.arm.condition, *pair.measure.scorer, old, new)
        for pair in shared.pairs
        for sample, old, new in changed(pair)
    ]
    scales = {entry.scorer: entry.scale for entry in shared.scales}
    now, before = shared.findings
    return Comparison(
        runs=(_run(now), _run(before)),
        agents=paired,
        scorers=shared.scales,
        differences=(
            *what_differs(run, against, paired),
            *_unanswered(now, before),
            *_unlike_pasts(now, before, shared.arms),
        ),
        effects=effects,
        changes=tuple(sorted(changes, key=lambda change: _gain(change, scales[change.metric, change.judge]))),
    )


def drops_between(run: Run, against: Run, allowed: float | None) -> tuple[list[Drop], tuple[ScorerScale, ...]]:
    """Return by how much each arm of a run is worse than in another by each scorer, and their scales. Raises RunError.

    Each drop is held against one that is `allowed`, in the units of its scale, or against the margin of this.
    """
    from keval_analysis.stats.effects import drops_of  # NumPy takes a tenth of a second to import

    shared = _Shared.of(run, against, _same_agents(run, against))
    return drops_of(shared.pairs, shared.families, allowed), shared.scales


@attrs.frozen
class _Shared:
    """What two runs, which may be one, share: the `arms` that are compared, and the `pairs` of arms by each scorer.

    `scales` are those of the scorers, and `samples` has ids by number.
    """

    findings: tuple[Findings, Findings]
    samples: Sequence[str]
    arms: Sequence[tuple[Arm, Arm]]
    scales: tuple[ScorerScale, ...]
    pairs: Sequence[Pair]

    @classmethod
    def of(cls, run: Run, against: Run, agents: Mapping[str, str]) -> _Shared:
        """Read two runs, whose `agents` are paired.

        Raises RunError: they share no arm or no scorer, or one of them cannot be read.
        """
        arms = [
            (Arm(agent, condition, run.manifest.run), Arm(other, condition, against.manifest.run))
            for agent, other in agents.items()
            for condition in run.manifest.conditions
            if condition in against.manifest.conditions
        ]
        if not arms:
            told = "; ".join(
                f"{each.path} has {', '.join(f'{arm.agent} {arm.condition}' for arm in arms_of(each))}"
                for each in (run, against)
            )
            raise RunError(
                f"the runs share no agent and condition (compared by label): {told};"
                " `keval compare --agent A=B` compares agents of other names"
            )
        return cls.between("run", run, against, arms)

    @classmethod
    def between(cls, kind: Kind, run: Run, against: Run, arms: Sequence[tuple[Arm, Arm]]) -> _Shared:
        """Read two runs, of which these arms are compared. Raises RunError: they share no scorer, or cannot be read."""
        numbers = numbered(run.samples.ids, against.samples.ids)
        now = read_findings(run, numbers)
        # Two arms of one run take one reading.
        before = now if run.path == against.path else read_findings(against, numbers)
        entries = shared_scorers(run, against)
        # Properties of agents are compared only where there is nothing else.
        fixed = {each.scorer for each in now.properties()} & {each.scorer for each in before.properties()}
        entries = [entry for entry in entries if entry.scorer not in fixed] or entries
        pairs = [
            Pair(kind, now.measure(entry), now.values(here, entry.scorer), before.values(there, entry.scorer))
            for here, there in arms
            for entry in entries
        ]
        scales = tuple(ScorerScale(entry.metric, entry.judge, entry.scale) for entry in entries)
        return cls((now, before), list(numbers), arms, scales, pairs)

    @property
    def families(self) -> Families:
        """How effects between the runs are judged together."""
        now, before = self.findings
        return now.families(before)


def _run(found: Findings) -> RunArms:
    manifest = found.manifest
    graded_only = bool(manifest.simulated) and not any(agent.simulated for agent in manifest.agents.values())
    return RunArms(manifest.run, manifest.evaluation, manifest.simulated, graded_only, manifest.replay, found.arms())


def _gain(change: SampleChange, scale: Scale) -> float:
    """Return how much better a sample got, as a share of its metric's scale where that has an end."""
    gain = change.difference if scale.better == "higher" else -change.difference
    return gain if math.isinf(scale.high) else gain / (scale.high - scale.low)


def shared_scorers(run: Run, against: Run) -> list[ScorerEntry]:
    """Return the scorers that two runs have on the same scale. Raises RunError if there is none."""
    known = {entry.scorer: _span(entry) for entry in against.manifest.scorers}
    found = [entry for entry in run.manifest.scorers if known.get(entry.scorer) == _span(entry)]
    if not found:
        raise RunError(
            f"{run.path} and {against.path} have no metric in common on the same scale;"
            " `keval score RUN --metric NAME` scores a run again"
        )
    return found


def _span(entry: ScorerEntry) -> tuple[float, float, str]:
    return entry.scale.low, entry.scale.high, entry.scale.better


def _same_agents(run: Run, against: Run) -> dict[str, str]:
    return {agent: agent for agent in run.manifest.agents if agent in against.manifest.agents}


def _paired_agents(run: Run, against: Run, agents: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return the agents that are to be compared, else those of one name, or the only agent of each run.

    Raises RunError: a run has no such agent.
    """
    if agents is None:
        ours, theirs = [*run.manifest.agents], [*against.manifest.agents]
        same = _same_agents(run, against)
        return {ours[0]: theirs[0]} if not same and len(ours) == len(theirs) == 1 else same
    for of, names in ((run, agents.keys()), (against, agents.values())):
        for name in names:
            if name not in of.manifest.agents:
                raise RunError(f"{of.path} has no agent {name!r}; it has {', '.join(of.manifest.agents)}")
    return agents


def _unlike_pasts(now: Findings, before: Findings, arms: Iterable[tuple[Arm, Arm]]) -> Iterator[Difference]:
    """Yield on how many samples arms had histories or facts of their own, if these are unlike in any."""
    pairs = [(now.own_pasts[here], before.own_pasts[there]) for here, there in arms]
    unlike = [unlike_pasts(pair) for pair in pairs]
    for what, number in (("histories", 0), ("facts", 1)):
        samples = set[int]().union(*(found[number] for found in unlike))
        if samples:
            had = [len(set[int]().union(*(getattr(each, what) for each in side))) for side in zip(*pairs, strict=True)]
            told = f"{had[0]:,} samples, on {len(samples):,} not the same"
            yield Difference(f"{what} of the agents' own", told, f"{had[1]:,} samples")


def _unanswered(now: Findings, before: Findings) -> Iterator[Difference]:
    """Yield how many trials were answered, if a run has others: they failed, or were not run, or not yet."""
    told = [(found.answered, found.manifest.trials - found.beyond) for found in (now, before)]
    if any(answered < planned for answered, planned in told):
        ours, theirs = (f"{answered:,} of {planned:,}" for answered, planned in told)
        yield Difference("trials answered", ours, theirs)


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
    return [RunArm(run, agent, condition) for agent in run.manifest.agents for condition in run.manifest.conditions]


def compare_arms(arm: RunArm, against: RunArm) -> ArmComparison:
    """Compare two arms on the samples that both have scores for.

    p is adjusted for the number of scorers. Raises RunError: a run cannot be read or has no such arm, or the two runs
    share no scorer.
    """
    # NumPy takes a tenth of a second to import
    from keval_analysis.stats.effects import effects_of, paired_values

    for each in (arm, against):
        if each not in arms_of(each.run):
            raise RunError(f"{each.run.path} has no agent {each.agent!r} under the condition {each.condition!r}")
    is_one = arm.run.path == against.run.path
    kind: Kind = "run" if not is_one else "condition" if arm.agent == against.agent else "agent"
    here, there = (Arm(each.agent, each.condition, each.run.manifest.run) for each in (arm, against))
    shared = _Shared.between(kind, arm.run, against.run, [(here, there)])
    ours, theirs = shared.findings
    return ArmComparison(
        arm,
        against,
        scorers=shared.scales,
        effects=effects_of(shared.pairs, shared.families),
        means=(_of(here, ours.arms()), _of(there, theirs.arms())),
        scores={
            pair.measure.scorer: tuple(
                SampleScores(shared.samples[n], now, was) for n, was, now in paired_values(pair.arm, pair.against)
            )
            for pair in shared.pairs
        },
        differences=()
        if is_one
        else (
            *what_differs(arm.run, against.run, {arm.agent: against.agent}),
            *_unlike_pasts(ours, theirs, [(here, there)]),
        ),
    )


def _of(arm: Arm, scores: tuple[ArmScore, ...]) -> tuple[ArmScore, ...]:
    return tuple(each for each in scores if (each.agent, each.condition) == (arm.agent, arm.condition))
