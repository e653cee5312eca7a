"""What a person who plays sees of the way to an answer."""

from __future__ import annotations

from keval import Message, ToolCall, Transcript
from keval_viewer.play_page.progress import Said, steps_of


def test_a_reply_of_reasoning_and_calls_alone_said_nothing() -> None:
    messages = (
        Message("user", "Rain?"),
        Message("assistant", "I look."),
        Message("tool", "dry"),
        Message("assistant", "", reasoning="Once more."),
        Message("tool", "dry"),
        Message("assistant", "It is dry."),
    )

    steps = steps_of(Transcript(messages, (ToolCall("look", result="dry"), ToolCall("look", result="dry"))))

    assert [Said("I look.")] == [step for step in steps if isinstance(step, Said)]
    assert 3 == len(steps)
