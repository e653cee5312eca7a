"""Trials of the agent that is checked, by which a rule is checked, and what is found to break it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias

import attrs

from keval import Sample, Transcript
from keval.errors import TrialError
from keval_testing.agent_stage import QUESTION, AgentStage, MakeAgent, Outcome
from keval_testing.scripted_model import Reply, calls_tools, says

ADD, FIVE = calls_tools(("add", {"a": 2, "b": 3})), says("It is 5.")
"""The replies of a model that answers the question by a tool call."""


class BreaksOffError(Exception):
    """A rule is broken so that the rest of it cannot be checked."""


@attrs.define(eq=False)
class Trials:
    """Trials of the agent that is checked, and what was found to break the rule.

    `sought` are the addresses beyond loopback that it wanted to reach.
    """

    stage: AgentStage
    make: MakeAgent
    found: list[str] = attrs.field(factory=list, init=False)
    sought: list[str] = attrs.field(factory=list, init=False)

    def same(self, what: str, expected: object, actual: object) -> None:
        """Note it if something is not as expected."""
        if expected != actual:
            self.found.append(f"{what}: expected {expected!r}, got {actual!r}")

    async def play(self, *replies: Reply, sample: Sample = QUESTION, **rest: Any) -> Outcome:
        """Run one trial with these replies of the model."""
        return await self.stage.play(self.make, *replies, sample=sample, **rest)

    async def answered(self, *replies: Reply, **rest: Any) -> Outcome:
        """Run one trial, which must end with an answer."""
        outcome = await self.play(*replies, **rest)
        if outcome.error is not None:
            raise BreaksOffError(f"the trial fails: {error_text(outcome.error)}") from outcome.error
        return outcome

    async def failed(self, *replies: Reply, **rest: Any) -> tuple[TrialError, Outcome]:
        """Run one trial, which must fail with a TrialError."""
        outcome = await self.play(*replies, **rest)
        if not isinstance(outcome.error, TrialError):
            answer = f"it answers {outcome.transcript.output!r}"
            ended = answer if outcome.error is None else error_text(outcome.error)
            raise BreaksOffError(f"the trial does not fail with a TrialError: {ended}") from outcome.error
        return outcome.error, outcome


Rule: TypeAlias = Callable[[Trials], Awaitable[None]]


def error_text(error: Exception) -> str:
    """Return the type and message of an error."""
    return f"{type(error).__name__}: {error}"


def in_order(texts: Iterable[str], wanted: Sequence[str]) -> bool:
    """Return whether each of `wanted` stands in a text of its own, in this order."""
    left = iter(texts)
    return all(any(want in text for text in left) for want in wanted)


def messages_of(transcript: Transcript) -> list[tuple[str, str, int]]:
    """Return role, text and turn of each message."""
    return [(message.role, message.text, message.turn) for message in transcript.messages]
