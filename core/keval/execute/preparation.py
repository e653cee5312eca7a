"""Preparation: hook plugins prepare each attempt at a trial, and clean up after it."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from keval.contexts import TrialInfo
from keval.errors import PluginWarning, TrialError
from keval.execute.attempts import Attempted, attempt
from keval.plan.hooks import Hooks
from keval.records import Failure, Transcript

__all__ = ["prepared"]

_Outcome: TypeAlias = tuple[Transcript | None, Attempted[Transcript]]

_CUT_SHORT = Failure("agent", "cancelled", "the run ended before the trial did")


async def prepared(hooks: Hooks, trial: TrialInfo, seconds: float, ask: Callable[[], Awaitable[_Outcome]]) -> _Outcome:
    """Return what `ask` makes of an attempt, between the hooks that prepare it and clean up after it.

    If it cannot be prepared, `ask` is not called, and the attempt failed. Preparing may take `seconds`, and so may
    cleaning up, which is done however the attempt ends.
    """
    if not hooks.prepare_trials:
        return await ask()
    late = TrialError(f"the hook plugins took more than {seconds:g} s", stage="context", kind="hook_failed")
    failure: Failure | None = _CUT_SHORT
    try:
        begun = await attempt(lambda: hooks.trial_started(trial), seconds=seconds, late=late)
        transcript, outcome = await ask() if begun.error is None else (None, Attempted[Transcript].failed(begun.error))
        failure = outcome.failure
        return transcript, outcome
    finally:
        ended = await attempt(lambda: hooks.trial_ended(trial, failure), seconds=seconds, late=late)
        if ended.failure is not None:
            warnings.warn(f"after the trial {trial.id}: {ended.failure.message}", PluginWarning, stacklevel=2)
