"""Places: which places a question asks about, and which an answer names."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache
from itertools import compress, count

from keval_metrics_weather.reading.gazetteer import (
    ANOTHER,
    BEFORE_A_PLACE,
    CONTRASTING,
    LOCATING,
    NEVER_PLACES,
    NO_NAMES,
    NO_UNKNOWN_PLACES,
    SAYING,
    Place,
    after_regions,
    gazetteer,
    is_code,
    is_name,
    name_at,
    place_at,
)
from keval_metrics_weather.reading.times import HOURS, PARTS_OF_DAY
from keval_metrics_weather.reading.words import Text, any_of, before as words_before, read, vocabulary, word_set

OPENINGS = frozenset(vocabulary("openings"))
_PASSED_OVER = OPENINGS | word_set("me you very much a lot that all i forgot more one thing") | frozenset(".!,;:—–-\n")


def after_opening(text: Text) -> int:
    """Return the place of a message's first word that is no opening: of "and" in "Oh dear, thanks. And tomorrow?"."""
    return next((place for place, word in enumerate(text.words) if word not in _PASSED_OVER), len(text.words))


def find_names(text: Text, names: Iterable[str]) -> dict[str, list[int]]:
    """Return the offsets at which a text says each of the names that it does, whatever their case and accents."""
    wanted: dict[str, dict[int, dict[tuple[str, ...], str]]] = {}
    for name in names:
        words = tuple(read(name).words)
        if words and words[0] in text.index:
            wanted.setdefault(words[0], {}).setdefault(len(words), {}).setdefault(words, name)
    found: dict[str, list[int]] = {}
    for first, by_length in wanted.items():
        for length, known in by_length.items():
            for place in text.index[first]:
                said = known.get(tuple(text.words[place : place + length]))
                if said is not None:
                    found.setdefault(said, []).append(text.starts[place])
    return found


@lru_cache(maxsize=64)
def places_told(text: Text) -> tuple[Place, ...]:
    """Return the places that prose names: capitalised, and standing as a place does."""
    found: list[Place] = []
    known, words, original = gazetteer(), text.words, text.original
    done = 0
    for at in compress(count(), map(str.isupper, map(original.__getitem__, text.starts))):
        if at < done or (words[at] in NO_NAMES and words[at] != "the") or is_code(text, at):
            continue
        length = known.longest(words, at)
        stands = length and text.capitalised(at + length - 1) and _stands_in_prose(text, at, length)
        if not stands:
            length = _unknown_in_prose(text, at)
        if length:
            found.append(place_at(text, at, at + length))
            done = after_regions(text, at + length)
    return tuple(found)


def _stands_in_prose(text: Text, at: int, count: int) -> bool:
    name = " ".join(text.words[at : at + count])
    before, following = text.padded[at - 1], text.padded[at + count]
    if name in gazetteer().regions or _part_of_a_name(text, at, count):
        return False
    leads = before in ("", ".", "!", "?", "\n", "|", ":", ";", "(")
    if name in gazetteer().words:
        return before in LOCATING and (text.padded[at - 2] != "up") and following not in ("weather",)
    return leads or before in BEFORE_A_PLACE or before in CONTRASTING or before == "," or following in SAYING


def _part_of_a_name(text: Text, at: int, count: int) -> bool:
    """Say whether a name is only part of a longer one: "Lake Geneva", "Paris Agreement"."""
    end = at + count
    goes_on = end < len(text.words) and text.starts[end] == text.ends[end - 1] + 1 and text.capitalised(end)
    if goes_on and text.words[end] not in NO_NAMES and text.words[end] not in gazetteer().regions:
        return True
    begins = text.padded[at - 2] in ("", ".", "\n", "!", "?", ":")
    return at > 0 and is_name(text, at - 1) and not begins


def _unknown_in_prose(text: Text, at: int) -> int:
    """Count the words of a name that is not in the table but stands as a place: "in Rapla", "while Rapla enjoys"."""
    before = text.padded[at - 1]
    if before not in ("in", "while", "whereas"):
        return 0
    count = name_at(text, at)
    if before != "in" and text.padded[at + count] not in SAYING:
        return 0
    return count if text.words[at] not in gazetteer().regions else 0


_TOPICS = word_set("weather forecast temperature temperatures temp temps conditions outlook wetter")
_DAYS = frozenset(vocabulary("days"))
_AFTER_A_PLACE = (
    _DAYS
    | HOURS
    | PARTS_OF_DAY
    | _TOPICS
    | ANOTHER
    | {"", "?", ".", "!", "\n", ":", ";", "in", "at", "for", "weather's"}
)
_AFTER_AN_OPENING = _TOPICS | _DAYS - {"now", "on", "again", "please"}
_ASKED_ABOUT = frozenset({"looking", "doing", "today", "now", "like", "tomorrow", "this"})
_NAMING = frozenset({"meant", "mean", "compare", "with", "love", "about", "visit", "not", "why"})
_ADJECTIVES = frozenset({"nice", "normal", "fine", "boring", "surprise", "reading"})
# somebody's name, or "not Oslo", "not in Oslo", "instead of Oslo"
_NO_PLACE_AFTER = re.compile(
    rf"(?: am| name is|(?:(?<! or)(?<! why) not| instead of| rather than)(?: {any_of(LOCATING)})?) $"
)
_GREETINGS = frozenset({"hello", "hi", "hey", "dear", "thanks", "thank", "you", "bye", "goodbye"})


@lru_cache(maxsize=64)
def places_asked(text: Text) -> tuple[Place, ...]:
    """Return the places a user's message names, in free order ("Helsinki weather?") or lower case too."""
    found: list[Place] = []
    regions: list[Place] = []
    at = 0
    while at < len(text.words):
        count = _asked_at(text, at, found)
        if not count:
            at += 1
            continue
        place = place_at(text, at, at + count)
        alone = " ".join(place.words) in gazetteer().regions
        (regions if alone else found).append(place)
        at = after_regions(text, at + count)
    if len(found) > 1:
        found = [place for place in found if not _origin(text, place)] or found
    return tuple(found or regions)


def _origin(text: Text, place: Place) -> bool:
    """Say whether a place is only where somebody comes from: "I'm from Oslo, how is it in Rome?"."""
    at = bisect_left(text.starts, place.start)
    return text.padded[at - 1] == "from" and text.padded[at - 2] in ("am", "come", "are", "is")


def _asked_at(text: Text, at: int, found: list[Place]) -> int:
    """Count the words of the place that a user's message names at a place of its words; 0 if none."""
    word = text.words[at]
    if (word in NEVER_PLACES and word != "the") or not word[:1].isalpha() or is_code(text, at):
        return 0
    known = gazetteer()
    count = known.longest(text.words, at)
    if word == "the" and count < 2:
        return 0
    capital = not text.caseless and text.capitalised(at)
    name = " ".join(text.words[at : at + count])
    before = text.padded[at - 1]
    if before in _GREETINGS and at < 3 and capital and text.padded[at + 1] not in _TOPICS:
        return 0
    if _NO_PLACE_AFTER.search(words_before(text, at, 4)):
        return 0
    if count and name in known.regions and name not in known.names:
        return count if before in LOCATING or before in ("for", "of") or capital else 0
    if count and name not in known.words and (count > 1 or word not in OPENINGS):
        topic = text.padded[at + count] in _TOPICS or text.padded[at + count] in known.regions
        return max(count, name_at(text, at)) if capital and not topic else count
    if count and _a_word_as_a_place(text, at, count, capital, found):
        return count
    return _unknown_asked(text, at, capital, found)


def _a_word_as_a_place(text: Text, at: int, count: int, capital: bool, found: list[Place]) -> bool:
    """Say whether a name that is a word, too, stands as a place: "in Nice?", "bath thursday?", "goes or breda"."""
    before, following = text.padded[at - 1], text.padded[at + count]
    leads = at == 0 or before in (".", "!", "?", "\n", ",") or at == after_opening(text)
    region = following in gazetteer().regions or (
        following == "," and text.padded[at + count + 1] in gazetteer().regions
    )
    ends = following in _AFTER_A_PLACE or region
    if capital and not leads:
        return True
    if leads:
        about = following in _DAYS or following in _TOPICS or region or (capital and following in ("?", "."))
        joined = following in ("or", "and", "vs") and gazetteer().longest(text.words, at + count + 1) > 0
        return (about and (capital or len(text.words) <= 5)) or joined
    if (
        before in ("in", "near")
        or (before in _TOPICS and text.words[at] not in _ADJECTIVES)
        or (before in ("for", "at", "of") and text.padded[at - 2] in _TOPICS)
    ):
        return ends
    if before in ("or", "and", "vs") and found:
        return ends
    return before in ("how", "is") and following in _ASKED_ABOUT and text.said.isdisjoint(("it", "there"))


def _unknown_name_stands(text: Text, at: int, count: int, found: list[Place]) -> bool:
    before, following = text.padded[at - 1], text.padded[at + count]
    if before in BEFORE_A_PLACE or (before in CONTRASTING and following in SAYING):
        return True
    if text.words[at] in OPENINGS or at == after_opening(text):
        alone = following in ("", ".", "?") and at + count + 1 >= len(text.words) and text.words[at] not in OPENINGS
        return alone or following in _AFTER_AN_OPENING
    if before in _TOPICS or (before in ANOTHER and found):
        return True
    return following in _TOPICS or following in _DAYS or (before in _NAMING and following in _AFTER_A_PLACE)


def _unknown_asked(text: Text, at: int, capital: bool, found: list[Place]) -> int:
    """Count the words of a place that is not in the table: "in Rapla", "Rapla weather", "weather in wogga wogga"."""
    before = text.padded[at - 1]
    if capital:
        count = name_at(text, at)
        return count if count and _unknown_name_stands(text, at, count, found) else 0
    if before not in ("in", "near", "for", "at") or text.padded[at - 2] not in _TOPICS:
        return 0
    end = at
    while end - at <= 3 and text.padded[end].isalpha() and text.padded[end] not in NO_UNKNOWN_PLACES:
        if end > at and text.padded[end] in gazetteer().regions:
            break
        end += 1
    following = text.padded[end]
    if following in gazetteer().regions:
        return end - at
    inflected = text.words[at].endswith(("ing", "tion", "ness", "ment", "wear")) and end == at + 1
    stands = following in _AFTER_A_PLACE or following == "like" or following in SAYING
    return end - at if stands and not inflected else 0


def places_in_question(text: str) -> tuple[str, ...]:
    """Return the names of the places that a user's message asks about, as it spells them, each once."""
    return tuple(dict.fromkeys([place.name for place in places_asked(read(text))]))


def places_in_answer(text: str) -> tuple[str, ...]:
    """Return the names of the places that an assistant's message is about, as it spells them, each once."""
    return tuple(dict.fromkeys([place.name for place in places_told(read(text))]))
