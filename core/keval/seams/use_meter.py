"""What a trial's builder reports use to, where trials have limits."""

from __future__ import annotations

from typing import Protocol

from keval.records.usage import Usage


class UseMeter(Protocol):
    """Counts what a trial with limits uses, and ends the attempt that would use more."""

    def asks(self, *, counted: bool = True) -> None:
        """Be told that a model is about to be asked. Raises TrialError: of kind `limit`; it must not be."""
        ...

    def replied(self, usage: Usage, model: str = "", *, to_proxy: bool = False) -> None:
        """Be told a reply of a model, by default of the agent's, by the agent or the proxy."""
        ...

    def passed(self, tokens: int) -> None:
        """Be told about how many tokens a request and its reply had, before the reply."""
        ...

    def called(self, *, own: bool = False) -> None:
        """Be told of a tool call, which is about to be made; a call of the agent's `own` tool passes no tap."""
        ...
