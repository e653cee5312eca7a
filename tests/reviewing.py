"""Reviews for tests: what a person says of answers of a run."""

from __future__ import annotations

from typing import Any

from keval import Run
from keval_analysis.findings.reviews import Review, answer_digest

__all__ = ["level", "review"]


def review(run: Run, trial: str, reviewer: str = "Ann", **said: Any) -> Review:
    """What a person says of a trial's answer as it is now."""
    kind = next(name for name in ("level", "note", "skip") if name in said)
    return Review(
        **{
            "trial": trial,
            "answer": answer_digest(run.trial(trial)),
            "reviewer": reviewer,
            "at": "2026-11-23T08:00:00Z",
            "kind": kind,
            **said,
        }
    )


def level(run: Run, trial: str, value: int | None, reviewer: str = "Ann", **more: Any) -> Review:
    """A level by the one rubric of a run; `None` withdraws it."""
    ((digest, rubric),) = run.manifest.rubrics.items()
    return review(run, trial, reviewer, level=value, metric=rubric.name, rubric=digest, **more)
