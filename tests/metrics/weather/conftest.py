"""Builds trials for the weather metrics' tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keval import Message, Sample, ToolCall, Transcript, Trial
from keval.seams import registry

METRICS: Mapping[str, type[Any]] = {
    component.name.removeprefix("weather/"): registry.load(component)
    for component in registry.components("keval.metrics")
    if component.name.startswith("weather/")
}
"""The classes of the metrics, by the names that configs have for them."""
assert 14 == len(METRICS)

WEATHER: Mapping[str, Any] = {
    "city": "Helsinki",
    "current": {"temperature": 20, "main_condition": "Rain", "description": "light rain"},
    "daily_summaries": [
        {"date": "2026-06-18", "min_temp": 12, "max_temp": 21, "main_condition": "Rain"},
        {"date": "2026-06-19", "min_temp": 10, "max_temp": 17, "main_condition": "Clouds"},
        {"date": "2026-06-20", "min_temp": 14, "max_temp": 24, "main_condition": "Clear"},
        {"date": "2026-06-21", "min_temp": 9, "max_temp": 15, "main_condition": "Thunderstorm"},
        {"date": "2026-06-22", "min_temp": -3, "max_temp": 2, "main_condition": "Snow"},
    ],
}
"""A Thursday to a Monday."""


def make_trial(
    answer: str,
    question: str = "What's the weather in Helsinki?",
    *,
    weather: Any = None,
    preferences: Any = None,
    history: Sequence[tuple[str, str]] = (),
    calls: Sequence[ToolCall] = (),
    unlisted: int | None = 0,
    tools: tuple[str, ...] | None = None,
    duration: float | None = None,
    characteristics: Mapping[str, Any] | None = None,
) -> Trial:
    """Return a trial of one turn; `history` holds (user, assistant) pairs."""
    spoken: list[Message] = []
    for user, assistant in history:
        spoken += [Message("user", user), Message("assistant", assistant)]
    facts = {name: value for name, value in (("weather", weather), ("preferences", preferences)) if value is not None}
    transcript = Transcript(
        messages=(Message("user", question), Message("assistant", answer)),
        tool_calls=tuple(calls),
        duration=duration,
        turn_durations=() if duration is None else (duration,),
        tools=tools,
        unlisted_calls=unlisted,
    )
    sample = Sample("s1", question, history=tuple(spoken), facts=facts)
    return Trial("t1", sample, "agent", "condition", 1, transcript, characteristics=characteristics or {})
