"""Advice: the recommendations a text gives, and where the first of them stands."""

from __future__ import annotations

from functools import lru_cache

import attrs

from keval_metrics_weather.reading.phrases import Hit, denied, find
from keval_metrics_weather.wording import ITEMS, RECOMMENDING
from keval_metrics_weather.reading.words import Text, word_set

__all__ = ["Advice", "advice", "advice_against", "reasons_given"]

_ADVISED = frozenset({"you", "we", "i", "one", "everyone", "people", "travellers", "travelers", "also", "definitely"})
_ACTIONS = frozenset(
    {"bring", "take", "wear", "carry", "pack", "dress", "consider", "avoid", "use", "plan", "keep", "grab", "opt"}
)
_AFTER_A_SINCE_OF_TIME = word_set(
    "yesterday monday tuesday wednesday thursday friday saturday sunday morning noon midnight last january"
    " february march april may june july august september october november december early then dawn"
)
_NOUN_ENDINGS = ("ion", "ions")
_NOUN_REACH = 12
_PROMISING = frozenset({"can", "could", "will", "shall", "may", "might", "would"})
_SENTENCE_ENDS = frozenset(".!?\n")
_UNDECIDED = frozenset({"can", "could", "able", "unable", "if", "whether"})


@attrs.frozen
class Advice:
    """The distinct recommending words and items that a text affirms, in its order; `start` is the first's offset."""

    words: tuple[str, ...]
    items: tuple[str, ...]
    start: int | None


def advice(text: Text, recommending: tuple[str, ...] = RECOMMENDING, items: tuple[str, ...] = ITEMS) -> Advice:
    """Return the recommendations of a text; "won't need an umbrella" and "it should be sunny" are none."""
    return _advice(text, recommending, items)


@lru_cache(maxsize=64)
def _advice(text: Text, recommending: tuple[str, ...], items: tuple[str, ...]) -> Advice:
    hits = [
        hit
        for hit in find(text, _all_words(recommending, items))
        if not denied(text, hit) and (hit[2] != "should" or _advises(text, hit[0])) and not _promised(text, hit)
    ]
    if not hits:
        return Advice((), (), None)
    words = tuple(dict.fromkeys([keyword for _, _, keyword in hits]))
    return Advice(words, tuple([word for word in words if word in items]), text.starts[hits[0][0]])


def advice_against(text: Text, recommending: tuple[str, ...], items: tuple[str, ...]) -> Advice:
    """Return what a text advises against: "you won't need an umbrella", but not "I can't recommend anything"."""
    hits = [
        hit for hit in find(text, _all_words(recommending, items)) if denied(text, hit) and not _withheld(text, hit)
    ]
    if not hits:
        return Advice((), (), None)
    words = tuple(dict.fromkeys([keyword for _, _, keyword in hits]))
    return Advice(words, tuple([word for word in words if word in items]), text.starts[hits[0][0]])


def _withheld(text: Text, hit: Hit) -> bool:
    """Say whether no recommendation is given, rather than one against something: "I don't know if you need a coat"."""
    place, _, keyword = hit
    if text.words[place].endswith(_NOUN_ENDINGS) and not keyword.endswith(_NOUN_ENDINGS):
        return True
    for at in range(place - 1, max(place - _NOUN_REACH, -1), -1):
        if text.words[at] in _SENTENCE_ENDS or text.words[at] == ",":
            break
        if text.words[at] in _UNDECIDED:
            return True
    return False


@lru_cache(maxsize=16)
def _all_words(recommending: tuple[str, ...], items: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*recommending, *items)))


def _advises(text: Text, place: int) -> bool:
    """Say whether a "should" is advice ("you should …") rather than expectation ("it should be sunny")."""
    following = text.word_at(place + 1)
    if following in ("i", "you", "we"):
        return False  # "should you need more" and "what should I add" ask
    if following == "not" and text.word_at(place + 2) in ("need", "be"):
        return False  # "you should not need an umbrella" expects
    return following in _ACTIONS or text.word_at(place - 1) in _ADVISED


def _promised(text: Text, hit: Hit) -> bool:
    """Say whether a noun such as "recommendation" is only offered, promised or asked about, rather than given."""
    place, _, keyword = hit
    if not text.words[place].endswith(_NOUN_ENDINGS) or keyword.endswith(_NOUN_ENDINGS):
        return False  # a verb, or an item such as "lotion"
    if text.word_at(place + 1) == ":":
        return False
    for at in range(place - 1, max(place - _NOUN_REACH, 0), -1):
        if text.words[at] in _SENTENCE_ENDS:
            break
        if text.words[at] in _PROMISING and text.words[at - 1] in ("i", "we", "you"):
            return True
    following = text.words[place + 1 : place + _NOUN_REACH]
    mark = next((word for word in following if word in _SENTENCE_ENDS), "")
    return mark == "?" or following[:1] == ["will"]


def reasons_given(text: Text, reasons: tuple[str, ...]) -> tuple[str, ...]:
    """Return the reasoning words a text uses; a "since" of time ("since Monday") is none."""
    found = []
    for _, last, keyword in find(text, reasons):
        following = text.word_at(last + 1)
        of_time = keyword == "since" and (following in _AFTER_A_SINCE_OF_TIME or following.isdecimal())
        if not of_time:
            found.append(keyword)
    return tuple(dict.fromkeys(found))
