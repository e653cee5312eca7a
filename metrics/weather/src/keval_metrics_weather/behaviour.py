"""Behaviour: scores how an answer meets a vague question or repeats itself (metrics-assessment.md, 13 and 14)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

import attrs
from attrs.validators import and_, ge, le

from keval import Message, Score, Trial
from keval_metrics_weather.questions import NO_LOCATION, Query, ask_alike, clarifying, only_asks_back, query
from keval_metrics_weather.reading.advice import advice
from keval_metrics_weather.reading.asking import asking, assumed
from keval_metrics_weather.reading.statements import weather_data
from keval_metrics_weather.reading.temperatures import Quantity, quantities
from keval_metrics_weather.reading.words import Said, Text, affirmed, find, read
from keval_metrics_weather.scores import BehavioralQuality, Point, excerpt, neutral, tally
from keval_metrics_weather.turns import turn_of
from keval_metrics_weather.wording import ASSUMING, CLARIFYING, GUIDING, ITEMS, RECOMMENDING

_LIKE_NONE = 0.7
"""The base of repeatability, and its value when no like question came before."""
_RANDOM = ("random", "randomly", "maybe", "perhaps", "guess")
_PLACE = ("city", "location", "place", "town", "where")


@attrs.frozen
class AmbiguityHandling(BehavioralQuality):
    """Adds points for clarifying, sensible assumptions, help and guidance when the question is ambiguous.

    An answer with none of them is penalised. Neutral when the question is clear.
    """

    clarifying_phrases: tuple[str, ...] = CLARIFYING
    assuming_phrases: tuple[str, ...] = ASSUMING
    guiding_phrases: tuple[str, ...] = GUIDING

    def score(self, trial: Trial) -> Score:
        """Score how the answer handles what the question leaves open."""
        turn = turn_of(trial)
        open_points, answer = turn.gaps, turn.answer
        if not open_points:
            return neutral("the question is clear")
        asked = clarifying(answer, self.clarifying_phrases)
        assuming = affirmed(answer, self.assuming_phrases) or assumed(answer)
        guiding = affirmed(answer, self.guiding_phrases)
        data = weather_data(answer)
        helpful = (*data.measured, *data.spoken)
        where = asked and NO_LOCATION in open_points and (asking(answer).place or find(answer, _PLACE))
        handled = asked or assuming or guiding or helpful
        return tally(
            (
                ("clarification asked for", 0.4, asked),
                ("assumption made", 0.3, assuming),
                ("helpful all the same", 0.2, helpful),
                ("missing location asked for", 0.2, bool(where)),
                ("guidance", 0.2, guiding),
                ("ambiguity not handled", -0.3, () if handled else open_points),
            ),
            answer,
            unclear=list(open_points),
        )


_Place: TypeAlias = frozenset[tuple[str, ...]]


@attrs.frozen
class _Exchange:
    """A question of the conversation with its answer; `place` is the city or cities it is about."""

    question: Query
    place: _Place
    answer: str


@attrs.frozen
class Repeatability(BehavioralQuality):
    """Compares the answer with the one to the latest like question of the conversation.

    Questions are alike when they are about the same places and days, want weather both or neither, and share at least
    `similarity` of the keywords of the one with fewer. One that names no place is about the one the user named last,
    and one whose answer only asked back is passed over. Whether temperatures are told is compared, not which: weather
    changes. Items agree when half of them are the same. Neutral, with the base as its value, when no like question came
    before.
    """

    similarity: float = attrs.field(default=0.5, validator=and_(ge(0), le(1)))

    def score(self, trial: Trial) -> Score:
        """Score the answer against the history."""
        turn = turn_of(trial)
        question, answer = turn.question, turn.answer
        exchanges, place = _exchanges(turn.history)
        place = _place(question) or place
        before = next((exchange for exchange in reversed(exchanges) if self._alike(question, place, exchange)), None)
        if before is None:
            return Score(_LIKE_NONE, "no like question came before" if turn.history else "no history", neutral=True)
        earlier = read(before.answer)
        random = affirmed(answer, _RANDOM)
        lengths = sorted((len(answer.original), len(earlier.original)))
        return tally(
            (
                *self._temperatures(answer, quantities(answer, False)[:1], quantities(earlier, False)[:1]),
                *self._recommendations(answer, earlier),
                ("random language", -0.1, random),
                ("length differs", -0.1, lengths[0] * 2 < lengths[1]),
            ),
            answer,
            _LIKE_NONE,
            compared_with=excerpt(before.question.text.original),
        )

    def _alike(self, question: Query, place: _Place, before: _Exchange) -> bool:
        alike = place == before.place and ask_alike(question, before.question, self.similarity)
        return alike and not only_asks_back(read(before.answer))

    def _temperatures(self, answer: Text, new: Sequence[Quantity], old: Sequence[Quantity]) -> Iterator[Point]:
        shown = (*[each.said for each in old], *[Said(each.said, answer, each.start, each.end) for each in new])
        if new and old:
            yield "temperatures both times", 0.3, shown
        else:
            yield "temperatures once and once not", -0.3, shown

    def _recommendations(self, answer: Text, earlier: Text) -> Iterator[Point]:
        new = advice(answer, RECOMMENDING, ITEMS)
        old = advice(earlier, RECOMMENDING, ITEMS)
        if new.given and old.given:
            yield "same recommendation style", 0.3, True
        elif new.given or old.given:
            yield "recommends once and once not", -0.3, new.given or old.given
        new_items, old_items = set(new.items), set(old.items)
        if new_items or old_items:
            same = 2 * len(new_items & old_items) >= len(new_items | old_items)
            what, value = ("same items", 0.2) if same else ("different items", -0.2)
            # An item of both is the one that the new answer has.
            yield what, value, tuple({item: item for item in (*old.items, *new.items)}.values())


@lru_cache(maxsize=64)
def _exchanges(history: tuple[Message, ...]) -> tuple[Sequence[_Exchange], _Place]:
    """Return what the user asked, in order, each with the last answer to it, and the place that was named last."""
    found: list[_Exchange] = []
    place: _Place = frozenset()
    asked: Query | None = None
    answer: str | None = None
    for message in history:
        if message.role == "assistant":
            answer = message.text
        elif message.role == "user":
            if asked is not None and answer is not None:
                found.append(_Exchange(asked, place, answer))
            asked, answer = query(message.text), None
            place = _place(asked) or place
    if asked is not None and answer is not None:
        found.append(_Exchange(asked, place, answer))
    return found, place


def _place(question: Query) -> _Place:
    return frozenset(city.words for city in question.cities)
