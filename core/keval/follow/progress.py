"""Progress: how far a run has come, what went wrong on the way, and what the rest will take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import attrs

from keval.manifest import Manifest
from keval.prices import Cost
from keval.stats.failures import FailureTally
from keval.store.watched import Trouble, troubles
from keval.summary import ArmTrials, JudgingTotal

__all__ = ["ArmProgress", "Counts", "RunProgress", "progress_of"]

_Label: TypeAlias = tuple[str, str]
"""An agent and a condition."""


@attrs.frozen
class ArmProgress:
    """How far an arm has come. `retried` trials needed more than one attempt.

    `planned` trials are known unless the answers of an agent were recorded. Of the `scores`, there will be `expected`
    if no further trial fails.
    """

    agent: str
    condition: str
    planned: int | None
    finished: int
    failed: int
    retried: int
    scores: int
    expected: int | None


@attrs.frozen
class RunProgress:
    """How far a run has come.

    `failures` are failed trials by `stage: kind`, `retries` failed attempts that were repeated, by the same, `refusals`
    model requests that were sent again, by status, and `unscored` failures of scorers, by kind. `rate` is trials per
    second over the last minute, and `seconds_left` what the trials that are left take at that rate. `cost` is that of
    trials and judgements so far, and `expected_usd` that of the whole run if the rest costs as much; `None` if a price
    or tokens are unknown, or an arm has no trial yet.
    """

    planned: int
    finished: int
    failed: int
    retried: int
    arms: tuple[ArmProgress, ...]
    failures: tuple[Trouble, ...]
    retries: tuple[Trouble, ...]
    refusals: tuple[Trouble, ...]
    unscored: tuple[Trouble, ...]
    rate: float | None
    seconds_left: float | None
    cost: Cost
    expected_usd: float | None


@attrs.define
class Counts:
    """What is counted of a run beside its tallies: scores by arm and judge (`None`: metrics), and what went wrong."""

    scores: Counter[tuple[str, str, str | None]] = attrs.field(factory=Counter)
    failures: FailureTally = attrs.field(factory=FailureTally)
    retries: FailureTally = attrs.field(factory=FailureTally)
    refusals: FailureTally = attrs.field(factory=FailureTally)
    unscored: FailureTally = attrs.field(factory=FailureTally)


def progress_of(
    manifest: Manifest,
    trials: Iterable[ArmTrials],
    judging: Iterable[JudgingTotal],
    counts: Counts,
    rate: float | None,
) -> RunProgress:
    """Return how far a run has come, by its totals and at a rate of so many trials per second."""
    totals = {(each.agent, each.condition): each for each in trials}
    judged = [*judging]
    arms = [_arm(manifest, total, counts) for total in totals.values()]
    finished = sum(arm.finished for arm in arms)
    cost = sum((each.cost for each in totals.values()), start=Cost())
    cost = sum((each.cost for each in judged), start=cost)
    return RunProgress(
        planned=manifest.trials,
        finished=finished,
        failed=sum(arm.failed for arm in arms),
        retried=sum(arm.retried for arm in arms),
        arms=tuple(arms),
        failures=troubles(counts.failures),
        retries=troubles(counts.retries),
        refusals=troubles(counts.refusals),
        unscored=troubles(counts.unscored),
        rate=rate,
        seconds_left=max(0, manifest.trials - finished) / rate if rate else None,
        cost=cost,
        expected_usd=_expected_usd(manifest, arms, totals, judged, counts),
    )


def _arm(manifest: Manifest, total: ArmTrials, counts: Counts) -> ArmProgress:
    recorded = any(entry.recording for entry in manifest.agents.values())
    count = len(manifest.agents) * len(manifest.conditions)
    planned = None if recorded else round(manifest.trials / count)
    each = sum(entry.repetitions for entry in manifest.scorers)
    expected = None if planned is None else each * (max(planned, total.trials) - total.failed)
    by = (None, *manifest.judges)
    scores = sum(counts.scores[total.agent, total.condition, judge] for judge in by)
    return ArmProgress(
        total.agent, total.condition, planned, total.trials, total.failed, total.retried, scores, expected
    )


def _expected_usd(
    manifest: Manifest,
    arms: Iterable[ArmProgress],
    totals: Mapping[_Label, ArmTrials],
    judged: Iterable[JudgingTotal],
    counts: Counts,
) -> float | None:
    """Return what the whole run will cost: the trials of each arm as those so far, and its judgements likewise."""
    judging = {(each.agent, each.condition, each.judge): each.cost for each in judged}
    usd = 0.0
    for arm in arms:
        cost = totals[arm.agent, arm.condition].cost
        if arm.planned is None or not arm.finished or cost.usd is None or cost.unknown:
            return None
        usd += cost.usd / arm.finished * arm.planned
        answered = arm.planned * (1 - arm.failed / arm.finished)
        for judge in manifest.judges if answered else ():
            scores = counts.scores[arm.agent, arm.condition, judge]
            # A judge without a judgement was never asked, as no sample has a golden answer that it needs.
            cost = judging.get((arm.agent, arm.condition, judge), Cost(0.0))
            if not scores or cost.usd is None or cost.unknown:
                return None
            each = sum(entry.repetitions for entry in manifest.scorers if entry.judge == judge)
            usd += cost.usd / scores * each * answered
    return usd
