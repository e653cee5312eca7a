"""Missing data: where an answer says that it has not got what was asked for."""

from __future__ import annotations

from keval_metrics_weather.reading.phrases import Hit, denied, find
from keval_metrics_weather.reading.words import Text

__all__ = ["missing_data"]

_MARKS = frozenset(".!?;:,()\n—–-")
_ADDRESSED = frozenset({"you", "one", "people", "it"})
_SPEAKING = frozenset({"i", "we"})
_REACH = 3


def missing_data(text: Text, phrases: tuple[str, ...]) -> tuple[str, ...]:
    """Return the phrases by which a text admits missing data, each once, in the text's order.

    What one need not or cannot do is no such admission: "you don't have to", "you can't get a nicer day".
    """
    hits = [hit for hit in find(text, phrases) if not denied(text, hit) and not _of_another(text, hit)]
    return tuple(dict.fromkeys([hit[2] for hit in hits]))


def _of_another(text: Text, hit: Hit) -> bool:
    """Say whether "don't have", "can't get" and the like are said of an obligation or of another than the speaker."""
    first, last, _ = hit
    if text.words[last] == "have" and text.word_at(last + 1) == "to":
        return True
    if text.words[first] not in ("can", "do"):
        return False  # "it couldn't be found", "it doesn't have data" are said of a service
    for at in range(first - 1, max(first - _REACH, 0) - 1, -1):
        word = text.words[at]
        if word in _ADDRESSED or word in _SPEAKING or word in _MARKS:
            return word in _ADDRESSED
    return False
