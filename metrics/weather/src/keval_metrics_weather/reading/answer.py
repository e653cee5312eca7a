"""Answers: all that one answer says, read once and shared by the metrics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache

import attrs

from keval_metrics_weather.reading.conditions import VOCABULARY, Vocabulary, conditions
from keval_metrics_weather.reading.names import Place, place_key
from keval_metrics_weather.reading.places import find_names, places_told
from keval_metrics_weather.reading.qualifiers import of_the_air
from keval_metrics_weather.reading.quantities import quantities
from keval_metrics_weather.reading.statements import (
    Statement,
    condition_statements,
    temperature_statements,
)
from keval_metrics_weather.reading.times import times
from keval_metrics_weather.reading.where import Where
from keval_metrics_weather.reading.words import Text, read

__all__ = ["Reading", "air_of", "reading"]


@attrs.frozen(eq=False, slots=False)
class Reading:
    """What an answer says; each part is read when it is first asked for.

    `names` are places that it is known to be about, which a table of places may not list.
    """

    text: Text
    names: tuple[str, ...]
    fahrenheit: bool

    @cached_property
    def places(self) -> Sequence[Place]:
        """The places it names."""
        told = {place.start: place for place in places_told(self.text)}
        for name, starts in find_names(self.text, self.names).items():
            words = tuple(read(name).words)
            told |= {start: Place(name, words, start, place_key(words)) for start in starts}
        return [told[start] for start in sorted(told)]

    @cached_property
    def _where(self) -> Where:
        return Where.of(self.text, self.places, times(self.text))

    @cached_property
    def temperatures(self) -> Sequence[Statement]:
        """Everything that it states in degrees."""
        found = quantities(self.text, self.fahrenheit)
        return temperature_statements(self._where, found) if found else ()

    @cached_property
    def of_the_air(self) -> Sequence[Statement]:
        """The temperatures of the air."""
        return [statement for statement in self.temperatures if of_the_air(statement.kind or "")]

    def conditions(self, vocabulary: Vocabulary = VOCABULARY) -> Sequence[Statement]:
        """Return the weather it speaks of."""
        found = conditions(self.text, vocabulary)
        return condition_statements(self._where, found) if found else ()


@lru_cache(maxsize=64)
def air_of(text: Text) -> Sequence[Statement]:
    """Return the temperatures of the air that a text states, wherever and whenever they are."""
    found = quantities(text, False)
    stated = temperature_statements(Where.of(text, (), ()), found) if found else ()
    return [statement for statement in stated if of_the_air(statement.kind or "")]


@lru_cache(maxsize=64)
def reading(text: Text, names: tuple[str, ...] = (), fahrenheit: bool = False) -> Reading:
    """Return what a text says, the same for as long as the same is asked for."""
    return Reading(text, names, fahrenheit)
