"""Helpfulness: scores task completion, recommendations and adaptation to the user (metrics-assessment.md, 2, 3, 5)."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import attrs

from keval import Score, Trial
from keval_metrics_weather.preferences import acknowledged, preferences_of, suggested_indoors, suggested_outdoors
from keval_metrics_weather.questions import only_asks_back
from keval_metrics_weather.reading.advice import Advice, advice, advice_against, instructed, reasons_given
from keval_metrics_weather.reading.conditions import Group, conditions
from keval_metrics_weather.reading.failures import failures
from keval_metrics_weather.reading.statements import weather_data
from keval_metrics_weather.reading.words import Said, Text, affirmed, find
from keval_metrics_weather.scores import FunctionalPerformance, neutral, not_negative, tally
from keval_metrics_weather.turns import Turn, turn_of
from keval_metrics_weather.wording import (
    AWARENESS,
    CLARIFYING,
    ERRORS,
    INDOOR,
    ITEMS,
    MISSING,
    OUTDOOR,
    RAINWEAR,
    REASONS,
    RECOMMENDING,
    WARMTH,
    WEATHER,
)


@attrs.frozen
class TaskCompletion(FunctionalPerformance):
    """Adds points for figures, recommendations and substance; takes some off for errors and missing information.

    An answer is substantial from `substantial` characters on, and too short below `shortest`.
    """

    substantial: int = not_negative(80)
    shortest: int = not_negative(20)
    error_words: tuple[str, ...] = ERRORS

    def score(self, trial: Trial) -> Score:
        """Score the answer's text against what the question wants."""
        turn = turn_of(trial)
        answer = turn.answer
        length = len(answer.original.strip())
        data = weather_data(answer)
        advised = advice(answer, RECOMMENDING, ITEMS).given
        failing = failures(answer, self.error_words, MISSING).told
        on_topic = data.measured or data.spoken or advised or find(answer, WEATHER) or only_asks_back(answer)
        return tally(
            (
                ("figures", 0.2, data.measured),
                ("recommendations", 0.2, advised),
                (f"substance, {length} characters", 0.1, length >= self.substantial),
                ("error or missing information", -0.3, failing),
                (f"only {length} characters", -0.2, length < self.shortest),
                ("nothing about the weather", -0.2, turn.request.about_weather and not on_topic),
            ),
            answer,
            characters=length,
        )


_GOING = (*INDOOR, *OUTDOOR)
_NOWHERE = frozenset(
    {"indoor", "indoors", "inside", "outdoor", "outdoors", "outside", "stay home", "stay in", "at home"}
)
"""Words that name no place to go to and nothing to do there."""
_NO = frozenset({"no", "nope"})
_MARKS = frozenset(",.!;:—–-\n")


@attrs.frozen
class RecommendationQuality(FunctionalPerformance):
    """Adds points for specific items, for reasons and for several recommendations.

    Several are `several` different recommending words or items. What is advised against ("No, you won't need an
    umbrella.") is advice where it was asked for and nothing is recommended. Neutral when advice was neither asked for
    nor given, and when the answer must first ask for the location.
    """

    several: int = not_negative(3)
    recommending_words: tuple[str, ...] = RECOMMENDING
    items: tuple[str, ...] = ITEMS
    reason_words: tuple[str, ...] = REASONS

    def score(self, trial: Trial) -> Score:
        """Score the recommendations of the answer."""
        turn = turn_of(trial)
        answer = turn.answer
        given = advice(answer, self.recommending_words, self.items)
        if not given.given:
            if not turn.request.wants_advice:
                return neutral("no recommendation was asked for and none given")
            if turn.asks_back(CLARIFYING):
                return neutral("the question names no location, and the answer asks for it")
            given = advice_against(answer, self.recommending_words, self.items)
            where = [each for each in suggested_indoors(answer, INDOOR) if each not in _NOWHERE]
            if not (given.given or where or _says_no(answer)):
                return tally([("no recommendation, though one was asked for", -0.3, True)])
        return self._tally(answer, given)

    def _tally(self, answer: Text, given: Advice) -> Score:
        reasons = reasons_given(answer, self.reason_words)
        acts = [act for act in given.acts if act not in given.words]
        activities = suggested_indoors(answer, _GOING if acts or given.words else INDOOR)
        named = [each for each in activities if each not in _NOWHERE and instructed(answer, each)]
        places = len({each.start for each in activities if isinstance(each, Said)})
        count = max(len(given.words), len(given.items) + places if given.items else 0)
        return tally(
            (
                ("specific items", 0.2, (*given.items, *named)),
                ("reasons", 0.2, reasons),
                (
                    f"{count} recommendations",
                    0.1,
                    count >= self.several and (*given.words, *activities),
                ),
            ),
            answer,
            recommendations=list(map(str, given.words or given.acts)),
        )


def _says_no(answer: Text) -> bool:
    """Say whether an answer begins with a plain "No": "No, it stays dry." but not "No idea." or "No, I couldn't …"."""
    if answer.padded[0] not in _NO or not (answer.padded[1] in _MARKS or len(answer.words) == 1):
        return False
    return not failures(answer, ERRORS, MISSING).told


_COLD = ("cold", "chilly", "freezing", "frosty", "icy")
_WET = ("rain", "thunderstorm")


@attrs.frozen
class AdaptationQuality(FunctionalPerformance):
    """Adds points for warm clothing in the cold, protection from rain, and activities indoors or outdoors as preferred.

    Preferences are the sample's and those the agent's tools learned during the conversation. It is cold up to
    `cold` °C. Neutral without preferences, and when none of them bears on this weather.
    """

    cold: float = 10.0
    warmth_words: tuple[str, ...] = WARMTH
    rain_words: tuple[str, ...] = RAINWEAR
    indoor_words: tuple[str, ...] = INDOOR
    outdoor_words: tuple[str, ...] = OUTDOOR

    def score(self, trial: Trial) -> Score:
        """Score the answer against the known preferences and the weather asked about."""
        calls = trial.transcript.tool_calls if trial.transcript else ()
        liked = preferences_of(trial.sample.facts.get("preferences"), calls)
        details: dict[str, Any] = {
            "preferences": list(liked.names),
            "learned_from_conversations": liked.learned,
            "learned_in_this_conversation": list(liked.learned_now),
        }
        if not liked.names:
            return neutral("no preferences", **details)
        turn = turn_of(trial)
        answer = turn.answer
        lows, groups = _weather_asked_about(turn)
        cold = "dislikes_cold" in liked and self._is_cold(lows, turn)
        wet = "dislikes_rain" in liked and _is_wet(groups, answer)
        indoors = "prefers_indoor" in liked
        outdoors = "outdoor_activities" in liked or "prefers_outdoor" in liked
        aware = acknowledged(answer, AWARENESS)
        if not (cold or wet or indoors or outdoors or aware):
            return neutral("none of the preferences bears on this weather", **details)
        warmth = affirmed(answer, self.warmth_words) if cold else ()
        shelter = affirmed(answer, self.rain_words) if wet else ()
        inside = suggested_indoors(answer, self.indoor_words) if indoors else ()
        outside = suggested_outdoors(answer, self.outdoor_words) if outdoors else ()
        return tally(
            (
                ("adapted to the cold", 0.15, warmth),
                ("adapted to the rain", 0.15, shelter),
                ("activities as preferred", 0.15, (*inside, *outside)),
                ("awareness of preferences", 0.1, aware),
            ),
            answer,
            **details,
        )

    def _is_cold(self, lows: Sequence[float], turn: Turn) -> bool:
        """Say whether it is cold: by the facts, else by the answer's own temperatures, else by its words."""
        known = lows or [temperature.low for temperature in turn.reading.of_the_air]
        return min(known) <= self.cold if known else bool(affirmed(turn.answer, _COLD))


def _is_wet(groups: Set[Group], answer: Text) -> bool:
    """Say whether it rains: by the facts, else by what the answer says."""
    if groups:
        return not groups.isdisjoint(_WET)
    return any(mention.stance != "denied" and not mention.groups.isdisjoint(_WET) for mention in conditions(answer))


def _weather_asked_about(turn: Turn) -> tuple[Sequence[float], Set[Group]]:
    """Return the lowest temperatures and the conditions of the moments asked about, as far as the facts know them."""
    truth, about = turn.truth, turn.asked
    if truth is None:
        return (), frozenset()
    days = [truth.days[index] for index in about.days if index < len(truth.days)]
    lows = [truth.temperature] if about.now else [day.low for day in days]
    now = truth.conditions if about.now else frozenset()
    return [low for low in lows if low is not None], now.union(*[day.conditions for day in days])
