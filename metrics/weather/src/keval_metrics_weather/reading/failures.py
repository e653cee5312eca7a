"""Failures: where an answer says that something failed or that data is missing."""

from __future__ import annotations

import re
from functools import lru_cache

import attrs

from keval_metrics_weather.reading.words import Hit, Text, any_of, denied, find, matches, said, vocabulary, word_set

GETTING = frozenset(vocabulary("getting"))
SERVICES = frozenset(vocabulary("services"))
BROKEN = frozenset(vocabulary("broken"))
NOT_DONE = frozenset(vocabulary("not done"))
TROUBLES = word_set(
    "error errors issue issues problem problems trouble snag hiccup glitch difficulty difficulties fault"
)
MEETING = word_set("hit ran run having had encountered encountering experiencing met was is seems an having an")
KEPT = frozenset(vocabulary("kept"))
_BETWEEN = word_set("current live recent weather reliable real time such available more matching real-time further any")
_ADDRESSED = frozenset({"you", "one", "people", "it", "they"})
_SPEAKING = frozenset({"i", "we"})
_MARKS = frozenset(".!?;:,()\n—–-|")
_SENTENCE_ENDS = frozenset(".!?;\n|")
_VAGUE_WORDS = frozenset({"sorry", "couldn't", "unable", "error"})
"""Error words of the document that an answer also uses where nothing failed: "sorry to say that it rains"."""

_ANY = r"(?:\S{1,64} )"
_WORDS = r"(?:[^\W_]\S{0,64} )"
_IN_A_CLAUSE = r"(?:(?!you |but )[^.!?;|\s]\S{0,64} )"
_PATTERNS = (
    # "couldn't retrieve", "wasn't able to load", "unable to access", "failed to get"
    rf"(?P<both>(?:could not|unable|failed|\w{{2,5}} not able) {_WORDS}{{0,5}}?{any_of(GETTING)})",
    rf"(?P<missing>can not {_WORDS}{{0,5}}?{any_of(GETTING)})",
    rf"(?P<missing>do not have) {_ANY}{{0,5}}?{any_of(KEPT)}",
    # "the service is down", "the lookup came back empty", "the provider did not answer", "timed out"
    rf"{any_of(SERVICES)} {_IN_A_CLAUSE}{{0,6}}?(?P<broken>{any_of(BROKEN)})",
    rf"{any_of(SERVICES)} {_IN_A_CLAUSE}{{0,6}}?(?P<missing>not {_ANY}{{0,2}}{any_of(NOT_DONE)})",
    r"(?P<missing>tim(?:ed|ing|es) out|unavailable)",
    # "an issue in fetching", "having trouble getting", "hit a snag pulling up", "something went wrong", "status 500"
    rf"{any_of(MEETING)} {_ANY}{{0,4}}?(?P<trouble>{any_of(TROUBLES)})(?= {_ANY}{{0,4}}{any_of(GETTING)} )",
    rf"(?P<trouble>errors?)(?= {_ANY}{{0,4}}{any_of(GETTING)} )",
    rf"{any_of(MEETING)} {_ANY}{{0,4}}?(?P<error>{any_of(TROUBLES)}) {_ANY}{{0,4}}?{any_of(SERVICES)}",
    rf"(?P<error>errors?) (?:{_ANY}{{0,4}}?{any_of(SERVICES)}|[:.!—]|occurred|code|message)",
    r"(?:an|the|api|internal|server) (?P<error>errors?)",
    rf"{any_of(MEETING)} {_ANY}{{0,4}}?(?P<error>snag|hiccup|glitch)",
    r"(?:something|has|have) (?P<error>(?:went|gone|goes) wrong)",
    rf"(?P<error>status|returned|code|http) {_ANY}{{0,3}}?[45]\d\d",
    # "no current reading", "no weather data", "lack access", "beyond what I can look up"
    rf"(?P<missing>no (?:{any_of(_BETWEEN)} ){{0,3}}{any_of(KEPT)})(?! of | alerts )",
    r"have (?P<missing>no way) (?:of|to)",
    rf"(?P<missing>lack|lacking|without) {_ANY}{{0,2}}{any_of(KEPT)}",
    r"(?P<missing>beyond) (?:what|my) (?:i|we|reach|tools)",
)
_TOLD = tuple([re.compile(rf" {pattern} ") for pattern in _PATTERNS])
# Most answers tell of no failure, which their set of words says at once.
_HINTS = BROKEN | TROUBLES | word_set("not unable timed timing times wrong status returned code http no lack lacking")
_HINTS |= {"without", "beyond"}


@attrs.frozen
class Failures:
    """How an answer tells of failures (`errors`) and of missing data (`missing`): the words by which it does."""

    errors: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def told(self) -> tuple[str, ...]:
        """Both, each once."""
        return tuple(dict.fromkeys((*self.errors, *self.missing)))


@lru_cache(maxsize=64)
def failures(text: Text, error_words: tuple[str, ...] = (), missing_words: tuple[str, ...] = ()) -> Failures:
    """Return what a text says of failures.

    Some are told by how words stand together ("the lookup … came back empty"), some by `error_words` and
    `missing_words`. What one need not or cannot do is none: "you don't have to", "you can't get a nicer day".
    """
    missing: dict[int, Hit] = {}
    errors: dict[int, Hit] = {}
    for pattern in () if text.said.isdisjoint(_HINTS) else _TOLD:
        for kind, first, last in matches(text, pattern):
            hit = (first, last, text.plain[text.starts[first] : text.ends[last]])
            if _of_another(text, first, first + 1) if kind in ("both", "missing") else denied(text, hit):
                continue
            if kind != "error":
                missing.setdefault(first, hit)
            if kind in ("both", "error", "trouble"):
                errors.setdefault(first, hit)
    for hit in find(text, missing_words):
        if not denied(text, hit) and not _of_another(text, *hit[:2]):
            missing.setdefault(hit[0], hit)
    told = {*errors, *missing}
    for hit in find(text, error_words):
        if not denied(text, hit) and (hit[2] not in _VAGUE_WORDS or told):
            errors.setdefault(hit[0], hit)
    not_there = ("n/a",) if "n/a" in text.plain else ()
    return Failures(said(text, sorted(errors.values())), (*said(text, sorted(missing.values())), *not_there))


def _of_another(text: Text, first: int, last: int) -> bool:
    """Say whether "don't have", "can't get" and the like are said of an obligation or of another than the speaker."""
    if text.padded[last] == "have" and text.padded[last + 1] == "to":
        return True
    if text.words[first] not in ("can", "do", "could", "would"):
        return text.padded[first - 1] == "which"  # "it doesn't have data" is said of a service
    for at in range(first - 1, max(first - 3, 0) - 1, -1):
        word = text.words[at]
        if word in _ADDRESSED or word in _SPEAKING or word in _MARKS:
            return word in _ADDRESSED and not (word in ("it", "they") and text.words[first] == "could")
    return False
