"""Weather advice: what to wear, take and do in some weather, and for whom."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

import attrs

from keval_simulator.preferences import PHRASES

__all__ = ["Conditions", "advise", "conditions", "consider"]

COLD, COOL, WARM, HOT = 5.0, 12.0, 20.0, 27.0
"""Temperatures in °C from which on the advice changes."""
WINDY = 8.0
"""Wind speed in m/s."""


@attrs.frozen
class Conditions:
    """Weather as far as advice goes. `temperature` is in °C."""

    temperature: float
    wet: bool = False
    snowy: bool = False
    stormy: bool = False
    foggy: bool = False
    clear: bool = False
    windy: bool = False


def conditions(temperature: float, condition: str, description: str, wind: float | None = None) -> Conditions:
    """Read conditions out of a report's words."""
    words = f"{condition} {description}".lower()
    return Conditions(
        temperature,
        wet=any(word in words for word in ("rain", "drizzle", "shower")),
        snowy="snow" in words or "sleet" in words,
        stormy="thunder" in words or "storm" in words,
        foggy=any(word in words for word in ("mist", "fog", "haze")),
        clear="clear" in words or "sun" in words,
        windy=(wind or 0) >= WINDY or "wind" in words,
    )


def advise(weather: Conditions, rng: Random) -> list[str]:
    """Return recommendations with their reasons, the most important first; each begins with the thing to take."""
    found: list[str] = []
    degrees = weather.temperature
    if weather.stormy:
        found.append("staying indoors until it passes because of the thunderstorm")
    if weather.wet or weather.stormy:
        found.append(
            rng.choice(("an umbrella because it is raining", "an umbrella and waterproof shoes due to the rain"))
        )
    if weather.snowy:
        found.append("sturdy boots because of the snow")
    if degrees < COLD:
        found.append("a warm coat, gloves and a hat since it is so cold")
    elif degrees < COOL:
        found.append(rng.choice(("a warm jacket since it is chilly", "a jacket and layers because it is cool")))
    elif degrees < WARM:
        found.append("a light jacket since it is mild")
    elif degrees < HOT:
        found.append("light clothes because it is warm")
    else:
        found.append("plenty of water and shade because of the heat")
    if weather.windy:
        found.append("a windproof layer due to the wind")
    if weather.foggy:
        found.append("extra care on the road because of the poor visibility")
    if weather.clear and degrees >= COOL:
        found.append(rng.choice(("sunglasses because the sky is clear", "sunscreen since the sky is clear")))
    return found


def consider(weather: Conditions, liked: Collection[str]) -> list[str]:
    """Return what the user's preferences mean in this weather, each a sentence that says which one."""
    degrees = weather.temperature
    cold, hot = degrees < COOL, degrees >= HOT
    wet = weather.wet or weather.snowy or weather.stormy
    pleasant = not (cold or hot or wet)
    effects = {
        "dislikes_cold": cold and "dress in warm layers or choose something indoors, where it is warm",
        "dislikes_heat": hot and "keep to the shade and plan activities for the early morning",
        "dislikes_rain": wet and "take an umbrella and prefer indoor activities such as a museum or a café",
        "dislikes_wind": weather.windy and "look for a sheltered route",
        "prefers_sunny": weather.clear and "this is a good time to be out in the sun",
        "prefers_indoor": "an indoor plan such as a museum, a gallery or a café would suit you",
        "outdoor_activities": (pleasant and "this is good weather for an outdoor walk, a bike ride or a hike")
        or ((wet or cold or hot) and "keep outdoor activities short, or move them to a better day"),
        "sensitive_to_weather": (wet or cold or hot) and "take it easy and check the conditions before you go out",
    }
    said = [f"Since you {PHRASES[flag]}, {effect}." for flag, effect in effects.items() if flag in liked and effect]
    if not said and liked:
        first = next(flag for flag in PHRASES if flag in liked)
        return [f"I kept in mind that you {PHRASES[first]}; that should be no concern here."]
    return said
