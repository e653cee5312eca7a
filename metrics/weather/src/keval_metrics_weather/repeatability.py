"""Repeatability: are like questions answered alike (metrics-assessment.md, Behavioral Quality 14)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import attrs

from keval import Message, Scale, Score, Trial
from keval_metrics_weather.advice import advice
from keval_metrics_weather.options import not_negative, share
from keval_metrics_weather.phrases import affirmed
from keval_metrics_weather.queries import Query, query
from keval_metrics_weather.scale import SCALE
from keval_metrics_weather.tally import Point, excerpt, neutral, tally
from keval_metrics_weather.temperatures import temperatures
from keval_metrics_weather.wording import ITEMS, RECOMMENDING
from keval_metrics_weather.words import Text, read, word_set

__all__ = ["Repeatability"]

_NO_KEYWORDS = word_set(
    "a about an and are at can could do does for give have how i in is it like me my of on or please show so tell"
    " the there to what will with would you your be"
)


@attrs.frozen
class Repeatability:
    """Compares the answer with the one to the latest like question of the conversation.

    Questions are alike when they name the same places and days, want weather both or neither, and share at least
    `similarity` of the keywords of the one with fewer. Temperatures agree up to `tolerance` °C, items when half of them
    are the same. Neutral when no like question came before.
    """

    scale: ClassVar[Scale] = SCALE

    base: float = share(0.7)
    temperature_points: float = not_negative(0.3)
    style_points: float = not_negative(0.3)
    items_points: float = not_negative(0.2)
    random_penalty: float = not_negative(0.1)
    length_penalty: float = not_negative(0.1)
    similarity: float = share(0.5)
    tolerance: float = not_negative(2.0)
    random_words: tuple[str, ...] = ("random", "randomly", "maybe", "perhaps", "guess")
    recommending_words: tuple[str, ...] = RECOMMENDING
    items: tuple[str, ...] = ITEMS

    def score(self, trial: Trial) -> Score:
        """Score the answer against `trial.history`."""
        question = query(trial.question)
        before = next((pair for pair in _pairs(trial.history) if self._alike(question, query(pair[0]))), None)
        if before is None:
            return neutral("no like question came before" if trial.history else "no history")
        asked, said = before
        answer, earlier = read(trial.output), read(said)
        random = affirmed(answer, self.random_words)
        lengths = sorted((len(answer.original), len(earlier.original)))
        return tally(
            self.base,
            (
                *self._temperatures(answer, earlier),
                *self._recommendations(answer, earlier),
                ("random language", -self.random_penalty, random),
                ("length differs", -self.length_penalty, lengths[0] * 2 < lengths[1]),
            ),
            compared_with=excerpt(asked),
        )

    def _alike(self, question: Query, other: Query) -> bool:
        if {city.words for city in question.cities} != {city.words for city in other.cities}:
            return False
        if set(question.days) != set(other.days) or question.concerns_weather != other.concerns_weather:
            return False
        these, those = _keywords(question.text), _keywords(other.text)
        fewer = min(len(these), len(those))
        return fewer > 0 and len(these & those) >= self.similarity * fewer

    def _temperatures(self, answer: Text, earlier: Text) -> Iterator[Point]:
        new, old = temperatures(answer), temperatures(earlier)
        shown = tuple([temperature.said for temperature in (*old[:1], *new[:1])])
        if new and old and max(new[0].low - old[0].high, old[0].low - new[0].high) <= self.tolerance:
            yield "same temperature information", self.temperature_points, shown
        else:
            yield "different temperature information", -self.temperature_points, shown

    def _recommendations(self, answer: Text, earlier: Text) -> Iterator[Point]:
        new = advice(answer, self.recommending_words, self.items)
        old = advice(earlier, self.recommending_words, self.items)
        if new.words and old.words:
            yield "same recommendation style", self.style_points, True
        elif new.words or old.words:
            yield "recommends once and once not", -self.style_points, new.words or old.words
        new_items, old_items = set(new.items), set(old.items)
        if new_items or old_items:
            same = 2 * len(new_items & old_items) >= len(new_items | old_items)
            what, value = ("same items", self.items_points) if same else ("different items", -self.items_points)
            yield what, value, (*old.items, *new.items)


def _pairs(history: tuple[Message, ...]) -> Iterator[tuple[str, str]]:
    """Yield each question of the history with its answer, the latest first."""
    answer: str | None = None
    for message in reversed(history):
        if message.role == "assistant" and answer is None:
            answer = message.text
        elif message.role == "user":
            if answer is not None:
                yield message.text, answer
            answer = None


def _keywords(text: Text) -> set[str]:
    return {word for word in text.index if word[:1].isalnum() and word not in _NO_KEYWORDS}
