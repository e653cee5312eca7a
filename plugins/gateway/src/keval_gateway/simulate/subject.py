"""Subject: what a question is about and for when; what it leaves open, the user said before."""

from __future__ import annotations

import re
from collections.abc import Sequence

from keval_gateway.simulate.conversation import Conversation
from keval_gateway.simulate.preferences import states_preference
from keval_gateway.simulate.words import concepts, numbers, stems

__all__ = ["days_asked", "subject", "time_asked"]

_TIMES = frozenset({"forecast", "current"})
_BACK = re.compile(r"^(?:and|so|what about|how about)\b|\b(?:it|that(?: day| time)?|then)\W*$")
_OUTING = re.compile(
    r"\b(?:what (?:should|could|can|shall) (?:i|we) do|ideas?|spend|go for a|visit|activit(?:y|ies))\b"
)
_DAYS = re.compile(r"\b(\d+|\w+)[\s-]days?\b")
_MANY_DAYS = {"weekend": 5, "week": 5, "(?:mon|tues|wednes|thurs|fri|satur|sun)day": 5, "tomorrow": 2}
"""How far ahead a word reaches; a weekday is at most a week away, and forecasts rarely reach further than 5 days."""


def subject(conversation: Conversation) -> set[str]:
    """Return the concepts a question is about.

    A fragment ("And tomorrow?", "Rome") is about what the question before it was about, and one that refers back
    ("so what should I pack for it?") is about the same time. What to do somewhere depends on the weather there.
    """
    question = conversation.question.lower()
    found = concepts(question)
    if days_asked(question):
        found.add("forecast")
    before = _questions(conversation.earlier)
    if before and _follows_up(conversation, found):
        latest = concepts(before[-1])
        if _leaves_time_open(question):
            found |= {"forecast"} if days_asked(time_asked(conversation)) else latest & _TIMES
        if "weather" not in found and (len(question.split()) <= 5 or _BACK.search(question)):
            found |= latest - _TIMES
    if conversation.places and _OUTING.search(question):
        found.add("weather")
    return found


def days_asked(text: str) -> int | None:
    """Return how many days of forecast a question asks for, counting from today; `None` when it does not say."""
    lower = text.lower()
    named = next((count for word, count in _MANY_DAYS.items() if re.search(rf"\b{word}\b", lower)), None)
    counted = next((int(count[0]) for word in _DAYS.findall(lower) if (count := numbers(word))), None)
    return max(filter(None, (named, counted)), default=None)


def time_asked(conversation: Conversation) -> str:
    """Return the message that says for when: the question, unless it leaves that to those before it."""
    for text in (conversation.question, *reversed(_questions(conversation.earlier))):
        if days_asked(text) or not _leaves_time_open(text):
            return text
    return conversation.question


def _questions(messages: Sequence[str]) -> list[str]:
    """Leave out what only thanks, and what only says what the user likes."""
    return [text for text in messages if stems(text) and ("?" in text or not states_preference(text))]


def _leaves_time_open(text: str) -> bool:
    about = concepts(text)
    return not about & _TIMES and (bool(_BACK.search(text.lower())) or "weather" not in about)


def _follows_up(conversation: Conversation, found: set[str]) -> bool:
    """Tell "Rome", "And tomorrow?" and "so what should I pack" from "Great!" and from what the user likes."""
    question = conversation.question
    asks = "?" in question or bool(conversation.named_places or found & _TIMES or _BACK.search(question.lower()))
    return asks and bool(stems(question)) and not states_preference(question)
