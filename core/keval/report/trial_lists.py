"""Lists of trials: those that failed, scores without a value, and those that scored worst."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import attrs
import orjson
from rich.console import Console
from rich.text import Text

from keval.errors import RunError, suggestion
from keval.records.manifest import ScorerEntry
from keval.records.scores import Score, ScoreLine
from keval.records.trial import Trial
from keval.report.console import safe
from keval.report.transcripts import Bands, verdict, whose
from keval.store.lines import score_line
from keval.store.run import Run


def describe_failed(trials: Iterable[Trial], limit: int | None) -> Iterator[dict[str, Any]]:
    """Yield the failed trials as plain data: which they are, their failure, and how many attempts failed before it."""
    for trial in islice(_failed(trials), limit):
        yield {
            "trial": trial.id,
            "sample": trial.sample.id,
            "agent": trial.agent,
            "condition": trial.condition,
            "repetition": trial.repetition,
            "failure": attrs.asdict(trial.failure) if trial.failure else None,
            "attempts_before": len(trial.attempts),
        }


def print_failed(trials: Iterable[Trial], limit: int | None, console: Console) -> None:
    """Print the failed trials, each with its message."""
    shown = 0
    for trial in islice(_failed(trials), limit):
        shown += 1
        assert trial.failure is not None  # noqa: S101 - only failed trials are listed
        console.print(safe(trial.id, "bold"), soft_wrap=True)
        tried = f" after {len(trial.attempts)} attempts that were given up" if trial.attempts else ""
        kind = f"  {trial.failure.stage}: {trial.failure.kind}{tried}: "
        console.print(Text.assemble((kind, "red"), safe(trial.failure.message)))
    console.print(_count(shown, "failed trials", limit))


def describe_unscored(scores: Iterable[ScoreLine], limit: int | None) -> Iterator[dict[str, Any]]:
    """Yield the scores without a value, as scores.jsonl has them."""
    for line in islice(_unscored(scores), limit):
        yield orjson.loads(score_line(line))


def print_unscored(scores: Iterable[ScoreLine], limit: int | None, console: Console) -> None:
    """Print the scores without a value, each with its reason."""
    shown = 0
    for line in islice(_unscored(scores), limit):
        shown += 1
        reason = f"failed, {line.failure.kind}: {line.failure.message}" if line.failure else line.score.reason
        console.print(Text.assemble(safe(line.trial, "bold"), "  ", safe(whose(line))), soft_wrap=True)
        console.print(safe(f"  {reason}", "red" if line.failure else "dim"))
    console.print(_count(shown, "scores without a value", limit))


def _failed(trials: Iterable[Trial]) -> Iterator[Trial]:
    return (trial for trial in trials if trial.failure is not None)


def _unscored(scores: Iterable[ScoreLine]) -> Iterator[ScoreLine]:
    return (line for line in scores if line.score.value is None)


def _count(shown: int, what: str, limit: int | None) -> Text:
    more = "; there may be more, as --limit says so many" if shown == limit else ""
    return Text(f"{shown or 'no'} {what}{more}.", "dim")


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
