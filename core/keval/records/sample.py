"""A sample: one question with what is known and expected of its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from keval.records.transcript import Message


@attrs.frozen
class Expectation:
    """What must be true of every answer to a sample, in all arms or in those of some `conditions`.

    The answer has every text of `contains` and none of `not_contains`, every pattern of `regex` is found in it, each
    tool of `tool_called` was called, and the answer took at most `max_seconds`.
    """

    contains: tuple[str, ...] = ()
    not_contains: tuple[str, ...] = ()
    regex: tuple[str, ...] = ()
    tool_called: tuple[str, ...] = ()
    max_seconds: float | None = None
    conditions: tuple[str, ...] = ()


@attrs.frozen
class Sample:
    """One question with what is known about it.

    `question` is asked first and `turns`, the follow-up messages of the same user, after it in the same session.
    `answer` is the golden answer to the last of them. `history` is what user and assistant said earlier. `withheld`
    names the facts that hooks added. No prompt shows these, nor what is expected of the answers (`expect`), because
    answers are compared with them.
    """

    id: str
    question: str
    answer: str | None = None
    history: tuple[Message, ...] = ()
    turns: tuple[str, ...] = ()
    facts: Mapping[str, Any] = attrs.field(factory=dict)
    metadata: Mapping[str, Any] = attrs.field(factory=dict)
    withheld: tuple[str, ...] = ()
    expect: tuple[Expectation, ...] = ()

    @property
    def asked(self) -> tuple[str, ...]:
        """Everything the user says in a trial, in order."""
        return (self.question, *self.turns)
