"""Preferences: what is known of a user's likes, from facts of any shape, from tool calls and from the user's words."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import attrs

from keval import ToolCall
from keval_metrics_weather.words import Text, word_set

__all__ = ["KEYS", "Preferences", "Stated", "preferences_of", "preferences_stated"]

KEYS = (
    "dislikes_cold",
    "dislikes_heat",
    "dislikes_rain",
    "dislikes_wind",
    "prefers_sunny",
    "prefers_indoor",
    "outdoor_activities",
    "sensitive_to_weather",
)
_LEARNED = "learned_from_conversations"
_LEARNING_TOOL = "update_user_preferences_from_insight"
_MOST_NODES = 1000
_NO = frozenset({"", "false", "no", "none", "0", "off"})

_VERBS = word_set("hate dislike love prefer enjoy like adore loathe avoid mind hated disliked loved preferred enjoyed")
_BETWEEN = word_set("do not really just absolutely can stand would always usually much also am a big fan of")
_PHRASE_ENDS = frozenset({".", "!", "?", ";", ",", "\n", "but", "so", "because", "and", "when", "what", ":", "—"})
_NO_THEME = word_set(
    "the a an to of it is in being when weather very much at all my that this for day days more than or going be"
)


@attrs.frozen
class Preferences:
    """The preferences that are set, in the order of `KEYS`, and how many were learned from conversations."""

    names: tuple[str, ...]
    learned: int | None

    def __contains__(self, name: str) -> bool:
        return name in self.names


@attrs.frozen
class Stated:
    """A like or dislike as the user put it, at offset `start`; `themes` are the words it is about."""

    themes: tuple[str, ...]
    start: int


def preferences_of(facts: Any, calls: Iterable[ToolCall] = ()) -> Preferences:
    """Read preferences wherever they are nested in `facts`, then what `calls` learned in the conversation.

    Of a key found twice, the outermost counts; a later tool call overrules it.
    """
    found: dict[str, Any] = {}
    waiting: deque[Any] = deque([facts])
    for _ in range(_MOST_NODES):
        if not waiting:
            break
        node = waiting.popleft()
        if isinstance(node, Mapping):
            for key, value in node.items():
                if key in KEYS or key == _LEARNED:
                    found.setdefault(key, value)
            waiting.extend(node.values())
        elif isinstance(node, list | tuple):
            waiting.extend(node)
    for call in calls:
        if call.name.endswith(_LEARNING_TOOL) and call.error is None:
            found |= {key: value for key, value in call.arguments.items() if key in KEYS and value is not None}
    return Preferences(tuple(key for key in KEYS if _is_set(found.get(key))), _count(found.get(_LEARNED)))


def _is_set(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() not in _NO
    if isinstance(value, Mapping) and "value" in value:
        return bool(value["value"])
    return bool(value)


def _count(value: Any) -> int | None:
    if isinstance(value, list | tuple):
        return len(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


@lru_cache(maxsize=64)
def preferences_stated(text: Text) -> tuple[Stated, ...]:
    """Return the likes and dislikes a user states: "I hate cold weather", "I don't really like the rain"."""
    found = []
    for place in text.index.get("i", ()):
        at = place + 1
        while at < place + 5 and text.word_at(at) in _BETWEEN:
            at += 1
        stands = text.words[at - 2 : at] == ["not", "stand"]
        fan = text.words[at - 2 : at] == ["fan", "of"]
        conditional = text.word_at(place + 1) == "would"
        if (text.word_at(at) not in _VERBS and not stands and not fan) or conditional:
            continue
        themes = []
        for word in text.words[at if stands or fan else at + 1 :][:6]:
            if word in _PHRASE_ENDS:
                break
            if word not in _NO_THEME:
                themes.append(word)
        found.append(Stated(tuple(themes), text.starts[place]))
    return tuple(found)
