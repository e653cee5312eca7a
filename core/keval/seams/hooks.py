"""Hooks, in the order they are called. A plugin implements any of them with `@keval.plugin.hookimpl`.

Hook plugins are found in the entry-point group `keval` and loaded only when `plugins:` or `-p NAME` selects them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pluggy

from keval.records.manifest import Manifest
from keval.records.sample import Sample
from keval.records.scores import ScoreLine
from keval.records.summary import Summary
from keval.records.trial import Failure, Trial
from keval.seams.contexts import TrialInfo
from keval.seams.live import LiveEvent

hookspec = pluggy.HookspecMarker("keval")
hookimpl = pluggy.HookimplMarker("keval")


@hookspec
def keval_run_started(directory: Path, manifest: Manifest) -> None:
    """Called once per run, after preflight and before the first trial; `manifest` is the content of manifest.json."""


@hookspec
def keval_sample_facts(sample: Sample) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]] | None:
    """Called once per sample, before the first trial, all samples of a run at once up to `max_concurrent`.

    The mapping that is returned is added to `sample.facts` and kept in the run, so that every arm is scored against the
    same facts. A fact that the sample already has is not replaced. `None` adds nothing.
    """


@hookspec
def keval_trial_started(trial: TrialInfo) -> Awaitable[None] | None:
    """Called once per attempt at a trial, before its contexts are opened; it is awaited, and may be a coroutine.

    What it raises fails the attempt with kind `hook_failed`. While a plugin implements this, no server is started ahead
    of its trial.
    """


@hookspec
def keval_trial_ended(trial: TrialInfo, failure: Failure | None) -> Awaitable[None] | None:
    """Called once per attempt whose `keval_trial_started` was called, when its contexts are closed; it is awaited.

    It is called however the attempt ends. `failure` says why it failed.
    """


@hookspec
def keval_live_event(event: LiveEvent) -> None:
    """Called once per event while trials run and are scored; events are only made while somebody listens."""


@hookspec
def keval_endpoint_changed(model: str, at_once: int | None, down: bool) -> None:
    """Called once per change of a model's endpoint: it gets more or fewer requests at once, goes down, or comes back.

    `at_once` is how many it is given; `None` if nothing but the run bounds them.
    """


@hookspec
def keval_trial_finished(trial: Trial) -> None:
    """Called once per trial, when it is on disk."""


@hookspec
def keval_trial_scored(trial: Trial, scores: Sequence[ScoreLine], late: bool) -> None:
    """Called once per trial and scoring pass, when its scores are written, which may be while other trials run.

    `scores` is empty for a trial that failed, or that already had all its scores. Where judges grade only after the
    last trial, this is called a second time with their scores, which are `late`.
    """


@hookspec
def keval_run_finished(directory: Path, summary: Summary) -> None:
    """Called once per run, when its summary is written."""
