"""Preferences: what a user likes and dislikes, stated in words or as flags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from keval_simulator.words import sentences

__all__ = ["ACTIVITIES", "FLAGS", "PHRASES", "activities_in", "flags_of", "stated_in", "states_preference"]

PHRASES = {
    "dislikes_cold": "dislike the cold",
    "dislikes_heat": "dislike the heat",
    "dislikes_rain": "dislike rain",
    "dislikes_wind": "dislike wind",
    "prefers_sunny": "prefer sunny weather",
    "prefers_indoor": "prefer to be indoors",
    "outdoor_activities": "enjoy outdoor activities",
    "sensitive_to_weather": "are sensitive to the weather",
}
"""How each flag is said to the user, after "you"."""

FLAGS = tuple(PHRASES)

ACTIVITIES = ("hiking", "cycling", "running", "jogging", "swimming", "walking", "skiing", "camping", "sailing", "golf")

_NOT = r"(?:do(?:es)? ?n[o']t|never)"
_AVERSION = rf"(?:hates?|dislikes?|{_NOT} (?:really )?(?:like|enjoy)|can(?:no|')t stand|not a fan of)"
_LIKING = r"(?:loves?|likes?|enjoys?|prefers?|(?:am|is|are|i'm) (?:fond of|into))"
_GAP = r"(?: (?:the|any|very|really|to|be|being|doing|going|in|cold and|hot and|when it is|when it's|it when it's))*"
_SENSITIVE = r"(?:am|is|are|i'm|very|quite) (?:very |quite )?sensitive to"
_NO_LONGER = rf"(?:{_NOT}|no longer) (?:really )?"

_DISLIKED = {
    "dislikes_cold": "(?:cold|chill|freezing|winter|snow)",
    "dislikes_heat": "(?:heat|hot|humid)",
    "dislikes_rain": "(?:rain|wet|drizzle)",
    "dislikes_wind": "wind",
}
_LIKED = {
    "prefers_sunny": "(?:sun|clear sk)",
    "prefers_indoor": "(?:indoor|staying in|inside|museum)",
    "outdoor_activities": f"(?:outdoor|outside|nature|{'|'.join(ACTIVITIES)})",
}
_STATEMENTS = {
    **{flag: rf"{_AVERSION}{_GAP} {what}" for flag, what in _DISLIKED.items()},
    **{flag: rf"{_LIKING}{_GAP} {what}" for flag, what in _LIKED.items()},
    "sensitive_to_weather": _SENSITIVE,
}
_STATEMENTS["dislikes_cold"] += rf"|{_SENSITIVE} (?:the )?cold"
_STATEMENTS["dislikes_heat"] += rf"|{_SENSITIVE} (?:the )?heat"
_RETRACTIONS = {
    **{flag: rf"{_NO_LONGER}(?:minds?|hates?|dislikes?){_GAP} {what}" for flag, what in _DISLIKED.items()},
    **{flag: rf"{_NO_LONGER}(?:loves?|likes?|enjoys?|prefers?){_GAP} {what}" for flag, what in _LIKED.items()},
    "sensitive_to_weather": r"(?:not|no longer) (?:that |very )?sensitive to",
}
_STATED = {flag: re.compile(pattern) for flag, pattern in _STATEMENTS.items()}
_RETRACTED = {flag: re.compile(pattern) for flag, pattern in _RETRACTIONS.items()}
_FLAG = re.compile(rf"\b({'|'.join(FLAGS)})\b['\"`]?\s*(?:[:=]\s*)?(true|yes|1\b|\[\s*['\"\w]|false|no\b|0\b|\[)")
_HYPOTHETICAL = re.compile(r"\b(?:if|when|whenever|whether|for example|e\.g|such as)\b")
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i’m|my|me)\b")


def stated_in(text: str) -> dict[str, bool]:
    """Return the flags that a text states, in words or as `flag: true`; "I don't mind the rain" makes one false."""
    lower = text.lower().replace("’", "'")
    told = " ".join(part for part in sentences(lower) if not _HYPOTHETICAL.search(part))
    found = {flag: True for flag, pattern in _STATED.items() if pattern.search(told)}
    found |= {flag: False for flag, pattern in _RETRACTED.items() if pattern.search(told)}
    for flag, value in _FLAG.findall(lower):
        found[flag] = value not in ("false", "no", "0", "[")
    return found


def states_preference(text: str) -> bool:
    """Tell whether a user says what they themselves like or dislike."""
    lower = text.lower().replace("’", "'")
    return bool(_FIRST_PERSON.search(lower)) and any(
        pattern.search(lower) for pattern in (*_STATED.values(), *_RETRACTED.values())
    )


def activities_in(text: str) -> list[str]:
    """Return the outdoor activities a text names."""
    return [activity for activity in ACTIVITIES if activity in text.lower()]


def flags_of(data: Any) -> dict[str, bool]:
    """Return the flags anywhere inside a tool's result."""
    if isinstance(data, Mapping):
        found = {key: bool(value) for key, value in data.items() if key in FLAGS and value is not None}
        for value in data.values():
            found.update(flags_of(value))
        return found
    if isinstance(data, list):
        return {flag: value for item in data for flag, value in flags_of(item).items()}
    return {}
