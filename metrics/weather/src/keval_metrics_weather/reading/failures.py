"""Failures: where an answer says that something failed or that data is missing."""

from __future__ import annotations

from collections.abc import Set
from functools import lru_cache

import attrs

from keval_metrics_weather.reading.words import Hit, Said, Text, denied, find, word_set

GETTING = word_set(
    "retrieve get fetch access find load reach pull obtain check connect provide give tell show see look determine"
    " confirm locate say display complete process return answer bring retrieving getting fetching accessing finding"
    " loading reaching pulling obtaining checking connecting looking reading querying contacting verify open query"
    " contact read download retrieved fetched accessed found loaded reached obtained displayed returned received"
    " receive shown verified determined located completed processed supply offer report"
)
SERVICES = word_set(
    "service services api tool tools server servers provider source sources station lookup query request system"
    " connection data feed backend call value reading readings figure figures measurement information database"
    " network upstream forecast endpoint site result results details observations page"
)
BROKEN = word_set(
    "down unavailable offline failed fails failing timeout refused unreachable broken empty missing inaccessible"
    " overloaded interrupted malfunctioning outage"
)
NOT_DONE = word_set(
    "respond responding answer answering available work working return returning come load loading sent reachable"
    " deliver responded answered found accessible update updating through arrive supported included functioning back"
    " known listed extend cover"
)
TROUBLES = word_set(
    "error errors issue issues problem problems trouble snag hiccup glitch difficulty difficulties fault"
)
MEETING = word_set("hit ran run having had encountered encountering experiencing met was is seems an having an")
KEPT = word_set(
    "data reading readings information info forecast figures record records results result observations"
    " measurements details access response reply luck"
)
_SENTENCE_ENDS = frozenset(".!?;\n|")
_MARKS = frozenset(".!?;:,()\n—–-|")
_ABLE = word_set("can could was am were is are did does do has have had would")
_BETWEEN = word_set("current live recent weather reliable real time such available more matching real-time further any")
_ADDRESSED = frozenset({"you", "one", "people", "it", "they"})
_SPEAKING = frozenset({"i", "we"})
_VAGUE_WORDS = frozenset({"sorry", "couldn't", "unable", "error"})
"""Error words of the document that an answer also uses where nothing failed: "sorry to say that it rains"."""

_AFTER_A_QUOTE = " .,;:!?*("
_REACH = 7
_SENTENCE = 30


@attrs.frozen
class Failures:
    """How an answer tells of failures (`errors`) and of missing data (`missing`): the words by which it does."""

    errors: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def told(self) -> tuple[str, ...]:
        """Both, each once."""
        return tuple(dict.fromkeys((*self.errors, *self.missing)))


_NONE = Failures((), ())
_HINTS = (
    word_set(
        "not unable failed fails no n unavailable timed timing times offline empty wrong sorry lack lacking without"
        " beyond"
    )
    | TROUBLES
    | BROKEN
)


@lru_cache(maxsize=64)
def failures(text: Text, error_words: tuple[str, ...] = (), missing_words: tuple[str, ...] = ()) -> Failures:
    """Return what a text says of failures.

    Some are told by how words stand together ("the lookup … came back empty"), some by `error_words` and
    `missing_words`. What one need not or cannot do is none: "you don't have to", "you can't get a nicer day".
    """
    missing: dict[int, str] = {}
    errors: dict[int, str] = {}
    if not text.said.isdisjoint(_HINTS):
        _inability(text, errors, missing)
        _services(text, missing)
        _troubles(text, errors, missing)
        _nothing_kept(text, missing)
    for hit in find(text, missing_words) if missing_words else ():
        if not denied(text, hit) and not _of_another(text, hit):
            missing.setdefault(hit[0], Said.at(text, *hit))
    told = {*errors, *missing}
    for hit in find(text, error_words) if error_words else ():
        if not denied(text, hit) and (hit[2] not in _VAGUE_WORDS or _near(text, hit[0], told)):
            errors.setdefault(hit[0], Said.at(text, *hit))
    if not (errors or missing):
        return _NONE
    return Failures(_listed(errors), _listed(missing))


def _listed(found: dict[int, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([found[place] for place in sorted(found)]))


def _near(text: Text, place: int, told: Set[int]) -> bool:
    """Say whether a failure is told in the same sentence as a word or in the next."""
    ends = 0
    for at in range(place, min(place + _SENTENCE, len(text.words))):
        if at in told:
            return True
        if text.words[at] in _SENTENCE_ENDS:
            ends += 1
            if ends == 2:
                break
    for at in range(place, max(place - _SENTENCE, -1), -1):
        if text.words[at] in _SENTENCE_ENDS:
            return False
        if at in told:
            return True
    return False


def _quote(text: Text, first: int, last: int) -> str:
    end = text.starts[last + 1] if last + 1 < len(text.starts) else len(text.plain)
    piece = text.plain[text.starts[first] : end]
    name = " ".join(piece.split()).rstrip(_AFTER_A_QUOTE)
    return Said(name, text, text.starts[first], text.starts[first] + len(piece.rstrip(f"{_AFTER_A_QUOTE}\n")))


def _inability(text: Text, errors: dict[int, str], missing: dict[int, str]) -> None:
    """Find "couldn't retrieve", "wasn't able to load", "unable to access", "failed to get", "cannot be displayed"."""
    starts = [at for at in text.index.get("not", ()) if text.padded[at - 1] in _ABLE]
    starts += [*text.index.get("unable", ()), *text.index.get("failed", ())]
    for at in starts:
        first = at - 1 if text.words[at] == "not" else at
        if text.words[at] == "not" and text.words[at - 1] not in ("can", "could") and text.padded[at + 1] != "able":
            continue
        for last in range(at + 1, min(at + _REACH, len(text.words))):
            word = text.words[last]
            if word in _MARKS:
                break
            if word in GETTING:
                if not _of_another(text, (first, last, "")) and text.padded[first - 1] != "which":
                    missing.setdefault(first, _quote(text, first, last))
                    if (
                        text.words[at - 1] == "could"
                        or text.words[at] in ("unable", "failed")
                        or "able" in text.words[at:last]
                    ):
                        errors.setdefault(first, _quote(text, first, last))
                break
    for at in text.index.get("have", ()):
        lacking = text.words[at - 2 : at] == ["do", "not"] and not KEPT.isdisjoint(text.words[at + 1 : at + 7])
        if lacking and not _of_another(text, (at - 2, at, "")):
            missing.setdefault(at - 2, _quote(text, at - 2, at))


def _services(text: Text, missing: dict[int, str]) -> None:
    """Find "the service is down", "the lookup came back empty", "the provider did not answer", "timed out"."""
    for at in text.places_of(BROKEN):
        if _subject(text, at) and not denied(text, (at, at, "")):
            missing.setdefault(at, _quote(text, at, at))
    for at in text.index.get("not", ()):
        if _subject(text, at) and not NOT_DONE.isdisjoint(text.words[at + 1 : at + 4]):
            missing.setdefault(at, _quote(text, at - 1, min(at + 3, len(text.words) - 1)))
    for word in ("timed", "timing", "times"):
        for at in text.index.get(word, ()):
            if text.padded[at + 1] == "out":
                missing.setdefault(at, Said.at(text, at, at + 1, f"{word} out"))
    for at in text.index.get("unavailable", ()):
        missing.setdefault(at, Said.at(text, at, at, "unavailable"))
    if (start := text.plain.find("n/a")) >= 0:
        missing.setdefault(len(text.words), Said("n/a", text, start, start + 3))


def _subject(text: Text, at: int) -> bool:
    """Say whether a service or data is the subject of what stands at a place."""
    for before in range(at - 1, max(at - 1 - _REACH, -1), -1):
        word = text.words[before]
        if word in SERVICES:
            return True
        if word in _SENTENCE_ENDS or word in ("you", "but"):
            return False
    return False


def _troubles(text: Text, errors: dict[int, str], missing: dict[int, str]) -> None:
    """Find "an issue in fetching", "having trouble getting", "hit a snag pulling up", "something went wrong"."""
    for at in text.places_of(TROUBLES):
        word = text.words[at]
        if denied(text, (at, at, word)):
            continue
        before, after = text.words[max(at - 5, 0) : at], text.words[at + 1 : at + 6]
        getting = not GETTING.isdisjoint(after) or not SERVICES.isdisjoint(after)
        met = not MEETING.isdisjoint(before)
        if (getting and (met or word.startswith("error"))) or (word.startswith("error") and _bare_error(text, at)):
            errors.setdefault(at, _quote(text, at, at))
            if not GETTING.isdisjoint(after):  # what could not be got is missing
                missing.setdefault(at, _quote(text, at, at))
        elif word in ("snag", "hiccup", "glitch") and met:
            errors.setdefault(at, Said.at(text, at, at, word))
    for at in text.index.get("wrong", ()):
        went = text.padded[at - 1] in ("went", "gone", "goes")
        if went and text.padded[at - 2] in ("something", "has", "have", ""):
            errors.setdefault(at, Said.at(text, at - 1, at, "went wrong"))
    for word in ("status", "returned", "code", "http"):
        for at in text.index.get(word, ()):
            if any(w.isdecimal() and len(w) == 3 and w[0] in "45" for w in text.words[at + 1 : at + 5]):
                errors.setdefault(at, _quote(text, at, at))


def _bare_error(text: Text, at: int) -> bool:
    named = text.padded[at - 1] in ("an", "the", "api", "internal", "server")
    return named or text.padded[at + 1] in (":", "occurred", "code", "message", "!", ".", "—")


def _nothing_kept(text: Text, missing: dict[int, str]) -> None:
    """Find "no current reading", "no weather data", "no response", "lack access", "beyond what I can look up"."""
    for at in text.index.get("no", ()):
        last = at + 1
        while text.padded[last] in _BETWEEN and last - at < 4:
            last += 1
        following = text.padded[last + 1]
        if text.padded[last] in KEPT and following not in ("of", "alerts"):
            missing.setdefault(at, _quote(text, at, last))
        elif text.padded[last] == "way" and text.padded[at - 1] == "have" and following in ("of", "to"):
            missing.setdefault(at, Said.at(text, at, last, "no way"))
    for word in ("lack", "lacking", "without"):
        for at in text.index.get(word, ()):
            if not KEPT.isdisjoint(text.words[at + 1 : at + 4]):
                missing.setdefault(at, _quote(text, at, at + 1))
    for at in text.index.get("beyond", ()):
        if text.padded[at + 1] in ("what", "my") and text.padded[at + 2] in ("i", "we", "reach", "tools"):
            missing.setdefault(at, Said.at(text, at, at, "beyond"))


def _of_another(text: Text, hit: Hit) -> bool:
    """Say whether "don't have", "can't get" and the like are said of an obligation or of another than the speaker."""
    first, last, _ = hit
    if text.words[last] == "have" and text.padded[last + 1] == "to":
        return True
    if text.words[first] not in ("can", "do", "could", "would"):
        return False  # "it doesn't have data" is said of a service
    for at in range(first - 1, max(first - 3, 0) - 1, -1):
        word = text.words[at]
        if word in _ADDRESSED or word in _SPEAKING or word in _MARKS:
            return word in _ADDRESSED and not (word in ("it", "they") and text.words[first] == "could")
    return False
