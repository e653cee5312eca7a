"""What counts what trials and runs use, where that is bounded. Group `keval.meters`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import attrs

from keval.errors import TrialError
from keval.records.manifest import Manifest
from keval.records.scores import Judgement
from keval.records.transcript import Transcript
from keval.records.trial import Trial
from keval.records.usage import Usage


class UseMeter(Protocol):
    """Counts what a trial uses over all its attempts, and ends the attempt that would use more than its limits.

    It is made of the limits by their names, the price of the agent's model, and the prices of others. Under the name
    `limits`. `reached` is the limit that was reached, if one was.
    """

    reached: TrialError | None

    def begin(self, expire: Callable[[], object]) -> None:
        """Begin an attempt, which `expire` ends."""
        ...

    def renew(self) -> None:
        """Begin another trial, of the same conversation."""
        ...

    def asks(self, *, counted: bool = True) -> None:
        """Be told that a model is about to be asked; a request that is `counted` counts until it is `lost`.

        Raises:
            TrialError: of kind `limit`; the request must not be sent.
        """
        ...

    def lost(self) -> None:
        """Be told that a request that was counted brought no reply."""
        ...

    def passed(self, tokens: int) -> None:
        """Be told about how many tokens a request and its reply had, before the reply; they count if it tells none."""
        ...

    def replied(self, usage: Usage, model: str = "", *, to_proxy: bool = False) -> None:
        """Be told a reply of a model, by default of the agent's, by the agent or the proxy."""
        ...

    def called(self, *, own: bool = False) -> None:
        """Be told by the agent of a tool call, which is about to be made; one of its `own` tools passes no tap."""
        ...

    def tapped(self) -> str | None:
        """Be told by the tap of a tool call; returns why it must not be made, if it must not."""
        ...

    def end(self, transcript: Transcript) -> TrialError | None:
        """End the attempt, of which the transcript may tell more; returns the limit that was reached, if one was."""
        ...

    def exhausted(self) -> TrialError | None:
        """Return the limit that lets the trial ask no model any more."""
        ...


class RunBudget(Protocol):
    """Counts what a run uses up, and decides whether another trial or judgement may begin. Under the name `budget`.

    It is made of a `Budget` and `Rates`. The method `of` of its class makes that of a run, which has counted what the
    run has so far. It is not `careful` where what does not fit yet cannot wait.
    """

    careful: bool

    def price(self, manifest: Manifest) -> None:
        """Count from now on by the prices, the recorded agents and the limits of trials that a manifest has."""
        ...

    def admits_trial(self, agent: str, condition: str) -> bool:
        """Return whether another trial may begin."""
        ...

    def leave_out_trials(self, agent: str, condition: str) -> None:
        """Note that trials were left out, as the budget does not hold them."""
        ...

    def begin_trial(self, agent: str, condition: str) -> None:
        """Note that a trial begins."""
        ...

    def end_trial(self, trial: Trial) -> None:
        """Count a trial that was begun, with the attempts that were discarded."""
        ...

    async def begin_judgement(self, judge: str) -> bool:
        """Begin a judgement if the budget allows it, else wait for those in flight; returns whether it has begun."""
        ...

    def end_judgement(self, judge: str, judgement: Judgement | None) -> None:
        """Count a judgement that was begun; `None` if it was ended before there was one."""
        ...

    def told(self) -> str:
        """Say what is used up, if anything was left out for it, or there was more of it; else an empty text."""
        ...


@attrs.define
class Unbounded:
    """The budget of a run that may use up anything."""

    careful: bool = True

    def price(self, manifest: Manifest) -> None:
        """Count nothing, as all that follows."""

    def admits_trial(self, agent: str, condition: str) -> bool:
        return True

    def leave_out_trials(self, agent: str, condition: str) -> None: ...

    def begin_trial(self, agent: str, condition: str) -> None: ...

    def end_trial(self, trial: Trial) -> None: ...

    async def begin_judgement(self, judge: str) -> bool:
        return True

    def end_judgement(self, judge: str, judgement: Judgement | None) -> None: ...

    def told(self) -> str:
        return ""
