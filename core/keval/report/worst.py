"""The trials of a run that scored worst by a metric."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import orjson
from rich.console import Console
from rich.text import Text

from keval.errors import RunError, suggestion
from keval.manifest import ScorerEntry
from keval.report.console import safe
from keval.report.transcripts import Bands, verdict, whose
from keval.scores import Score, ScoreLine
from keval.store.jsonl import score_line
from keval.store.run import Run

__all__ = ["RankedTrial", "Worst", "describe_worst", "print_worst", "worst_trials"]


@attrs.frozen
class RankedTrial:
    """A trial with its value by a metric, the mean over judges and their repetitions, and the scores behind it."""

    trial: str
    value: float
    scores: tuple[ScoreLine, ...]


@attrs.frozen
class Worst:
    """The trials with the worst scores by a metric, worst first.

    `scored` counts the trials that have a value; `neutral` and `unscored` count scores that give none.
    """

    metric: str
    judges: tuple[str, ...]
    better: str
    scored: int
    neutral: int
    unscored: int
    trials: tuple[RankedTrial, ...]


def worst_trials(run: Run, name: str, limit: int) -> Worst:
    """Find the `limit` trials that scored worst by a metric, or by a rubric: `name`, or `name@judge` for one judge.

    The vendor may be left out. Neutral scores are, too, unless the run counts them. Trials with the same value stay in
    the order of their scores. The scores are read twice, and only ids and sums are kept.

    Raises RunError: the run has no such metric, or several by that name.
    """
    scorers = _named(run.manifest.scorers, name)
    wanted = {entry.scorer for entry in scorers}
    count_neutral = run.manifest.neutral == "count"
    sums: dict[str, tuple[float, int]] = {}
    neutral = unscored = 0
    for line in run.scores():
        if line.scorer not in wanted:
            continue
        if line.score.value is None:
            unscored += 1
        elif line.score.neutral and not count_neutral:
            neutral += 1
        else:
            total, times = sums.get(line.trial, (0.0, 0))
            sums[line.trial] = total + line.score.value, times + 1
    sign = -1 if scorers[0].scale.better == "lower" else 1
    chosen = heapq.nsmallest(limit, sums, key=lambda trial: sign * sums[trial][0] / sums[trial][1])
    behind: dict[str, list[ScoreLine]] = {trial: [] for trial in chosen}
    for line in run.scores():
        if line.scorer in wanted and line.trial in behind:
            behind[line.trial].append(line)
    return Worst(
        metric=scorers[0].metric,
        judges=tuple(entry.judge for entry in scorers if entry.judge is not None),
        better=scorers[0].scale.better,
        scored=len(sums),
        neutral=neutral,
        unscored=unscored,
        trials=tuple(RankedTrial(trial, sums[trial][0] / sums[trial][1], tuple(behind[trial])) for trial in chosen),
    )


def describe_worst(worst: Worst) -> dict[str, Any]:
    """Describe the worst trials as plain data, with their scores as scores.jsonl has them."""
    ranked = [
        {"trial": each.trial, "value": each.value, "scores": [orjson.loads(score_line(line)) for line in each.scores]}
        for each in worst.trials
    ]
    return {**attrs.asdict(worst, recurse=False), "judges": list(worst.judges), "trials": ranked}


def print_worst(worst: Worst, bands: Bands, console: Console) -> None:
    """Print the worst trials: each with its value, and the reasons of its scores below."""
    named = bands.get(worst.metric, {})
    found = [verdict(Score(each.value), named) for each in worst.trials]
    width = max(map(len, found), default=0)
    for value, each in zip(found, worst.trials, strict=True):
        console.print(Text.assemble((f"{value:<{width}}  ", "bold"), safe(each.trial)), soft_wrap=True)
        for line in each.scores:
            by = f"{whose(line)}, {verdict(line.score, named)}: " if len(each.scores) > 1 else ""
            console.print(safe(f"  {by}{line.score.reason}", "dim"))
    judges = f" by {', '.join(worst.judges)}" if worst.judges else ""
    told = f"{len(worst.trials)} of {worst.scored} trials with a value for {worst.metric}{judges}, worst first"
    left = [f"{count} {what}" for what, count in (("neutral", worst.neutral), ("unscored", worst.unscored)) if count]
    console.print(safe(f"{told}; left out: {' and '.join(left)} scores." if left else f"{told}.", "dim"))


def _named(scorers: Sequence[ScorerEntry], name: str) -> list[ScorerEntry]:
    """Return the scorers of a metric, one for each judge of a rubric."""
    wanted, _, judge = name.partition("@")
    metrics = dict.fromkeys(entry.metric for entry in scorers)
    found = [wanted] if wanted in metrics else [metric for metric in metrics if metric.rpartition("/")[2] == wanted]
    if len(found) > 1:
        raise RunError(f"{wanted!r} is the name of {len(found)} metrics; choose one of {', '.join(found)}")
    if not found:
        raise RunError(f"the run has no metric {wanted!r}{_nearest(wanted, metrics)}")
    matching = [entry for entry in scorers if entry.metric == found[0] and judge in ("", entry.judge)]
    if not matching:
        judges = [entry.judge for entry in scorers if entry.metric == found[0] and entry.judge]
        told = f"; it is judged by {', '.join(judges)}" if judges else "; it is no rubric, so leave @ away"
        raise RunError(f"no judge {judge!r} grades {found[0]}{told}")
    return matching


def _nearest(wanted: str, metrics: Iterable[str]) -> str:
    """Return a hint at the metric that may have been meant, with or without its vendor, or else at all of them."""
    hint = suggestion(wanted, metrics) or suggestion(wanted, [metric.rpartition("/")[2] for metric in metrics])
    if not hint and (part := next((metric for metric in metrics if wanted in metric), None)):
        hint = f"; did you mean {part!r}?"
    return hint or f"; it has {', '.join(metrics) or 'none'}"
