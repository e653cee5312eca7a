"""Asking back: what an answer asks the user for, what it assumes instead, and where it points to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

import attrs

from keval_metrics_weather.reading.words import Hit, Said, Text, said, word_set

_SENTENCE_ENDS = frozenset(".!?\n")
_CLAUSE_BEGINS = _SENTENCE_ENDS | {"", ";", ":", "and", "or", "please", ",", "*", "also", "then", "—"}
_WHERE = word_set(
    "city cities town towns location locations place places village area region country zip postcode postal stadium"
    " where whereabouts destination airport address spot"
)
_WHEN = word_set("date dates day days when time times month hour weekend")
_WONDERING = frozenset({"which", "what", "where", "when", "whereabouts"})
_REQUESTING = word_set(
    "tell give specify provide share confirm name enter send clarify need needs require mention let type add include"
)
_GIVING = frozenset({"provide", "share", "give", "send", "supply", "paste", "enter"})
_DATA = frozenset(
    (about, what)
    for about in ("weather", "forecast", "temperature", "climate")
    for what in ("data", "information", "details", "conditions", "report", "forecast")
)
_OFFERING = frozenset({"would", "want", "anything", "shall", "should", "like", "else", "prefer", "interested"})
_PROMISING = frozenset({"will", "can", "to", "not", "would", "could"})
_DIFFERENT = frozenset({"another", "different", "elsewhere", "other"})
_ASSUMING = word_set("assume assuming assumed presumably presume presuming guess guessing supposing suppose")
_TAKING = (
    ("i", "will", "take"),
    ("i", "will", "use"),
    ("i", "will", "go", "with"),
    ("i", "have", "used"),
    ("i", "take", "it"),
)
_POINTING = word_set(
    "check try consult visit see look find use ask retry browse refer search contact turn head rely confirm wait"
    " come verify"
)
_POINTERS = word_set(
    "website websites site app apps radar accuweather windy bbc meteo radio institute office bureau service online"
    " com org net map page agency noaa nws channel google news live"
)
_HAVING = word_set("has have would will shows offers gives lists provides publishes")
_PUBLISHING = frozenset({"publishes", "posts", "carries", "publish"})
_ALTERNATIVELY = word_set("alternative alternatives alternatively instead meanwhile meantime otherwise")
_SITE = word_set("com org net gov no fi dk uk de pt hr be vn se ch ca au io")


@attrs.frozen
class Asking:
    """What an answer asks the user for: `place`, `time`, or which of `several` is meant; `found` are its words."""

    place: bool = False
    time: bool = False
    several: bool = False
    found: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.place or self.time or self.several


_NOTHING = Asking()


@lru_cache(maxsize=64)
def asking(text: Text) -> Asking:
    """Return what a text asks its reader for; an offer ("Would you like the forecast?") asks for nothing."""
    words_said = text.said
    if ("?" not in words_said and words_said.isdisjoint(_REQUESTING)) or (
        words_said.isdisjoint(_WHERE) and words_said.isdisjoint(_WHEN) and "mean" not in words_said
    ):
        return _NOTHING
    place = time = several = False
    found: list[str] = []
    for first, last in _sentences(text):
        words = text.words[first:last]
        if _asks_for_data(words):
            continue
        where, when = _WHERE.intersection(words), _WHEN.intersection(words)
        means = any(pair in (("you", "mean"), ("you", "meant")) for pair in pairwise(words))
        if not (where or when or means):
            continue
        question = text.padded[last] == "?"
        if question and means:
            several = True
            place = place or bool(where)
            at = next(at for at in range(first + 1, last) if text.words[at] in ("mean", "meant"))
            found.append(Said.at(text, at - 1, at, "do you mean"))
        elif (question and (_wonders(words) or _says_that_it_asks(words))) or _requests(words):
            place = place or bool(where)
            time = time or bool(when)
            asked = [at for at in range(first, last) if text.words[at] in where or text.words[at] in when]
            found += [Said.at(text, at, at, text.words[at]) for at in asked[:2]]
        elif question and where and not _DIFFERENT.isdisjoint(words) and _OFFERING.isdisjoint(words):
            place = True
            found += [Said.at(text, at, at, word) for word in sorted(where) for at in [first + words.index(word)]]
    return Asking(place, time, several, tuple(dict.fromkeys(found)))


def asks_for_data(text: Text, place: int) -> bool:
    """Say whether the sentence at a place asks for the weather itself: "Please provide me with the weather data"."""
    begin = next((at + 1 for at in range(place, -1, -1) if text.words[at] in _SENTENCE_ENDS), 0)
    end = next((at for at in range(place, len(text.words)) if text.words[at] in _SENTENCE_ENDS), len(text.words))
    return _asks_for_data(text.words[begin:end])


def _asks_for_data(words: Sequence[str]) -> bool:
    for at, word in enumerate(words):
        offered = at and words[at - 1] in _PROMISING and "you" not in words[max(at - 3, 0) : at]
        if word in _GIVING and not offered and any(pair in _DATA for pair in pairwise(words[at + 1 : at + 10])):
            return True
    return False


def _sentences(text: Text) -> Iterator[tuple[int, int]]:
    first = 0
    for place, word in enumerate(text.words):
        if word in _SENTENCE_ENDS:
            if place > first:
                yield first, place
            first = place + 1
    if first < len(text.words):
        yield first, len(text.words)


def _says_that_it_asks(words: Sequence[str]) -> bool:
    """Say whether a question says that it asks: "May I ask for the location?"."""
    return any(words[at : at + 3] in (["may", "i", "ask"], ["can", "i", "ask"]) for at in range(len(words)))


def _wonders(words: Sequence[str]) -> bool:
    """Say whether a question asks where or when: "Which city?", "What date is the wedding?", but "What else …?" not."""
    for at, word in enumerate(words):
        if word in _WONDERING:
            if "else" in words[at + 1 : at + 3]:
                return False
            if word in ("where", "when", "whereabouts"):
                return at < 4 or at == len(words) - 1 or "tell" in words or "know" in words or "need" in words
            near = words[at + 1 : at + 6]
            return not (_WHERE.isdisjoint(near) and _WHEN.isdisjoint(near))
    return False


def _requests(words: Sequence[str]) -> bool:
    """Say whether a sentence requests a place or a time: "Tell me where …", "please provide the name of your city"."""
    for at, word in enumerate(words):
        if word in ("where", "when") and at and words[at - 1] == "depends":
            return True
        if word not in _REQUESTING:
            continue
        if word == "let" and words[at : at + 3] != ["let", "me", "know"]:
            continue
        if "if" in words[at : at + 5]:
            return False
        promising = at and words[at - 1] in _PROMISING and words[0] in ("i", "once", "with")
        if promising and (word != "need" or words[at - 1] == "not"):
            continue
        if (
            word in ("provide", "give", "share", "include", "name", "mention", "send")
            and at
            and words[at - 1] in ("to", "can", "could")
            and "you" not in words[max(at - 8, 0) : at]
        ):
            continue
        return True
    return False


def assumed(text: Text) -> tuple[str, ...]:
    """Return the words by which an answer says that it takes a place or a time for granted."""
    found: list[Hit] = []
    if not text.said.isdisjoint(_ASSUMING):
        found += [(at, at, word) for at, word in enumerate(text.words) if word in _ASSUMING]
    for at in text.index.get("i", ()):
        taken = [taking for taking in _TAKING if tuple(text.words[at : at + len(taking)]) == taking]
        found += [(at, at + len(taking) - 1, " ".join(taking)) for taking in taken]
    return said(text, found)


@lru_cache(maxsize=64)
def alternatives_offered(text: Text) -> tuple[str, ...]:
    """Return the words by which an answer points to another source or way."""
    found: list[Hit] = []
    for word in sorted(text.said & _POINTING):
        for at in text.index[word]:
            before = text.padded[at - 1]
            may = before in ("can", "could", "may", "might", "to") and "you" in text.words[max(at - 4, 0) : at]
            if may or before in _CLAUSE_BEGINS:
                found.append((at, at, word))
    found += [(at, at, word) for word in sorted(text.said & _ALTERNATIVELY) for at in text.index[word][:1]]
    for word in sorted(text.said & _POINTERS):
        for at in text.index[word]:
            if _recommends(text, at):
                found.append((at, at, word))
    return said(text, found)


def _recommends(text: Text, at: int) -> bool:
    """Say whether a source is named for the reader to turn to: "the Institute's website has …", "yr.no"."""
    if text.words[at] in _SITE:
        return text.starts[at] > 0 and text.plain[text.starts[at] - 1] == "."
    before = text.words[max(at - 3, 0) : at]
    return not _HAVING.isdisjoint(text.words[at + 1 : at + 6]) or not (
        _PUBLISHING.isdisjoint(before) or {"no", "not"} & {*before}
    )
