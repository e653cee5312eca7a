"""Adaptation quality: does the answer suit the user's preferences (metrics-assessment.md, Functional Performance 5)."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import ClassVar

import attrs

from keval import Scale, Score, Trial
from keval_metrics_weather.answers import answer_to
from keval_metrics_weather.asked import asked
from keval_metrics_weather.options import not_negative, share
from keval_metrics_weather.preferences import preferences_of
from keval_metrics_weather.reading.conditions import Group, conditions
from keval_metrics_weather.reading.likes import acknowledged, suggested_indoors, suggested_outdoors
from keval_metrics_weather.reading.phrases import affirmed
from keval_metrics_weather.reading.words import Text, read
from keval_metrics_weather.scale import SCALE
from keval_metrics_weather.tally import neutral, tally
from keval_metrics_weather.truth import truth_of
from keval_metrics_weather.wording import AWARENESS, INDOOR, OUTDOOR, RAINWEAR, WARMTH

__all__ = ["AdaptationQuality"]

_COLD = ("cold", "chilly", "freezing", "frosty", "icy")
_WET = ("rain", "thunderstorm")


@attrs.frozen
class AdaptationQuality:
    """Adds points for warm clothing in the cold, protection from rain, and activities indoors or outdoors as preferred.

    Preferences are the sample's and those the agent's tools learned during the conversation. It is cold up to
    `cold` °C. Neutral without preferences, and when none of them bears on this weather.
    """

    scale: ClassVar[Scale] = SCALE

    base: float = share(0.5)
    cold_points: float = not_negative(0.15)
    rain_points: float = not_negative(0.15)
    activity_points: float = not_negative(0.15)
    awareness_points: float = not_negative(0.1)
    cold: float = 10.0
    warmth_words: tuple[str, ...] = WARMTH
    rain_words: tuple[str, ...] = RAINWEAR
    indoor_words: tuple[str, ...] = INDOOR
    outdoor_words: tuple[str, ...] = OUTDOOR
    awareness_phrases: tuple[str, ...] = AWARENESS

    def score(self, trial: Trial) -> Score:
        """Score the answer against the known preferences and the weather asked about."""
        calls = trial.transcript.tool_calls if trial.transcript else ()
        liked = preferences_of(trial.sample.facts.get("preferences"), calls)
        details = {
            "preferences": list(liked.names),
            "learned_from_conversations": liked.learned,
            "learned_in_this_conversation": list(liked.learned_now),
        }
        if not liked.names:
            return neutral("no preferences", **details)
        answer = read(trial.output)
        lows, groups = _weather_asked_about(trial)
        cold = "dislikes_cold" in liked and self._is_cold(lows, trial)
        wet = "dislikes_rain" in liked and _is_wet(groups, answer)
        indoors = "prefers_indoor" in liked
        outdoors = "outdoor_activities" in liked or "prefers_outdoor" in liked
        aware = acknowledged(answer, self.awareness_phrases)
        if not (cold or wet or indoors or outdoors or aware):
            return neutral("none of the preferences bears on this weather", **details)
        warmth = affirmed(answer, self.warmth_words) if cold else ()
        shelter = affirmed(answer, self.rain_words) if wet else ()
        inside = suggested_indoors(answer, self.indoor_words) if indoors else ()
        outside = suggested_outdoors(answer, self.outdoor_words) if outdoors else ()
        return tally(
            self.base,
            (
                ("adapted to the cold", self.cold_points, warmth),
                ("adapted to the rain", self.rain_points, shelter),
                ("activities as preferred", self.activity_points, (*inside, *outside)),
                ("awareness of preferences", self.awareness_points, aware),
            ),
            answer,
            **details,
        )

    def _is_cold(self, lows: Sequence[float], trial: Trial) -> bool:
        """Say whether it is cold: by the facts, else by the answer's own temperatures, else by its words."""
        known = lows or [temperature.low for temperature in answer_to(trial).of_the_air]
        return min(known) <= self.cold if known else bool(affirmed(read(trial.output), _COLD))


def _is_wet(groups: Set[Group], answer: Text) -> bool:
    """Say whether it rains: by the facts, else by what the answer says."""
    if groups:
        return not groups.isdisjoint(_WET)
    return any(mention.stance != "denied" and not mention.groups.isdisjoint(_WET) for mention in conditions(answer))


def _weather_asked_about(trial: Trial) -> tuple[Sequence[float], Set[Group]]:
    """Return the lowest temperatures and the conditions of the moments asked about, as far as the facts know them."""
    truth = truth_of(trial.sample.facts)
    if truth is None:
        return (), frozenset()
    about = asked(trial, truth)
    days = [truth.days[index] for index in about.days if index < len(truth.days)]
    lows = [truth.temperature] if about.now else [day.low for day in days]
    now = truth.conditions if about.now else frozenset()
    return [low for low in lows if low is not None], now.union(*[day.conditions for day in days])
