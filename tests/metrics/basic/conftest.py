"""Builds trials for the basic metrics' tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keval import Message, Sample, ToolCall, Transcript, Trial, Usage


def make_trial(
    said: str = "",
    answer: str | None = None,
    *,
    facts: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    turns: tuple[str, ...] = (),
    calls: Sequence[ToolCall] = (),
    unlisted: int | None = 0,
    usage: Usage | None = None,
    model_calls: int | None = None,
    duration: float | None = None,
    turn_durations: tuple[float, ...] = (),
) -> Trial:
    """Return a trial in which the agent said `said`, where `answer` is golden."""
    transcript = Transcript(
        messages=(Message("user", "How?"), Message("assistant", said, len(turns))),
        tool_calls=tuple(calls),
        usage=usage or Usage(),
        model_calls=model_calls,
        duration=duration,
        turn_durations=turn_durations,
        unlisted_calls=unlisted,
    )
    sample = Sample("s1", "How?", answer, turns=turns, facts=facts or {}, metadata=metadata or {})
    return Trial("t1", sample, "agent", "condition", 1, transcript)
