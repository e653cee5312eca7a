"""Lists of what went wrong in a run: the trials that failed, and the scores without a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import attrs
import orjson
from rich.console import Console
from rich.text import Text

from keval.records import Trial
from keval.report.console import safe
from keval.report.transcripts import whose
from keval.scores import ScoreLine
from keval.store.jsonl import score_line

__all__ = ["describe_failed", "describe_unscored", "print_failed", "print_unscored"]


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
