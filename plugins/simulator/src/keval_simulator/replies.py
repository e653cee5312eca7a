"""Replies: what the simulated model says of the weather, and without a tool's result."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Sequence
from random import Random

import attrs

from keval_simulator.conversation import PHRASES, Conversation, Outcome, days_asked, stated_in, time_asked
from keval_simulator.tool_results import CurrentWeather, DayWeather
from keval_simulator.words import sentences, split_identifier


@attrs.frozen
class Flaws:
    """How often an answer is less than perfect, as probabilities; the defaults are a decent, small model's."""

    rounds: float = 0.3
    """States a temperature in whole degrees."""
    slips: float = 0.03
    """States a temperature that is off by three degrees."""
    omits_details: float = 0.35
    """Leaves humidity and wind out."""
    omits_advice: float = 0.08
    """Gives no recommendation."""
    forgets_user: float = 0.05
    """Ignores what is known of the user's preferences."""
    overlooks: float = 0.2
    """Leaves out one of the passages of a document that it should tell."""
    clutches: float = 0.3
    """Tells the beginning of a document where nothing in it answers the question."""
    misreads: float = 0.06
    """States a number of a document wrong."""


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


_YES_OR_NO = re.compile(r"(?:^|[.:;,!?])\s*(?:will|is|do|does|should|shall|would|can|are)\b", re.IGNORECASE)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def report(
    current: Sequence[CurrentWeather], days: Sequence[DayWeather], conversation: Conversation, rng: Random, flaws: Flaws
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


_ERROR_PREFIX = re.compile(r"^(?:error(?: executing tool \w+)?\s*:\s*)+", re.IGNORECASE)


def clarification(missing: Sequence[str], conversation: Conversation, rng: Random) -> str:
    """Ask for what is missing, and say what for."""
    if "city" in missing:
        asked = rng.choice(
            (
                "Could you please tell me which city you would like to know about?",
                "Which city do you mean? Please specify the location.",
                "For which city would you like to know this?",
            )
        )
        offer = "I can then give you the conditions and a recommendation, for example for Helsinki or Paris."
    else:
        named = " and ".join(" ".join(split_identifier(name)) for name in missing)
        asked = f"Could you please tell me the {named}?"
        offer = "I can then look it up for you."
    opening = rng.choice(("I'd be happy to help!", "Sure, I can help with that.", "Happy to look into it."))
    known = f" I will keep in mind that you {PHRASES[conversation.liked[0]]}." if conversation.liked else ""
    return f"{opening} {asked} {offer}{known}"


def apology(failed: Sequence[Outcome], rng: Random) -> str:
    """Name what the tools could not return and why, and offer alternatives."""
    parts: list[str] = []
    for outcome in failed:
        what = next((str(value) for value in outcome.call.arguments.values() if isinstance(value, str)), "")
        problem = sentences(_ERROR_PREFIX.sub("", outcome.reading.error or ""))[:2]
        about = f" for {what}" if what else ""
        parts.append(f"I'm sorry, I couldn't get the data{about}: {' '.join(problem).rstrip('.')}.")
    offer = rng.choice(
        (
            "You could check the spelling or try a larger city nearby, or I can give you general advice instead.",
            "Alternatively, tell me another place or a shorter request, and I will try again.",
            "As an alternative, please give me a different name to look up, or check an official source.",
        )
    )
    return " ".join([*dict.fromkeys(parts), offer])


def acknowledge(conversation: Conversation, noted: bool, rng: Random) -> str:
    """Confirm what the user said of themselves; `noted` says that a tool has stored it."""
    stated = stated_in(conversation.question)
    said = [PHRASES[flag] if holds else f"no longer {PHRASES[flag]}" for flag, holds in stated.items()]
    listed = " and you ".join(said)
    if noted:
        return rng.choice(
            (
                f"Thank you, I have noted that you {listed}. I will take it into account in my recommendations.",
                f"Got it: you {listed}. I saved that, and my suggestions will reflect it.",
            )
        )
    return f"Thanks for telling me that you {listed}. I will keep it in mind in this conversation."


def profile(conversation: Conversation) -> str:
    """Tell the user what is known of them."""
    if not conversation.liked:
        return "I don't know any of your preferences yet. Tell me what you like or dislike, and I will remember it."
    listed = ", and you ".join(PHRASES[flag] for flag in conversation.liked)
    return f"From what I know, you {listed}. I take this into account when I recommend something."


def unknown(conversation: Conversation, about_weather: bool, rng: Random) -> str:
    """Say honestly that there is nothing to answer from, and give general advice."""
    if not about_weather:
        return rng.choice(
            (
                "I don't have a source for this, so I can't answer reliably. If you share a document, I can use that.",
                "I'm not certain, and I can't verify this without a source; I suggest checking the documentation.",
            )
        )
    where = f" in {conversation.places[0]}" if conversation.places else ""
    said = rng.choice(
        (
            f"I don't have access to live weather data, so I can't tell you the conditions{where}.",
            f"I can't look up live weather data for the conditions{where}.",
        )
    )
    advice = rng.choice(
        (
            "I suggest checking a weather service before you go, and taking layers and an umbrella to be safe.",
            "In general, I recommend layers and a light rain jacket because the weather can change.",
        )
    )
    liked = conversation.liked
    known = f" Since you {PHRASES[liked[0]]}, look at the hours that matter to you." if liked else ""
    return f"{said} {advice}{known}"


def weather_guess(conversation: Conversation, rng: Random) -> str:
    """Make up the weather, as a model without tools may; half of the time without saying so."""
    where = conversation.places[0] if conversation.places else "your area"
    degrees = rng.randint(-5, 32)
    wet = "light snow" if degrees <= 2 else "light rain"
    sky = rng.choice(("clear sky", "scattered clouds", "overcast clouds", wet))
    if rng.random() < 0.5:
        return f"It is {degrees}°C in {where} with {sky}. I recommend dressing for that."
    return (
        f"I can't look it up, but in {where} it is probably around {degrees}°C with {sky} at this time of year."
        " I suggest checking a weather service to be sure."
    )


def guess(conversation: Conversation, rng: Random) -> str:
    """Answer a question from nothing, in general terms."""
    topic = re.sub(r"[?!.\s]+$", "", conversation.question.strip()) or "that"
    return rng.choice(
        (
            f'I believe the usual answer to "{topic}" depends on the setup; the defaults normally work.',
            f'As for "{topic}": from general knowledge, it is most likely configured in the settings.',
        )
    )


def small_talk(question: str, rng: Random) -> str:
    """Answer a greeting, thanks, a request that nothing can be done about, or nothing at all."""
    lower = question.lower()
    if "thank" in lower:
        return rng.choice(("You're welcome!", "You're welcome! Let me know if there is anything else.", "My pleasure."))
    if re.match(r"\s*(?:hi|hello|hey|good (?:morning|afternoon|evening))\b", lower):
        return rng.choice(("Hello! What would you like to know?", "Hi! How can I help?", "Hello, how can I help?"))
    return rng.choice(
        (
            "How can I help you? Tell me what you would like to know.",
            "I can't do that from here. What would you like to know?",
            "I'm not sure what you need. Could you tell me more?",
        )
    )
