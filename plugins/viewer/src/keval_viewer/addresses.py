"""The URLs of runs and of what is in them."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from keval import Run

__all__ = ["RUN", "evaluation_url", "raw_url", "run_url", "sample_url", "trial_url"]

RUN = "/runs/{evaluation}/{run}"
"""The path of a run as a route."""


def evaluation_url(run: Run) -> str:
    """Return the URL of the runs of the run's evaluation."""
    return f"/?{urlencode({'evaluation': run.path.parent.name})}"


def run_url(run: Run, place: str = "") -> str:
    """Return the URL of a run, or of a place in it, such as `/trials`."""
    return f"/runs/{_part(run.path.parent.name)}/{_part(run.path.name)}{place}"


def trial_url(run: Run, trial: str) -> str:
    """Return the URL of a trial by its id."""
    return run_url(run, f"/trials/{_part(trial)}")


def sample_url(run: Run, sample: str) -> str:
    """Return the URL of a sample by its id."""
    return run_url(run, f"/samples/{_part(sample)}")


def raw_url(run: Run, kind: str, trial: str) -> str:
    """Return the URL of what the run has of a trial: its record (`trials`) or its first model request (`requests`)."""
    return run_url(run, f"/raw/{kind}/{_part(trial)}")


def _part(text: str) -> str:
    """Return a text as one part of a path; a browser would take `.` and `..` for other folders, however written."""
    return quote(text.encode("utf-8", "replace"), safe="")
