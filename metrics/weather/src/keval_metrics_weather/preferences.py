"""Preferences: what a user likes, from facts, tool calls and words, and where an answer acknowledges it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import attrs

from keval import ToolCall
from keval_metrics_weather.reading.words import Hit, Said, Text, denied, find, said, vocabulary, word_set

KEYS = (
    "dislikes_cold", "dislikes_heat", "dislikes_rain", "dislikes_wind", "prefers_sunny", "prefers_indoor",
    "prefers_outdoor", "outdoor_activities", "sensitive_to_weather",
)  # fmt: skip
_LEARNED = "learned_from_conversations"
_READ = frozenset({*KEYS, _LEARNED})
_LEARNING_TOOL = "update_user_preferences_from_insight"
_TAUGHT = (*KEYS, "insight_text")
_MOST_NODES = 1000
_PLAIN = (str, int, float, type(None))
_NO = frozenset({"", "false", "no", "none", "0", "off"})

_VERBS = word_set(
    "struggle hate dislike love prefer enjoy like adore loathe avoid mind hated disliked loved preferred enjoyed"
)
_AFTER_I = frozenset(vocabulary("after i"))
_MOST_AFTER_I = 8
_PHRASE_ENDS = frozenset({".", "!", "?", ";", ",", "\n", "but", "so", "because", "and", "when", "what", ":", "—"})
_NO_THEME = frozenset(vocabulary("no theme"))


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
        if isinstance(node, (dict, Mapping)):
            for key, value in node.items():
                if key in _READ:
                    found.setdefault(key, value)
            waiting += [value for value in node.values() if not isinstance(value, _PLAIN)]
        elif isinstance(node, (list, tuple)):
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
    if isinstance(value, (list, tuple)):
        return len(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


@lru_cache(maxsize=64)
def preferences_stated(text: Text) -> tuple[Stated, ...]:
    """Return the likes and dislikes a user states: "I hate cold weather", "I don't really like the rain"."""
    found = []
    for place in text.index.get("i", ()):
        at = place + 1
        while at <= place + _MOST_AFTER_I and text.padded[at] in _AFTER_I:
            at += 1
        stands = text.words[at - 2 : at] == ["not", "stand"]
        fan = text.words[at - 2 : at] in (["fan", "of"], ["keen", "on"], ["fond", "of"])
        rather = text.words[place + 1 : place + 3] == ["would", "rather"]
        conditional = text.padded[place + 1] == "would" and not rather
        person = "person" in text.words[at : at + 3] or "type" in text.words[at : at + 3]
        freezes = text.padded[at - 1] in ("get", "feel", "the") and text.padded[at] in ("cold", "hot", "heat")
        is_stated = stands or fan or person or freezes or rather
        if (text.padded[at] not in _VERBS and not is_stated) or conditional:
            continue
        following = text.words[at if is_stated and text.padded[at] not in _VERBS else at + 1 :][:6]
        if following[:1] in (["when"], ["with"], ["in"]):
            following = following[1:]
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


_LIKING = frozenset(vocabulary("liking"))
_AFTER_YOU = frozenset(vocabulary("after you"))
_YOURS = word_set(
    "love dislike preference preferences aversion fondness sensitivity hatred taste tastes liking interest passion"
)
_SENTENCE_ENDS = frozenset(".!?;\n")
_MOST_AFTER_YOU = 5
_BEFORE_A_GUESS = frozenset({"would", "do", "did", "might", "may", "for", "whether", "should"})
_OFFERED = frozenset({"like", "enjoy", "mind", "love", "prefer", "enjoying", "fancy"})


@lru_cache(maxsize=64)
def acknowledged(text: Text, phrases: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words by which an answer shows that it knows what its reader likes: "you're not keen on the cold".

    "Would you like …" and "if you enjoy …" offer, "you might like" guesses, and "for you to enjoy" says no more.
    """
    found: list[str] = []
    for hit in find(text, phrases):
        if not denied(text, hit) and not _guesses(text, hit[0], hit[1]):
            found.append(Said.at(text, *hit))
    for at in text.index.get("you", ()):
        end = at + 1
        while end - at <= _MOST_AFTER_YOU and text.padded[end] in _AFTER_YOU and text.padded[end] not in _LIKING:
            end += 1
        between = text.words[at + 1 : end]
        likes = text.padded[end] in _LIKING or text.words[end : end + 2] == ["one", "for"]
        if likes and "would" not in between and "could" not in between and not _guesses(text, at, end):
            if text.words[end] in ("like", "enjoy", "mind", "love") and text.padded[end + 1] in ("to", "me", "it", "!"):
                continue
            found.append(Said.at(text, at, end, " ".join(text.words[at : end + 1])))
    for at in text.index.get("your", ()):
        if text.padded[at + 1] in _YOURS and text.padded[at + 2] != "app":
            found.append(Said.at(text, at, at + 1, f"your {text.words[at + 1]}"))
        elif text.padded[at + 1] == "thing" and text.padded[at - 1] in ("not", "is"):
            found.append(Said.at(text, at, at + 1, "your thing"))
    return tuple(dict.fromkeys(found))


def _guesses(text: Text, you: int, last: int) -> bool:
    """Say whether a liking is guessed or offered: "you might like", "if you enjoy walking", "for you to enjoy"."""
    before = text.padded[you - 1]
    return before in _BEFORE_A_GUESS or (before == "if" and text.words[last] in _OFFERED)


_GENERAL = frozenset({"outdoor", "outdoors", "outside", "indoor", "indoors", "inside"})
"""Words that suggest something only in the company of a word of `_SUGGESTING`."""
_SUGGESTING = frozenset(vocabulary("suggesting"))
_ADVERSE = frozenset(vocabulary("adverse"))
_AGAINST_OUT = frozenset({"stay", "staying", "keep", "keeping", "indoors", "inside", "from"})
_ADVERSE_AFTER = word_set(
    "hard unpleasant uncomfortable miserable difficult affected limited disrupted tricky less not"
)
_ON_CONDITION = frozenset({"if", "when", "whenever", "unless", "should", "while", "before", "once", "whether"})
_ABOUT_ACTIVITIES = word_set("activities activity plans plan ideas options fun adventures suggestions events")
_NO_PARK_BEFORE = word_set("water car theme ball business indoor trailer amusement science")
_LIKED_BEFORE = word_set("love loves enjoy enjoys like likes prefer loving mentioned keen fan hobby")
_PART_ENDS = _SENTENCE_ENDS | {",", ":", "—", "(", ")"}
_REACH = 9


def suggested_indoors(text: Text, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the places and activities under a roof that an answer suggests."""
    hits = find(text, words)
    if "muse" in text.plain:
        named = text.places_of(frozenset(filter(_is_museum, text.said)))
        hits = sorted([*hits, *[(at, at, "museum") for at in named]])
    return said(text, [hit for hit in hits if _suggests(text, hit)])


def _is_museum(word: str) -> bool:
    """Say whether a word is a name of a museum: "Designmuseum", "Museo"."""
    return word in ("museo", "musee", "museu") or (word.endswith("museum") and word != "museum")


def suggested_outdoors(text: Text, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the activities in the open that an answer suggests; telling what it is like outside suggests none."""
    return said(text, [hit for hit in find(text, words) if _is_activity(text, hit) and _suggests(text, hit, out=True)])


def _suggests(text: Text, hit: Hit, *, out: bool = False) -> bool:
    """Say whether a place or an activity is suggested.

    It is none where it heads a list ("Outdoor activities: …"), under a condition ("if you go outside"), advised
    against ("unpleasant for outdoor activities"), or only said to be liked ("Since you love hiking, …").
    """
    first, last, keyword = hit
    if denied(text, hit) or _is_liked(text, first) or _is_heading(text, last):
        return False
    begin = next((at + 1 for at in range(first - 1, -1, -1) if text.words[at] in _PART_ENDS), 0)
    if not _ON_CONDITION.isdisjoint(text.words[begin:first]):
        return False
    near = text.words[max(begin, first - _REACH) : first]
    if not _ADVERSE.isdisjoint(near) or (out and not _AGAINST_OUT.isdisjoint(near)):
        return False
    end = next((at for at in range(last + 1, len(text.words)) if text.words[at] in _PART_ENDS), len(text.words))
    after = text.words[last + 1 : min(end, last + 10)]
    if not _ADVERSE_AFTER.isdisjoint(after):
        return False
    return keyword not in _GENERAL or not _SUGGESTING.isdisjoint((*near, *after))


def _is_heading(text: Text, last: int) -> bool:
    """Say whether a word only heads what follows: "Outdoor activities:"."""
    at = last + 1
    while text.padded[at] in _ABOUT_ACTIVITIES:
        at += 1
    return text.padded[at] == ":" or (at > last + 1 and text.padded[at] in ("\n", ""))


def _is_activity(text: Text, hit: Hit) -> bool:
    """Say whether a word is meant as an activity: "a run", but not "trains run" or "the walk between the buses"."""
    first, last, keyword = hit
    before = text.words[max(first - 5, 0) : first]
    if keyword == "park":
        return not (before[-1:] and before[-1] in _NO_PARK_BEFORE)
    if keyword in ("run", "running"):
        return not (before[-1:] and before[-1] in ("are", "is", "trains", "will", "in", "long", "up"))
    if keyword == "walk":
        return not (before[-2:] == ["for", "the"] and text.padded[last + 1] in ("between", "to", "from"))
    return True


def _is_liked(text: Text, at: int) -> bool:
    """Say whether a word only names what the reader likes: "Since you love hiking, …"."""
    for place in range(at - 1, max(at - _REACH, -1), -1):
        word = text.words[place]
        if word in _SENTENCE_ENDS or word in (",", ":", "suggest", "recommend"):
            return False
        if word in _LIKED_BEFORE:
            return "you" in text.words[max(place - 4, 0) : place]
        if word == "your" and text.padded[place + 1] in _YOURS:
            return True
    return False
