"""Weather reports in prose: what was measured or forecast, advice, and what it means for this user."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from random import Random

from keval_simulator.conversation import Conversation, days_asked, time_asked
from keval_simulator.flaws import Flaws
from keval_simulator.tool_results import CurrentWeather, DayWeather
from keval_simulator.weather_advice import Conditions, advise, conditions, consider

__all__ = ["report"]

_YES_OR_NO = re.compile(r"(?:^|[.:;,!?])\s*(?:will|is|do|does|should|shall|would|can|are)\b", re.IGNORECASE)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def report(
    current: Sequence[CurrentWeather],
    days: Sequence[DayWeather],
    conversation: Conversation,
    rng: Random,
    flaws: Flaws,
) -> str:
    """Write the report; `current` and `days` may each be empty, and may be of several cities."""
    parts = [_now(weather, rng, flaws) for weather in current]
    forecasts = _by_city(days)
    asked = time_asked(conversation)
    meant = {city: _days_meant(each, asked) for city, each in forecasts.items()}
    parts += [_outlook(each, forecasts[city], asked, rng) for city, each in meant.items()]
    if len(current) > 1:
        parts.append(_comparison([(weather.temperature, weather.city) for weather in current]))
    elif len(meant) > 1:
        parts.append(_comparison([(max(day.high for day in each), city) for city, each in meant.items()]))
    chosen = [day for each in meant.values() for day in each]
    weather = _conditions(current, chosen)
    if lead := _verdict(conversation.question, weather):
        parts.insert(0, lead)
    if weather and rng.random() >= flaws.omits_advice:
        parts.append(_advice(weather, rng))
    if weather and rng.random() >= flaws.forgets_user:
        parts += consider(weather, conversation.liked)
    return " ".join(parts)


def _degrees(value: float, rng: Random, flaws: Flaws) -> str:
    if rng.random() < flaws.slips:
        value += rng.choice((-3, 3))
    if rng.random() < flaws.rounds:
        value = round(value)
    return _celsius(value)


def _celsius(value: float) -> str:
    return f"{value:g}°C"


def _now(weather: CurrentWeather, rng: Random, flaws: Flaws) -> str:
    city = weather.city or "the area you asked about"
    degrees = _degrees(weather.temperature, rng, flaws)
    sky = weather.description or "no further details"
    said = rng.choice(
        (
            f"It is currently {degrees} in {city} with {sky}.",
            f"Right now it's {degrees} in {city}, with {sky}.",
            f"The current temperature in {city} is {degrees}, with {sky}.",
        )
    )
    if rng.random() >= flaws.omits_details:
        details = []
        if weather.feels_like is not None and abs(weather.feels_like - weather.temperature) >= 1:
            details.append(f"feels like {_celsius(weather.feels_like)}")
        if weather.humidity is not None:
            details.append(f"humidity {weather.humidity:g}%")
        if weather.wind_speed is not None:
            details.append(f"wind {weather.wind_speed:g} m/s")
        if details:
            said = f"{said[:-1]} ({', '.join(details)})."
    return said


def _by_city(days: Sequence[DayWeather]) -> dict[str | None, list[DayWeather]]:
    found: dict[str | None, list[DayWeather]] = {}
    for day in days:
        found.setdefault(day.city, []).append(day)
    return found


def _days_meant(days: Sequence[DayWeather], question: str) -> Sequence[DayWeather]:
    """Return the days a question is about: tomorrow is a forecast's second day, a weekday is found by its date."""
    lower = question.lower()
    if re.search(r"\btomorrow\b", lower) and len(days) > 1:
        return days[1:2]
    named = [day for day in days if (name := _weekday(day.date)) and (name in lower or _is_weekend(name, lower))]
    return named or days[: days_asked(question) or len(days)]


def _weekday(date: str) -> str | None:
    try:
        return _WEEKDAYS[datetime.date.fromisoformat(date[:10]).weekday()]
    except ValueError:
        return None


def _is_weekend(name: str, question: str) -> bool:
    return "weekend" in question and name in ("saturday", "sunday")


def _outlook(chosen: Sequence[DayWeather], days: Sequence[DayWeather], question: str, rng: Random) -> str:
    """Tell the days of one city; `days` is all that its forecast has."""
    city = chosen[0].city or "the area you asked about"
    if len(chosen) == 1:
        day = chosen[0]
        when = _when(day, question.lower())
        return rng.choice(
            (
                f"{when} in {city}, expect {day.description} with {_celsius(day.low)} to {_celsius(day.high)}.",
                f"{when} there will be {day.description} in {city}, {_celsius(day.low)} to {_celsius(day.high)}.",
            )
        )
    listed = "; ".join(f"{d.date}: {_celsius(d.low)} to {_celsius(d.high)}, {d.description}" for d in chosen)
    said = rng.choice((f"The forecast for {city}: {listed}.", f"Here is the outlook for {city}. {listed}."))
    if (days_asked(question) or 0) > len(days):
        said += f" The forecast reaches only {len(days)} days ahead, so I can't say more than that."
    return said


def _when(day: DayWeather, question: str) -> str:
    """Name a day as the question does, and by its date."""
    if "tomorrow" in question:
        return "Tomorrow"
    name = _weekday(day.date)
    return f"On {name.title()}, {day.date}," if name and name in question else f"On {day.date}"


def _comparison(warmth: Sequence[tuple[float, str | None]]) -> str:
    """Compare the temperatures of several cities."""
    ranked = sorted(warmth, key=lambda pair: pair[0])
    (low, coldest), (high, warmest) = ranked[0], ranked[-1]
    if low == high:
        return f"{warmest} and {coldest} are equally warm."
    return f"{warmest} is warmer than {coldest}, by {round(high - low, 1):g} degrees."


def _conditions(current: Sequence[CurrentWeather], days: Sequence[DayWeather]) -> Conditions | None:
    """Return what to advise on: the days asked about, else the weather now; the worst of several days."""
    if days:
        each = [conditions((day.low + day.high) / 2, day.condition, day.description) for day in days]
        return max(each, key=lambda one: (one.stormy, one.snowy, one.wet, one.windy))
    if current:
        now = current[0]
        return conditions(now.temperature, now.condition, now.description, now.wind_speed)
    return None


def _verdict(question: str, weather: Conditions | None) -> str:
    """Answer a yes-or-no question on rain or clothes first."""
    if weather is None or not _YES_OR_NO.search(question):
        return ""
    lower = question.lower()
    wet = weather.wet or weather.stormy or weather.snowy
    if "umbrella" in lower:
        return "Yes, take an umbrella." if wet else "No, you should not need an umbrella."
    if "rain" in lower:
        return "Yes, rain is expected." if weather.wet or weather.stormy else "No, it should stay dry."
    if "snow" in lower:
        return "Yes, snow is expected." if weather.snowy else "No snow is expected."
    if "jacket" in lower or "coat" in lower:
        return (
            "Yes, a jacket is a good idea." if weather.temperature < 15 or wet else "No, you should not need a jacket."
        )
    return ""


def _advice(weather: Conditions, rng: Random) -> str:
    found = advise(weather, rng)
    opening = rng.choice(("I recommend", "Based on this, I recommend", "I would suggest"))
    if len(found) > 1:
        return f"{opening} {', '.join(found[:-1])}, and {found[-1]}."
    return f"{opening} {found[0]}."
