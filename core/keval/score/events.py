"""Scores as live events."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from keval.live import LiveEvent
from keval.records import Trial
from keval.scores import ScoreLine

__all__ = ["score_events"]


def score_events(trial: Trial, lines: Sequence[ScoreLine]) -> Iterator[LiveEvent]:
    """Yield the live event of each score of a trial."""
    for line in lines:
        data = {
            "metric": line.metric,
            "judge": line.judge,
            "repetition": line.judgement.repetition if line.judgement else 1,
            "value": line.score.value,
            "neutral": line.score.neutral,
            "reason": line.score.reason,
            "details": line.score.details,
            "failure": line.failure and line.failure.kind,
        }
        yield LiveEvent("scored", trial.id, len(trial.attempts) + 1, time.time(), data)
