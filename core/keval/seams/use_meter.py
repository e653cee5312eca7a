"""What counts the use of a trial, where trials have limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from keval.errors import TrialError
from keval.records.transcript import Transcript
from keval.records.usage import Usage


class UseMeter(Protocol):
    """Counts what a trial uses over all its attempts, and ends the attempt that would use more than its limits.

    It is made of the limits by their names, the price of the agent's model, and the prices of others. Group
    `keval.proxies`, under the name `limits`. `reached` is the limit that was reached, if one was.
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
