"""What was said in a trial, as the conventions write messages: JSON texts of roles and parts."""

from __future__ import annotations

from collections.abc import Iterable

from keval import Message, Transcript, Trial
from keval.plugin import dump

__all__ = ["asked_messages", "instructions", "said_messages"]


def instructions(transcript: Transcript | None) -> str | None:
    """Return the system prompt as `gen_ai.system_instructions`; `None` where there is none or it is unknown."""
    if transcript is None or not transcript.instructions:
        return None
    return dump([_part(transcript.instructions)]).decode()


def asked_messages(trial: Trial) -> str:
    """Return what the agent was told and what it said before its answer, as `gen_ai.input.messages`."""
    earlier = [*trial.history, Message("user", trial.question)]
    return _messages(earlier)


def said_messages(trial: Trial) -> str | None:
    """Return the final answer as `gen_ai.output.messages`; `None` where there is none."""
    return _messages([Message("assistant", trial.output)]) if trial.output else None


def _messages(messages: Iterable[Message]) -> str:
    return dump([{"role": message.role, "parts": [_part(message.text)]} for message in messages]).decode()


def _part(text: str) -> dict[str, str]:
    return {"type": "text", "content": text}
