"""A/A: the repetitions of each arm held against each other, as if they were two arms that differ in nothing."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

import attrs
import numpy as np
import numpy.typing as npt

from keval import Run
from keval.errors import ConfigError
from keval.records.scores import Scorer
from keval_analysis.findings.effects import SURE
from keval_analysis.power import Pilot, PowerTarget, plan_power
from keval_analysis.stats.intervals import Values, mean_intervals
from keval_analysis.stats.paired import Differences, Rule
from keval_instrument.check_folder import Material
from keval_instrument.findings import FEWEST, Defect, Examined, Figure, gradings_of, scorer_name, sources_of

FIGURES = {
    "false_verdicts": "How often an arm is called better or worse than itself, its repetitions split in two at random.",
    "flips": "How often one of two repetitions of an arm passes and the other does not.",
    "visible": "The smallest difference that the evaluation, as it is configured, shows with a power of 80 %.",
}

_SPLITS, _FEWEST_SPLITS = 200, 20
_MOST_VALUES = 4_000_000
"""Scores in all splits together; of a run so large that there would be more, there are fewer splits."""
_AT_ONCE = 2_000
"""Rows of differences for which p is computed at a time."""

_DRIFT = 0.01
"""Repetitions that chance alone makes as unlike as this less often are a defect."""

_TOO_FEW = f"fewer than {FEWEST} questions have two scored repetitions in an arm"

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
_Arm = tuple[str, str]


def examine(material: Material) -> Examined:
    """Hold repetitions against each other, and say which difference the planned evaluation can see.

    Raises RunError: the run is damaged.
    """
    run = material.asked
    if run is None:
        return Examined("repeats", reason=material.reasons.get("asked", "there is no run of the evaluation"))
    repeated = _Repeated.of(run)
    figures, defects = repeated.verdicts()
    alike = _always_alike(run)
    return Examined(
        "repeats", (*figures, *map(repeated.flips, repeated.tables), *_visible(material, run)), (*alike, *defects)
    )


@attrs.frozen(eq=False)
class Splits:
    """What a scorer finds between two halves of the repetitions of each arm, in many splits.

    `p` is by split and arm, NaN where there is none: nothing differs, or fewer than two questions have both halves,
    of which `compared` has the largest number. Splits with the same digest in `patterns` have the same differences, up
    to which half is called the first. The first split is no random one: it has the first repetitions in one half.
    """

    p: FloatArray
    patterns: Sequence[int]
    compared: int


@attrs.frozen(eq=False)
class _Repeated:
    """The scores of a run by scorer, as arms × samples × repetitions, with NaN where there is none.

    `sources` has for each sample the number of its source.
    """

    run: Run
    arms: Sequence[_Arm]
    sources: IntArray
    tables: Mapping[Scorer, FloatArray]

    @classmethod
    def of(cls, run: Run) -> _Repeated:
        found, sources = gradings_of(run), sources_of(run)
        arms = [(agent, condition) for agent in run.manifest.agents for condition in run.manifest.conditions]
        rows, columns = ({key: place for place, key in enumerate(keys)} for keys in (arms, sources))
        most = max((answer.repetition for given in found.values() for answer in given), default=1)
        tables = {}
        for scorer, given in found.items():
            table = tables[scorer] = np.full((len(arms), len(sources), most), np.nan)
            for answer, values in given.items():
                table[rows[answer[:2]], columns[answer.sample], answer.repetition - 1] = fmean(values)
        return cls(run, arms, np.array([*sources.values()], np.int64), tables)

    def verdicts(self) -> tuple[list[Figure], list[Defect]]:
        """Return how often a verdict is false, by scorer and by family of effects, and what differs by repetition.

        The repetitions of each question are split in two halves at random, of the same number, and one half is held
        against the other by the rule that gives the verdicts of effects; p is adjusted by Holm over all arms, and for a
        family over its scorers, too. So the rate is that of a comparison of two arms with half the repetitions.

        The splits are of the same answers. The rate tells whether the rule keeps its promise for scores that scatter as
        these, and the interval how well the rate over all splits of these answers is known from those that were drawn;
        equal splits count once. Neither tells what would be with other questions, nor what changes between two runs.
        """
        # NumPy takes no negative seed.
        rng = np.random.default_rng(self.run.manifest.seed % 2**64)
        shape = next((table.shape for table in self.tables.values()), (0, 0, 1))
        # Fewer splits of a large run, so that memory stays bounded.
        many = max(_FEWEST_SPLITS, min(_SPLITS, _MOST_VALUES // max(1, math.prod(shape))))
        # Sorting random numbers shuffles the repetitions of each question by itself.
        order = np.argsort(rng.random((many + 1, *shape)), axis=-1)
        order[0] = np.arange(shape[-1])
        scales = {entry.scorer: entry.scale for entry in self.run.manifest.scorers}
        splits = {
            scorer: split_in_halves(table, order, self.sources, scales[scorer].high - scales[scorer].low)
            for scorer, table in self.tables.items()
        }
        groups: dict[tuple[str, str], list[Scorer]] = {("scorer", scorer_name(scorer)): [scorer] for scorer in splits}
        primary = self.run.manifest.primary
        for scorer in splits:
            family = ("primary" if scorer[0] in primary else "exploratory") if primary else "all"
            groups.setdefault(("family", family), []).append(scorer)
        figures = [false_verdicts(dict([of]), [splits[scorer] for scorer in some]) for of, some in groups.items()]
        return figures, [*self._drift(splits)]

    def _drift(self, splits: Mapping[Scorer, Splits]) -> Iterator[Defect]:
        """Yield the arm whose first repetitions are scored other than its last ones, if that is no chance."""
        found = [
            (float(p), scorer, arm)
            for scorer, split in splits.items()
            for p, arm in zip(split.p[0], self.arms, strict=True)
            if not np.isnan(p)
        ]
        if not found:
            return
        least, scorer, (agent, condition) = min(found, key=lambda each: each[0])
        # Bonferroni's bound, as the smallest p of all is looked at.
        if (adjusted := least * len(found)) <= _DRIFT:
            yield Defect(
                f"{scorer_name(scorer)}: the first half of the repetitions of {agent!r} under {condition!r} is scored"
                f" other than the second (p = {adjusted:.2g}, adjusted), so something changes while the run goes on;"
                " look for state that a server, an agent or a judge keeps from trial to trial"
            )

    def flips(self, scorer: Scorer) -> Figure:
        """Return how often one of two repetitions of an arm passes and the other does not."""
        entry = next(entry for entry in self.run.manifest.scorers if entry.scorer == scorer)
        of, threshold, table = {"scorer": scorer_name(scorer)}, entry.pass_threshold, self.tables[scorer]
        if threshold is None:
            return Figure("flips", of, None, 0, reason="its scale has no end; set its value in `thresholds:`")
        sign = -1.0 if entry.scale.better == "lower" else 1.0
        # A mean of gradings may come out a hair beside the threshold.
        passed = (sign * table >= sign * threshold - 1e-9).sum(axis=-1)
        many = (~np.isnan(table)).sum(axis=-1)
        arms, samples = np.nonzero(many > 1)
        if (found := len({*samples.tolist()})) < FEWEST:
            return Figure("flips", of, None, found, reason=_TOO_FEW)
        n, c = many[arms, samples], passed[arms, samples]
        rates = 2.0 * c * (n - c) / (n * (n - 1))
        ends = mean_intervals([Values(rates, self.sources[samples].tolist(), 0.0, 1.0)])[0]
        low, high = (ends.low, ends.high) if ends else (None, None)
        return Figure("flips", of, float(rates.mean()), found, low, high)


def split_in_halves(table: FloatArray, order: IntArray, sources: IntArray, span: float) -> Splits:
    """Split scores (arms × samples × repetitions, on a scale as wide as `span`) in each `order` of repetitions.

    `order` has one more axis, which comes first, and `sources` has the number of each sample's source.
    """
    half = order.shape[-1] // 2
    shuffled = np.take_along_axis(np.broadcast_to(table, order.shape), order, axis=-1)
    differences = _mean(shuffled[..., :half]) - _mean(shuffled[..., half : 2 * half])
    known = ~np.isnan(differences)
    rows = [
        Differences(row[there], sources[there], span)
        for arms, seen in zip(differences, known, strict=True)
        for row, there in zip(arms, seen, strict=True)
    ]
    parts = [Rule.on(rows[first : first + _AT_ONCE]).p() for first in range(0, len(rows), _AT_ONCE)]
    p = np.concatenate(parts).reshape(known.shape[:2])
    plain = np.nan_to_num(differences).round(9)
    p[~plain.any(axis=-1)] = np.nan  # as of effects: what is 0 on every question can be no false positive
    first = np.take_along_axis(plain, (plain != 0).argmax(axis=-1, keepdims=True), axis=-1)
    # Adding 0 makes 0.0 of -0.0, whose bytes are others.
    patterns = [hash(split.tobytes()) for split in plain * np.sign(first) + 0.0]
    return Splits(p, patterns, int(known.sum(axis=-1).max(initial=0)))


def _mean(values: FloatArray) -> FloatArray:
    """Return means over the last axis of what is known; NaN where nothing is."""
    known = (~np.isnan(values)).sum(axis=-1)
    # `np.nanmean` warns where nothing is known.
    return np.asarray(np.where(known > 0, np.nansum(values, axis=-1), np.nan) / np.maximum(known, 1))


def false_verdicts(of: Mapping[str, str], splits: Sequence[Splits]) -> Figure:
    """Return in which share of the random splits any effect has a verdict: the smallest p decides, as Holm's first."""
    if (compared := max(each.compared for each in splits)) < FEWEST:
        return Figure("false_verdicts", of, None, compared, reason=_TOO_FEW)
    p = np.concatenate([each.p for each in splits], axis=1)
    least = np.min(np.where(np.isnan(p), 1.0, p), axis=1)
    false = (least * (~np.isnan(p)).sum(axis=1) <= SURE) & ~np.isnan(p).all(axis=1)
    distinct = {pattern: split for split, pattern in enumerate(zip(*(each.patterns for each in splits), strict=True))}
    # Without the first split, which is no random one.
    places = [split for split in distinct.values() if split]
    ends = mean_intervals([Values(false[places].astype(np.float64), None, 0.0, 1.0)])[0]
    low, high = (ends.low, ends.high) if ends else (None, None)
    return Figure("false_verdicts", of, float(false[places].mean()), len(places), low, high)


def _always_alike(run: Run) -> Iterator[Defect]:
    """Yield the arms that answered every question with the same text in all repetitions."""
    answers: dict[_Arm, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for trial in run.trials():
        if trial.failure is None:
            # Hashes, as answers may be long.
            answers[trial.agent, trial.condition][trial.sample.id].append(hash(trial.output))
    alike = [
        f"{agent!r} under {condition!r}"
        for (agent, condition), by_sample in answers.items()
        if any(len(said) > 1 for said in by_sample.values()) and all(len({*said}) == 1 for said in by_sample.values())
    ]
    if alike:
        yield Defect(
            f"all repetitions have the same answers, word for word: {', '.join(alike)}; so A/A shows nothing of the"
            " chance between runs of these arms, as with a simulated model; let the model sample its answers"
            " (a temperature above 0), or spend nothing on repetitions"
        )


def _visible(material: Material, run: Run) -> Iterator[Figure]:
    """Yield by scorer the smallest difference that the planned evaluation, or else the run itself, shows."""
    if material.plan is None:
        effects = run.summary().effects
        for entry in run.manifest.scorers:
            seen = [(effect.mde, effect.n) for effect in effects if effect.scorer == entry.scorer and effect.mde]
            value, n = max(seen, default=(None, 0))
            why = _UNSEEN if seen else "no two arms have scores that differ on two questions"
            yield _points(entry.scorer, value if value and value < entry.scale.high - entry.scale.low else None, n, why)
        return
    try:
        metrics = plan_power(material.plan, PowerTarget(), Pilot.of(run)).metrics
    except ConfigError as error:
        for entry in run.manifest.scorers:
            yield _points(entry.scorer, None, 0, str(error))
        return
    for each in metrics:
        yield _points((each.metric, each.judge), each.detectable, each.pilot_n or 0, each.reason or _UNSEEN)


_UNSEEN = "no difference within its scale, at so few questions"


def _points(scorer: Scorer, value: float | None, n: int, why: str) -> Figure:
    reason = why if value is None else None
    return Figure("visible", {"scorer": scorer_name(scorer)}, value, n, reason=reason, unit="points")
