"""Likes: where an answer acknowledges what its reader likes, and where it suggests to be in or out of doors."""

from __future__ import annotations

from functools import lru_cache

from keval_metrics_weather.reading.phrases import affirmed, denied, find
from keval_metrics_weather.reading.said import Said, said
from keval_metrics_weather.reading.words import Text, word_set

__all__ = ["acknowledged", "suggested_indoors", "suggested_outdoors"]

_LIKING = word_set(
    "dislike hate love prefer enjoy like mind loathe stand dread adore tolerate bear keen fan fond into sensitive"
    " averse disliking hating loving preferring enjoying liking partial"
)
_BETWEEN = word_set(
    "are do not really always usually generally also both can could much a big huge of be would never have told me"
    " said mentioned tend to that was the so quite being"
)
_YOURS = word_set(
    "love dislike preference preferences aversion fondness sensitivity hatred taste tastes liking interest passion"
)
_SENTENCE_ENDS = frozenset(".!?;\n")
_MOST_BETWEEN = 5


@lru_cache(maxsize=64)
def acknowledged(text: Text, phrases: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words by which an answer shows that it knows what its reader likes: "you're not keen on the cold".

    "Would you like …" and "if you'd like" offer, and "you might like" guesses.
    """
    found: list[str] = [*affirmed(text, phrases)]
    for at in text.index.get("you", ()):
        if text.word_at(at - 1) in ("would", "do", "did", "might", "may"):
            continue
        end = at + 1
        while end - at <= _MOST_BETWEEN and text.word_at(end) in _BETWEEN and text.word_at(end) not in _LIKING:
            end += 1
        between = text.words[at + 1 : end]
        likes = text.word_at(end) in _LIKING or text.words[end : end + 2] == ["one", "for"]
        if likes and "would" not in between and "could" not in between:
            if text.words[end] in ("like", "enjoy", "mind", "love") and (
                text.word_at(at - 1) == "if" or text.word_at(end + 1) in ("to", "me", "it", "!")
            ):
                continue
            found.append(Said.at(text, at, end, " ".join(text.words[at : end + 1])))
    for at in text.index.get("your", ()):
        if text.word_at(at + 1) in _YOURS and text.word_at(at + 2) != "app":
            found.append(Said.at(text, at, at + 1, f"your {text.words[at + 1]}"))
        elif text.word_at(at + 1) == "thing" and text.word_at(at - 1) in ("not", "is"):
            found.append(Said.at(text, at, at + 1, "your thing"))
    return tuple(dict.fromkeys(found))


_STAYING = word_set(
    "stay staying remain remaining keep keeping spend spending be being head activity activities museum day option"
    " options plan plans pool mall aquarium fun games venue venues cafe workshop market visit"
)
_OUT = frozenset({"outdoor", "outdoors", "outside"})
_GOING_OUT = word_set(
    "get getting go going head heading enjoy enjoying spend spending step take time activity activities plans"
    " perfect great ideal good lovely fine day exercise adventure adventures fun dining seating terrace sports make"
    " sit eat"
)
_NOT_OUTDOORS = word_set(
    "avoid avoiding limit cancel postpone skip instead rather stay staying indoors reschedule without"
)
_UNSUITABLE = word_set("recommended advisable advised ideal suitable suggested good best wise safe")
_NO_PARK_BEFORE = word_set("water car theme ball business indoor trailer amusement science")
_LIKED_BEFORE = word_set("love loves enjoy enjoys like likes prefer loving mentioned keen fan hobby")
_ONLY_IF = frozenset({"if", "unless", "should", "when", "before", "whenever"})
_REACH = 9


def suggested_indoors(text: Text, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the places and activities under a roof that an answer suggests."""
    found = []
    for first, last, keyword in find(text, words):
        if denied(text, (first, last, keyword)):
            continue
        if keyword in ("indoor", "indoors", "inside") and _STAYING.isdisjoint(
            text.words[max(first - 5, 0) : first + 4]
        ):
            continue
        if not _is_liked(text, first):
            found.append((first, last, keyword))
    return said(text, found)


def suggested_outdoors(text: Text, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the activities in the open that an answer suggests; mentioning what it is like outside is none."""
    found = []
    for first, last, keyword in find(text, words):
        if denied(text, (first, last, keyword)) or _is_liked(text, first) or _ruled_out(text, first):
            continue
        before = text.words[max(first - 5, 0) : first]
        if keyword in _OUT:
            around = (*before, *text.words[last + 1 : last + 3])
            if _GOING_OUT.isdisjoint(around) or not _ONLY_IF.isdisjoint(before):
                continue
        if keyword == "park" and before[-1:] and before[-1] in _NO_PARK_BEFORE:
            continue
        if (
            keyword in ("run", "running")
            and before[-1:]
            and before[-1] in ("are", "is", "trains", "will", "in", "long", "up")
        ):
            continue
        if keyword == "walk" and before[-2:] == ["for", "the"] and text.word_at(last + 1) in ("between", "to", "from"):
            continue
        found.append((first, last, keyword))
    return said(text, found)


def _is_liked(text: Text, at: int) -> bool:
    """Say whether a word only names what the reader likes: "Since you love hiking, …"."""
    for place in range(at - 1, max(at - _REACH, -1), -1):
        word = text.words[place]
        if word in _SENTENCE_ENDS or word in (",", ":", "suggest", "recommend"):
            return False
        if word in _LIKED_BEFORE:
            return "you" in text.words[max(place - 4, 0) : place]
        if word == "your" and text.word_at(place + 1) in _YOURS:
            return True
    return False


def _ruled_out(text: Text, at: int) -> bool:
    """Say whether the clause advises against it: "avoid outdoor sports", "not a day for the beach"."""
    for place in range(at - 1, max(at - _REACH, -1), -1):
        word = text.words[place]
        if word in _SENTENCE_ENDS or word == ",":
            return False
        if word in _NOT_OUTDOORS:
            return True
    after = text.words[at + 1 : at + 7]
    return after[:1] == ["instead"] or ("not" in after[:4] and not _UNSUITABLE.isdisjoint(after))
