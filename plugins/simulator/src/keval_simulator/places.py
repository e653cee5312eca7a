"""Places: which cities a text names. There is no gazetteer: capital letters and prepositions decide."""

from __future__ import annotations

import re

from keval_simulator.words import STOP, lexicon

__all__ = ["home_in", "places_after_in", "places_in"]

# A word that starts with a capital letter of any alphabet that has them: São, Łódź, Zürich, St.
_CAPITAL = r"(?:St\.|[^\W\d_a-zß-öø-ÿ][^\W\d_]*(?:[-'’][^\W\d_]+)*)"
_PARTICLE = r"(?:d[aeo]|del|la|le|los|las|of|upon|am|an|der|den|el|al|sur)"
_PHRASE = re.compile(rf"{_CAPITAL}(?:\s+(?:{_PARTICLE}\s+)?{_CAPITAL}){{0,3}}")
_AFTER_IN = re.compile(rf"\b(?:in|for|at)\s+({_PHRASE.pattern})")
_HOME = re.compile(
    rf"\b(?:lives? in|living in|located in|based in|home(?: city)?(?: is|:)|default city(?: is|:)|city:)"
    rf"\s+({_PHRASE.pattern})"
)
_LOWER = re.compile(
    r"\b(?:in|at|near|around|visit|visiting|for)\s+"
    r"((?:(?:new|san|santa|são|sao|los|las|rio de|buenos|cape|kuala|hong|tel|saint|el|abu|mexico|den)\s+)?[^\W\d_]{3,})"
)

_NOT_PLACES = lexicon("""
    am any anything are avoid based because best bring but can check clothes compare could current currently degrees
    did do does ever every everyone fine first forecast general get give going good great have hello help here hey hi
    home how however i i'd i'll i'm i've if indoor indoors instead is it it's its just keep know let like list looking
    maybe me mid much my need never next nice no nope note now ok okay only other our outdoor outdoors outside
    perhaps plan please pm quick rain recommend remember right save say set she should show since snow so some
    something sorry speaking store suggest sun sunny sure tell temperature temperatures thank thanks that that's the
    then there these they think this those thursday time to today tomorrow tonight tool trip umbrella unfortunately
    until update use user visiting warm warmer was we weather week weekend well what what's when where where's
    whether which who why will wind with would write yes yesterday you your morning afternoon evening night
    monday tuesday wednesday friday saturday sunday january february march april may june july august september
    october november december spring summer autumn winter fall celsius fahrenheit english metric imperial usd eur gbp
    day days general least minute hour hours month months noon lunch dinner breakfast work school advance detail
    short total particular case mind order progress it's i’m what’s it’s mr mrs ms dr compared convert search find
    actually after again also ah alright awesome back brilliant cool excellent fantastic hmm later lovely oh once
    perfect same still too wonderful wow yeah yep
    """)

_COUNTRIES = lexicon("""
    argentina australia austria belgium brazil canada chile china croatia czechia denmark egypt england estonia finland
    france germany greece hungary iceland india indonesia ireland israel italy japan kenya latvia lithuania malaysia
    mexico morocco netherlands norway peru poland portugal romania scotland serbia slovakia slovenia spain sweden
    switzerland thailand turkey uk ukraine usa vietnam wales
    """)


def places_in(text: str) -> tuple[str, ...]:
    """Return the places a user's message names, in order and without repeats.

    A country after its city ("Paris, France") is left out.
    """
    found = [place for match in _PHRASE.finditer(text) if (place := _trimmed(match[0]))]
    if not found:
        found = [match[1].title() for match in _LOWER.finditer(text) if _plausible(match[1])]
    unique = list(dict.fromkeys(found))
    cities = [place for place in unique if place.lower() not in _COUNTRIES]
    return tuple(cities or unique)


def places_after_in(text: str) -> tuple[str, ...]:
    """Return the places an assistant's prose names as "in Oslo"; its other capitals mean nothing."""
    return tuple(place for match in _AFTER_IN.finditer(text) if (place := _trimmed(match[1])))


def home_in(text: str) -> str | None:
    """Return where a system prompt says that the user is at home."""
    match = _HOME.search(text)
    return _trimmed(match[1]) or None if match else None


def _trimmed(phrase: str) -> str:
    """Drop words at either end that only look like names, and a possessive ending; may leave nothing."""
    words = re.sub(r"['’]s\b", "", phrase).split()
    while words and not _plausible(words[0]):
        words.pop(0)
    while words and not _plausible(words[-1]):
        words.pop()
    place = " ".join(words)
    # Short words in capitals are acronyms and currency codes, not places.
    return "" if place.isupper() and len(place) <= 3 else place


def _plausible(word: str) -> bool:
    return word.lower() not in _NOT_PLACES and word.lower() not in STOP
