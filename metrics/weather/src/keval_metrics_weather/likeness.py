"""Likeness: do two of a user's messages ask the same."""

from __future__ import annotations

from functools import lru_cache

from keval_metrics_weather.queries import Query
from keval_metrics_weather.reading.asked_places import places_asked
from keval_metrics_weather.reading.openings import OPENINGS
from keval_metrics_weather.reading.words import Text, word_set

__all__ = ["ask_alike"]

_NO_KEYWORDS = OPENINGS | word_set(
    "a about an and are at can could do does for give have how i in is it like me my of on or please show so tell"
    " need the there to what will with would you your be"
)


def ask_alike(question: Query, other: Query, similarity: float) -> bool:
    """Say whether two messages ask the same, wherever they ask it about.

    They name the same days, want weather both or neither, and share at least `similarity` of the keywords of the one
    with fewer.
    """
    if set(question.days) != set(other.days) or question.concerns_weather != other.concerns_weather:
        return False
    these, those = _keywords(question.text), _keywords(other.text)
    fewer = min(len(these), len(those))
    return len(these & those) >= similarity * fewer if fewer else these == those


@lru_cache(maxsize=64)
def _keywords(text: Text) -> frozenset[str]:
    """Return the words that say what is asked, leaving out where: places are compared by themselves."""
    places = {word for city in places_asked(text) for word in city.words}
    return frozenset([word for word in text.said - _NO_KEYWORDS - places if word[:1].isalnum()])
