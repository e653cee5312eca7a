"""Asking back: what an answer asks the user for, what it assumes instead, and where it points to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from operator import itemgetter

import attrs

from keval_metrics_weather.reading.words import Hit, Said, Text, any_of, matches, said, vocabulary, word_set

_SENTENCE_ENDS = frozenset(".!?\n")
_WHERE = frozenset(vocabulary("where"))
_WHEN = word_set("date dates day days when time times month hour weekend")
_DIFFERENT = frozenset({"another", "different", "elsewhere", "other"})
_OFFERING = frozenset({"would", "want", "anything", "shall", "should", "like", "else", "prefer", "interested"})
_REQUESTING = word_set(
    "tell give specify provide share confirm name enter send clarify need needs require mention type add include"
)
_ASSUMING = word_set("assume assuming assumed presumably presume presuming guess guessing supposing suppose")
_POINTING = frozenset(vocabulary("pointing"))
_POINTERS = frozenset(vocabulary("pointers"))

_ANY = r"(?:\S{1,64} )"
_FOR_DATA = re.compile(
    rf"(?<! will)(?<! can)(?<! to)(?<! could) (?:provide|share|give|send|supply|paste|enter) {_ANY}{{0,8}}?"
    r"(?:weather|forecast|temperature|climate) (?:data|information|details|conditions|report|forecast) "
)
_WONDERING = re.compile(
    rf" (?:which|what) (?!else |\S{{1,64}} else ){_ANY}{{0,4}}?{any_of(_WHERE | _WHEN)} "
    rf"|^ {_ANY}{{0,3}}(?:where|when|whereabouts) (?!else )|(?:where|when|whereabouts) $| (?:may|can) i ask "
    rf"| (?:tell|know|need) {_ANY}{{0,9}}(?:where|when) "
)
_REQUEST = re.compile(
    r"(?P<promise> will| can| to| not| would| could)?"
    rf" (?:depends (?:where|when)|let me know|{any_of(_REQUESTING)})(?= (?P<rest>{_ANY}{{0,4}}))"
)
_ASSUMED = re.compile(rf" (?P<said>{any_of(_ASSUMING)}|i will (?:take|use|go with)|i have used|i take it)(?= )")
_ALTERNATIVES = (
    re.compile(
        rf"(?:^|[.!?\n;:,*—]|and|or|please|also|then| you {_ANY}{{0,2}}(?:can|could|may|might|to))"
        rf" (?P<said>{any_of(_POINTING)})(?= )"
    ),
    re.compile(r" (?P<said>alternative|alternatives|alternatively|instead|meanwhile|meantime|otherwise)(?= )"),
    # "the Institute's website has …", "the bureau publishes a map"
    re.compile(
        rf" (?P<said>{any_of(_POINTERS)}) {_ANY}{{0,4}}?"
        r"(?:has|have|would|will|shows|offers|gives|lists|provides|publishes)(?= )"
    ),
    re.compile(rf" (?:publish|publishes|posts|carries) (?!no |not ){_ANY}{{0,2}}?(?P<said>{any_of(_POINTERS)})(?= )"),
)
_SITE = re.compile(r"[a-z0-9]\.(com|org|net|gov|no|fi|dk|uk|de|pt|hr|be|vn|se|ch|ca|au|io)\b")


@attrs.frozen
class Asking:
    """What an answer asks the user for: `place`, `time`, or which of `several` is meant; `found` are its words."""

    place: bool = False
    time: bool = False
    several: bool = False
    found: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.place or self.time or self.several


@lru_cache(maxsize=64)
def asking(text: Text) -> Asking:
    """Return what a text asks its reader for; an offer ("Would you like the forecast?") asks for nothing."""
    place = time = several = False
    found: list[str] = []
    for first, last in _sentences(text):
        words = text.words[first:last]
        line, question = f" {' '.join(words)} ", text.padded[last] == "?"
        named = [at for at in range(first, last) if text.words[at] in _WHERE or text.words[at] in _WHEN]
        means = question and (" you mean " in line or " you meant " in line)
        if not (named or means) or _asks_for_data(line):
            continue
        elsewhere = question and not _DIFFERENT.isdisjoint(words) and _OFFERING.isdisjoint(words)
        if not (means or elsewhere or (question and _WONDERING.search(line)) or _requests(line)):
            continue
        place = place or not _WHERE.isdisjoint(words)
        time = time or (not means and not _WHEN.isdisjoint(words))
        several = several or means
        meant = [at for at in range(first + 1, last) if text.words[at] in ("mean", "meant")] if means else []
        found += [Said.at(text, at - 1, at, "do you mean") for at in meant[:1]]
        found += [Said.at(text, at, at, text.words[at]) for at in named[:2] if not means]
    return Asking(place, time, several, tuple(dict.fromkeys(found)))


def asks_for_data(text: Text, place: int) -> bool:
    """Say whether the sentence at a place asks for the weather itself: "Please provide me with the weather data"."""
    around = next((text.words[first:last] for first, last in _sentences(text) if first <= place < last), ())
    return _asks_for_data(f" {' '.join(around)} ")


def _asks_for_data(line: str) -> bool:
    return _FOR_DATA.search(line) is not None


def _sentences(text: Text) -> Iterator[tuple[int, int]]:
    first = 0
    for last in (*text.places_of(_SENTENCE_ENDS), len(text.words)):
        if last > first:
            yield first, last
        first = last + 1


def _requests(line: str) -> bool:
    """Say whether a sentence requests a place or a time: "Tell me where …", "please provide the name of your city"."""
    for found in _REQUEST.finditer(line):
        if " if " in f" {found['rest']}":
            return False
        promise = found["promise"]
        by_the_speaker = line.startswith((" i ", " once ", " with ")) or " you " not in line[: found.start()]
        if not (promise and by_the_speaker) or (promise == " not" and " need " in found.group() + " "):
            return True
    return False


def assumed(text: Text) -> tuple[str, ...]:
    """Return the words by which an answer says that it takes a place or a time for granted."""
    return said(text, _hits(text, _ASSUMED))


@lru_cache(maxsize=64)
def alternatives_offered(text: Text) -> tuple[str, ...]:
    """Return the words by which an answer points to another source or way."""
    sites = [Said(found[1], text, *found.span(1)) for found in _SITE.finditer(text.plain)]
    hits = [hit for pattern in _ALTERNATIVES for hit in sorted(_hits(text, pattern), key=itemgetter(2))]
    return (*said(text, hits), *sites)


def _hits(text: Text, pattern: re.Pattern[str]) -> list[Hit]:
    return [(first, last, " ".join(text.words[first : last + 1])) for _, first, last in matches(text, pattern)]
