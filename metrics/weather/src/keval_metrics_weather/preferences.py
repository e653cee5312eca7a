"""Preferences: what is known of a user's likes, from facts of any shape, from tool calls and from the user's words."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import attrs

from keval import ToolCall
from keval_metrics_weather.reading.words import Text, word_set

__all__ = ["KEYS", "Preferences", "Stated", "preferences_of", "preferences_stated"]

KEYS = (
    "dislikes_cold",
    "dislikes_heat",
    "dislikes_rain",
    "dislikes_wind",
    "prefers_sunny",
    "prefers_indoor",
    "prefers_outdoor",
    "outdoor_activities",
    "sensitive_to_weather",
)
_LEARNED = "learned_from_conversations"
_READ = frozenset({*KEYS, _LEARNED})
_LEARNING_TOOL = "update_user_preferences_from_insight"
_TAUGHT = (*KEYS, "insight_text")
_MOST_NODES = 1000
_PLAIN = (str, int, float, type(None))
_NO = frozenset({"", "false", "no", "none", "0", "off"})

_VERBS = word_set("hate dislike love prefer enjoy like adore loathe avoid mind hated disliked loved preferred enjoyed")
_BETWEEN = word_set(
    "do not really just absolutely can stand would always usually much also am a big fan keen fond on of no longer"
    " used to actually"
)
_MOST_BETWEEN = 8
_PHRASE_ENDS = frozenset({".", "!", "?", ";", ",", "\n", "but", "so", "because", "and", "when", "what", ":", "—"})
_NO_THEME = word_set(
    "the a an to of it is in being when weather very much at all my that this for day days more than or going be"
    " any anymore longer"
)


@attrs.frozen
class Preferences:
    """The preferences that are set, in the order of `KEYS`, and how many were learned from conversations.

    `learned_now` holds what each successful call of a preference tool learned in this conversation.
    """

    names: tuple[str, ...]
    learned: int | None
    learned_now: tuple[Mapping[str, Any], ...]

    def __contains__(self, name: str) -> bool:
        return name in self.names


@attrs.frozen
class Stated:
    """A like or dislike as the user put it, at offset `start`; `themes` are the words it is about.

    One that is `taken_back` holds no more: "I no longer enjoy hiking", "I don't mind the rain".
    """

    themes: tuple[str, ...]
    start: int
    taken_back: bool = False


def preferences_of(facts: Any, calls: Iterable[ToolCall] = ()) -> Preferences:
    """Read preferences wherever they are nested in `facts`, then what `calls` learned in the conversation.

    Of a key found twice, the outermost counts; a later tool call overrules it. Each call that learned something counts
    as one conversation more to have learned from.
    """
    found = _found_in(facts)
    learned_now = tuple([learned for call in calls if (learned := _learned_by(call))])
    for learned in learned_now:
        found |= {key: value for key, value in learned.items() if key in KEYS}
    before = _count(found.get(_LEARNED))
    return Preferences(
        tuple([key for key in KEYS if key in found and _is_set(found[key])]),
        (before or 0) + len(learned_now) if learned_now else before,
        learned_now,
    )


def _learned_by(call: ToolCall) -> dict[str, Any]:
    """Return what a call taught the preference store; nothing if it is no such call, failed or never ran."""
    if not call.name.endswith(_LEARNING_TOOL) or call.error is not None or call.executions == 0:
        return {}
    return {key: call.arguments[key] for key in _TAUGHT if call.arguments.get(key) is not None}


def _found_in(facts: Any) -> dict[str, Any]:
    """Return the values of the known keys, those of the outermost of each."""
    found: dict[str, Any] = {}
    waiting = deque([facts])
    for _ in range(_MOST_NODES):
        if not waiting:
            break
        node = waiting.popleft()
        if isinstance(node, dict | Mapping):
            for key, value in node.items():
                if key in _READ:
                    found.setdefault(key, value)
            waiting += [value for value in node.values() if not isinstance(value, _PLAIN)]
        elif isinstance(node, list | tuple):
            waiting += [value for value in node if not isinstance(value, _PLAIN)]
    return found


def _is_set(value: Any) -> bool:
    if isinstance(value, bool):
        return value
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
        while at <= place + _MOST_BETWEEN and text.word_at(at) in _BETWEEN:
            at += 1
        stands = text.words[at - 2 : at] == ["not", "stand"]
        fan = text.words[at - 2 : at] in (["fan", "of"], ["keen", "on"], ["fond", "of"])
        conditional = text.word_at(place + 1) == "would"
        if (text.word_at(at) not in _VERBS and not stands and not fan) or conditional:
            continue
        following = text.words[at if stands or fan else at + 1 :][:6]
        end = next((n for n, word in enumerate(following) if word in _PHRASE_ENDS), len(following))
        themes = tuple([word for word in following[:end] if word not in _NO_THEME])
        taken_back = not stands and _taken_back(text.words[place + 1 : at + 1], following[:end])
        found.append(Stated(themes, text.starts[place], taken_back))
    return tuple(found)


def _taken_back(verb: Sequence[str], about: Sequence[str]) -> bool:
    """Say whether a like or dislike is one of the past: by "no longer", "not … any more", "used to", "not mind"."""
    if "longer" in verb or "used" in verb:
        return True
    any_more = "anymore" in about or ("any" in about and ("more" in about or "longer" in about))
    return "not" in verb and (verb[-1] == "mind" or any_more)
