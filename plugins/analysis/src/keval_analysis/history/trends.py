"""The means of an evaluation's runs by one metric, and what each run changed against the one before it."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

import attrs

from keval.records.scores import Scale, Scored
from keval_analysis.composition import PartChange, changed_parts
from keval_analysis.findings.effects import OfArm
from keval_analysis.findings.summary import Cost, ScorerScale
from keval_analysis.scorer_names import named_scorers

Step: TypeAlias = Literal["higher", "lower"]
_VERDICTS = "SELECT verdict FROM gates WHERE run = ?"


@attrs.frozen
class TrendSeries(OfArm):
    """An arm whose means are followed."""


@attrs.frozen
class TrendPoint:
    """A mean in one run, over `n` samples, with its 95 % interval.

    `step` says that the interval lies above or below that of the run before, and that both asked the same questions. It
    is a cautious sign: two intervals of one width miss each other by chance in 6 of 1,000 cases, and of any widths in
    50 at most. Where they overlap, a comparison question by question may show a change all the same.
    """

    n: int
    value: float | None
    ci_low: float | None
    ci_high: float | None
    step: Step | None = None

    def stepped_from(self, before: TrendPoint | None) -> TrendPoint:
        """Return the point with its step from an earlier one."""
        ours, theirs = (self.ci_low, self.ci_high), (before.ci_low, before.ci_high) if before else (None, None)
        if None in ours or None in theirs:
            return self
        step: Step | None = "higher" if ours[0] > theirs[1] else "lower" if ours[1] < theirs[0] else None  # type: ignore[operator]
        return attrs.evolve(self, step=step)


@attrs.frozen
class TrendRun:
    """A run of a trend: what `keval list` says of it, its points, and what it changed.

    `run` is its folder below the results directory. `before` is the run that it is held against: the latest earlier one
    that asked the same questions, or else the latest earlier one; `None` for the first. `changes` are the parts in
    which it differs from that one.
    """

    run: str
    id: str
    started: str | None
    samples: int | None
    repetitions: int
    trials: int
    failed: int
    simulated: tuple[str, ...]
    replay_of: str | None
    note: str | None
    cost: Cost
    gates: Mapping[str, int]
    before: str | None
    asks_the_same: bool
    changes: tuple[PartChange, ...]
    points: Mapping[TrendSeries, TrendPoint]


@attrs.frozen
class Trend(Scored):
    """The runs of an evaluation, newest first, with a point of each series in each run that has one.

    `others` are the scorers that may be chosen besides. `unshown` counts the older runs beyond the limit.
    """

    evaluation: str
    metric: str
    judge: str | None
    scale: Scale
    others: tuple[ScorerScale, ...]
    series: tuple[TrendSeries, ...]
    runs: tuple[TrendRun, ...]
    unshown: int = 0


@attrs.frozen
class TrendChoice:
    """Which trend is asked for: the metric by its name, arms by their names, and how many runs."""

    metric: str | None = None
    agents: Sequence[str] = ()
    conditions: Sequence[str] = ()
    limit: int | None = None

    def has(self, series: TrendSeries, ablated: Iterable[str]) -> bool:
        """Return whether a series is chosen; conditions that `ablate` added are if they are named."""
        named = series.condition in self.conditions if self.conditions else series.condition not in ablated
        return named and series.agent in (self.agents or (series.agent,))


def evaluations_of(database: sqlite3.Connection) -> list[str]:
    """Return the names of the evaluations that have finished runs, that of the newest run first."""
    # The id of a run begins with the time of its start.
    return [name for (name,) in database.execute("SELECT evaluation FROM runs GROUP BY 1 ORDER BY max(id) DESC")]


def scorers_of(database: sqlite3.Connection, evaluation: str) -> list[ScorerScale]:
    """Return the scorers of an evaluation's runs, each as in the newest run that has it.

    Those of the newest run come first: primary ones, and last those without a mean, or that say something of agents
    whatever these answer.
    """
    rows = database.execute(
        """
        SELECT *, EXISTS (
            SELECT 1 FROM scores WHERE scores.run = scorers.run AND scores.metric = scorers.metric
            AND scores.judge IS scorers.judge AND mean IS NOT NULL
        ) AS has_mean
        FROM scorers JOIN runs USING (run) WHERE evaluation = ? ORDER BY id DESC, position
        """,
        (evaluation,),
    ).fetchall()
    found: dict[tuple[str, str | None], sqlite3.Row] = {}
    for row in rows:
        found.setdefault((row["metric"], row["judge"]), row)

    def rank(row: sqlite3.Row) -> tuple[bool, bool, bool]:
        return row["run"] != rows[0]["run"], not row["is_primary"], bool(row["is_property"] or not row["has_mean"])

    return [
        ScorerScale(*scorer, Scale(row["low"], row["high"], row["better"], row["unit"]))
        for scorer, row in sorted(found.items(), key=lambda each: rank(each[1]))
    ]


def trend_of(database: sqlite3.Connection, evaluation: str, choice: TrendChoice) -> Trend | None:
    """Return the trend of an evaluation; `None` without a run, or without the metric.

    Raises RunError: no evaluation has a metric of this name.
    """
    scorers = scorers_of(database, evaluation)
    chosen = [*scorers]
    if choice.metric is not None:
        every = [entry for name in evaluations_of(database) for entry in scorers_of(database, name)]
        named = {entry.scorer for entry in named_scorers(every, choice.metric)}
        chosen = [entry for entry in scorers if entry.scorer in named]
    rows = _runs(database, evaluation)
    if not rows or not chosen:
        return None
    shown, unshown = rows[: choice.limit], len(rows[choice.limit :]) if choice.limit else 0
    scorer = chosen[0]
    before = _befores(rows)
    points = _points(database, evaluation, scorer)
    made_of = _parts(database, {name for row in shown for name in (row["run"], before[row["run"]][0]) if name})
    ablated = {name for (name,) in database.execute("SELECT condition FROM arms WHERE ablation_of IS NOT NULL")}
    series = dict.fromkeys(each for row in shown for each in points.get(row["run"], ()) if choice.has(each, ablated))
    agents = [*dict.fromkeys(each.agent for each in series)]

    def run(row: sqlite3.Row) -> TrendRun:
        other, asks_the_same = before[row["run"]]
        earlier = points.get(other or "", {}) if asks_the_same else {}
        found = {each: point for each, point in points.get(row["run"], {}).items() if each in series}
        return TrendRun(
            **{
                name: row[name]
                for name in ("run", "id", "started", "samples", "repetitions", "trials", "failed", "note")
            },
            simulated=tuple(json.loads(row["simulated"])),
            replay_of=row["replay_of"],
            cost=Cost(row["usd"], row["usd_unknown"]),
            gates=Counter(verdict for (verdict,) in database.execute(_VERDICTS, (row["run"],))),
            before=other,
            asks_the_same=asks_the_same,
            changes=tuple(changed_parts(made_of[row["run"]], made_of[other])) if other else (),
            points={each: point.stepped_from(earlier.get(each)) for each, point in found.items()},
        )

    return Trend(
        evaluation,
        *scorer.scorer,
        scale=scorer.scale,
        others=tuple(entry for entry in scorers if entry is not scorer),
        series=tuple(sorted(series, key=lambda each: agents.index(each.agent))),
        runs=tuple(map(run, shown)),
        unshown=unshown,
    )


def run_before(database: sqlite3.Connection, run: str) -> str | None:
    """Return the run that a run is held against; `None` if it is the first, or has not been finished."""
    found = database.execute("SELECT evaluation FROM runs WHERE run = ?", (run,)).fetchone()
    return _befores(_runs(database, found["evaluation"]))[run][0] if found else None


def _runs(database: sqlite3.Connection, evaluation: str) -> list[sqlite3.Row]:
    """Return the runs of an evaluation, newest first."""
    return database.execute("SELECT * FROM runs WHERE evaluation = ? ORDER BY id DESC, run", (evaluation,)).fetchall()


def _befores(rows: Sequence[sqlite3.Row]) -> dict[str, tuple[str | None, bool]]:
    """Return for each run, newest first, the run that it is held against, and whether that asked the same questions."""
    latest: dict[object, str] = {}
    previous: str | None = None
    found: dict[str, tuple[str | None, bool]] = {}
    # From the oldest run on, so that `latest` has earlier ones only.
    for row in reversed(rows):
        asked, is_replay = (row["dataset_sha256"], row["samples"], row["selected"]), row["replay_of"] is not None
        # What a recording answers is held against another replay of it, or the recording; no live run is against that.
        same = latest.get((asked, is_replay)) or (latest.get((asked, False)) if is_replay else None)
        # Without a digest, nobody knows what was asked.
        same = same if row["dataset_sha256"] else None
        found[row["run"]] = (same or previous, same is not None)
        latest[asked, is_replay] = previous = row["run"]
    return found


def _points(
    database: sqlite3.Connection, evaluation: str, scorer: ScorerScale
) -> dict[str, dict[TrendSeries, TrendPoint]]:
    """Return the points of the runs that have the scorer on its scale, by run and series."""
    rows = database.execute(
        """
        SELECT scores.* FROM scores JOIN runs USING (run) JOIN scorers USING (run, metric)
        WHERE evaluation = :evaluation AND metric = :metric AND scores.judge IS :judge AND scorers.judge IS :judge
        AND (low, high, better) = (:low, :high, :better) ORDER BY scores.rowid
        """,
        {"evaluation": evaluation, "metric": scorer.metric, "judge": scorer.judge, **attrs.asdict(scorer.scale)},
    )
    points: dict[str, dict[TrendSeries, TrendPoint]] = {}
    for row in rows:
        point = TrendPoint(row["n"], row["mean"], row["ci_low"], row["ci_high"])
        points.setdefault(row["run"], {})[TrendSeries(row["agent"], row["condition"])] = point
    return points


def _parts(database: sqlite3.Connection, runs: Iterable[str]) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Return what runs were made of; all have the same kinds of parts, the most important first."""
    kinds = database.execute("SELECT kind FROM parts GROUP BY kind ORDER BY min(position)").fetchall()
    found: dict[str, dict[str, dict[str, str]]] = {run: {kind: {} for (kind,) in kinds} for run in runs}
    for run, of in found.items():
        for kind, name, value in database.execute("SELECT kind, name, value FROM parts WHERE run = ?", (run,)):
            of[kind][name] = value
    return found
