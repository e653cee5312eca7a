"""Replies without a tool's result: apologies, questions back, acknowledgements, and answers without a source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from keval_simulator.conversation import Conversation, Outcome
from keval_simulator.preferences import PHRASES, stated_in
from keval_simulator.words import sentences, split_identifier

__all__ = [
    "acknowledge",
    "apology",
    "clarification",
    "guess",
    "profile",
    "small_talk",
    "unknown",
    "weather_guess",
]

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
