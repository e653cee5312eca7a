"""Places: what a text names as a place, by a gazetteer and by how the name stands."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from keval_metrics_weather.reading.gazetteer import gazetteer
from keval_metrics_weather.reading.lexicon import NO_NAMES
from keval_metrics_weather.reading.names import (
    BEFORE_A_PLACE,
    CONTRASTING,
    LOCATING,
    SAYING,
    Place,
    after_regions,
    is_code,
    name_at,
    place_at,
)
from keval_metrics_weather.reading.words import Text, read

__all__ = ["find_names", "places_told"]


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
    for at in [place for place, start in enumerate(text.starts) if original[start].isupper()]:
        if at < done or (words[at] in NO_NAMES and words[at] != "the") or is_code(text, at):
            continue
        count = known.longest(text.words, at)
        stands = count and text.capitalised(at + count - 1) and _stands_in_prose(text, at, count)
        if not stands:
            count = _unknown_in_prose(text, at)
        if count:
            found.append(place_at(text, at, at + count))
            done = after_regions(text, at + count)
    return tuple(found)


def _stands_in_prose(text: Text, at: int, count: int) -> bool:
    name = " ".join(text.words[at : at + count])
    before, following = text.word_at(at - 1), text.word_at(at + count)
    if name in gazetteer().regions or _part_of_a_name(text, at, count):
        return False
    leads = before in ("", ".", "!", "?", "\n", "|", ":", ";", "(")
    if name in gazetteer().words:
        return before in LOCATING and (text.word_at(at - 2) != "up") and following not in ("weather",)
    return leads or before in BEFORE_A_PLACE or before in CONTRASTING or before == "," or following in SAYING


def _part_of_a_name(text: Text, at: int, count: int) -> bool:
    """Say whether a name is only part of a longer one: "Lake Geneva", "Paris Agreement"."""
    end = at + count
    after = end < len(text.words) and text.starts[end] == text.starts[end - 1] + len(text.words[end - 1]) + 1
    if (
        after
        and text.capitalised(end)
        and text.words[end] not in NO_NAMES
        and text.words[end] not in gazetteer().regions
    ):
        return True
    return (
        at > 0
        and text.capitalised(at - 1)
        and text.words[at - 1] not in NO_NAMES
        and text.word_at(at - 1).isalpha()
        and text.word_at(at - 2) not in ("", ".", "\n", "!", "?", ":")
    )


def _unknown_in_prose(text: Text, at: int) -> int:
    """Count the words of a name that is not in the table but stands as a place: "in Rapla", "while Rapla enjoys"."""
    before = text.word_at(at - 1)
    if before not in ("in", "while", "whereas"):
        return 0
    count = name_at(text, at)
    if before != "in" and text.word_at(at + count) not in SAYING:
        return 0
    return count if text.words[at] not in gazetteer().regions else 0
