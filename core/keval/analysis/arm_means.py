"""The mean of each metric in each arm with the standard deviation over its trials, and the arms ranked by it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from keval.analysis.stats.score_sums import Cell
from keval.records.effects import better_share
from keval.records.manifest import Manifest, ScorerEntry
from keval.records.scores import Scored, Scorer
from keval.store.run import Run


@attrs.frozen
class ArmMean(Scored):
    """The scores of one arm by one scorer: their mean over `n` trials, and the sample standard deviation (n - 1).

    A trial that a judge graded several times counts once, by the mean of its gradings. `mean` is `None` without a
    score, and `sd` with fewer than two. Neutral scores are left out unless the run counts them.
    """

    agent: str
    condition: str
    metric: str
    judge: str | None
    n: int
    mean: float | None
    sd: float | None


@attrs.frozen
class RankedArm:
    """An arm with its rank, from 1 for the best, and the value that it is ranked by; `None` where it lacks a score."""

    agent: str
    condition: str
    rank: int | None
    value: float | None


@attrs.frozen
class Ranking:
    """The arms of a run, the best first, by the mean over the scorers `by`.

    `is_share` says that their scales differ, so that values are shares of the way to the better end of each scale;
    else they are in the scale of these scorers.
    """

    by: tuple[Scorer, ...]
    is_share: bool
    arms: tuple[RankedArm, ...]


def arm_means(run: Run) -> tuple[ArmMean, ...]:
    """Return the mean and standard deviation of each arm and scorer, arm by arm. Raises RunError."""
    manifest, positions = run.manifest, run.samples.positions
    arms = [(agent, condition) for agent in manifest.agents for condition in manifest.conditions]
    cells = {
        (arm, entry.scorer): Cell(entry, count_neutral=manifest.neutral == "count")
        for arm in arms
        for entry in manifest.scorers
    }
    for line in run.scores_as_made():
        if line.sample in positions:
            cells[(line.agent, line.condition), line.scorer].add(line, positions[line.sample])
    return tuple(_mean(*arm, scorer, cell) for (arm, scorer), cell in cells.items())


def _mean(agent: str, condition: str, scorer: Scorer, cell: Cell) -> ArmMean:
    found = cell.values()
    n = int(found.counts.sum())
    if not n:
        return ArmMean(agent, condition, *scorer, 0, None, None)
    mean = math.fsum(found.means * found.counts) / n
    # The squares around each question's mean, and those of these means around the mean of all.
    within = found.squares - found.counts * found.means**2
    between = found.counts * (found.means - mean) ** 2
    variance = max(0.0, math.fsum([*within, *between])) / (n - 1) if n > 1 else None
    return ArmMean(agent, condition, *scorer, n, mean, None if variance is None else math.sqrt(variance))


def ranking(manifest: Manifest, means: Sequence[ArmMean]) -> Ranking:
    """Rank the arms: by the primary metrics of the run, else by its judges' rubrics, else by all metrics.

    Metrics whose scale has no end are left out where scales differ. A rank says nothing about noise.
    """
    entries = _ranked_by(manifest)
    is_share = len({(entry.scale.low, entry.scale.high, entry.scale.better) for entry in entries}) > 1
    if is_share:
        entries = [entry for entry in entries if not math.isinf(entry.scale.high)]
    by_arm: dict[tuple[str, str], dict[Scorer, float]] = {}
    for each in means:
        found = by_arm.setdefault((each.agent, each.condition), {})
        if each.mean is not None:
            found[each.scorer] = each.mean
    values = {arm: _value(entries, found, is_share=is_share) for arm, found in by_arm.items()}
    is_lower = bool(entries) and not is_share and entries[0].scale.better == "lower"
    known = [value if is_lower else -value for value in values.values() if value is not None]
    ranked = []
    for (agent, condition), value in values.items():
        order = None if value is None else value if is_lower else -value
        rank = None if order is None else 1 + sum(other < order - 1e-9 for other in known)
        ranked.append(RankedArm(agent, condition, rank, value))
    ranked.sort(key=lambda arm: (arm.rank is None, arm.rank))
    return Ranking(tuple(entry.scorer for entry in entries), is_share, tuple(ranked))


def _ranked_by(manifest: Manifest) -> list[ScorerEntry]:
    """Return the scorers that arms are ranked by."""
    scorers = [*manifest.scorers]
    primary = [entry for entry in scorers if entry.metric in manifest.primary]
    return primary or [entry for entry in scorers if entry.judge is not None] or scorers


def _value(entries: Sequence[ScorerEntry], found: dict[Scorer, float], *, is_share: bool) -> float | None:
    """Return what an arm is ranked by; `None` if it lacks the score of one of the scorers."""
    if not entries or any(entry.scorer not in found for entry in entries):
        return None
    if not is_share:
        return math.fsum(found[entry.scorer] for entry in entries) / len(entries)
    shares = []
    for entry in entries:
        scale = entry.scale
        worst = scale.high if scale.better == "lower" else scale.low
        shares.append(better_share(found[entry.scorer] - worst, scale) or 0.0)
    return math.fsum(shares) / len(shares)
