"""Metrics and rubrics by the names that a user gives them: `brevity`, `acme/brevity`, `tone@judge`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from keval.errors import RunError, suggestion
from keval.records.scores import Scored

S = TypeVar("S", bound=Scored)


def named_scorers(scorers: Sequence[S], name: str) -> list[S]:
    """Return the scorers of a metric, one for each judge of a rubric, or that of one judge: `name@judge`.

    The vendor may be left out. Raises RunError: there is no such metric, or several by that name.
    """
    metrics = dict.fromkeys(entry.metric for entry in scorers)

    def called(wanted: str) -> list[str]:
        return [wanted] if wanted in metrics else [metric for metric in metrics if metric.rpartition("/")[2] == wanted]

    wanted, at, judge = name.rpartition("@")
    # A check may have any sign in its name.
    if not at or called(name):
        wanted, judge = name, ""
    found = called(wanted)
    if len(found) > 1:
        raise RunError(f"{wanted!r} is the name of {len(found)} metrics; choose one of {', '.join(found)}")
    if not found:
        raise RunError(f"there is no metric {wanted!r}{_nearest(wanted, metrics)}")
    matching = [entry for entry in scorers if entry.metric == found[0] and judge in ("", entry.judge)]
    if not matching:
        judges = [entry.judge for entry in scorers if entry.metric == found[0] and entry.judge]
        told = f"; it is judged by {', '.join(judges)}" if judges else "; it is not a rubric, so remove the @"
        raise RunError(f"no judge {judge!r} grades {found[0]}{told}")
    return matching


def _nearest(wanted: str, metrics: Iterable[str]) -> str:
    """Return a hint at the metric that may have been meant, with or without its vendor, or else at all of them."""
    # Also by the last part alone, as a vendor may be left out.
    hint = suggestion(wanted, metrics) or suggestion(wanted, [metric.rpartition("/")[2] for metric in metrics])
    if not hint and (part := next((metric for metric in metrics if wanted in metric), None)):
        hint = f"; did you mean {part!r}?"
    return hint or f"; there are {', '.join(metrics) or 'none'}"
