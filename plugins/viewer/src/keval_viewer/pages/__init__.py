"""The pages, a module each, with its routes and with templates of the same name."""

from __future__ import annotations

from keval_viewer.pages import compare, play, questions, review, run, runs, sample, trial, trials

__all__ = ["PLAY_PAGES", "RUN_PAGES", "VIEW_PAGES"]

RUN_PAGES = (run.PAGE, trials.PAGE, trial.PAGE, sample.PAGE, compare.PAGE, review.PAGE)
"""The pages of one run, in the order of their tabs."""

VIEW_PAGES = (runs.PAGE, compare.RUNS_PAGE, questions.PAGE, *RUN_PAGES)
"""The pages that `keval view` serves."""

PLAY_PAGES = (play.PAGE, *RUN_PAGES)
"""The pages that `keval play` serves."""
