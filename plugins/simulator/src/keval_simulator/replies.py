"""Replies without a tool's result: asking back, apologies, what users said, guesses and small talk."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from keval_simulator.conversation import Conversation
from keval_simulator.results import Outcome, label, shown
from keval_simulator.words import sentences

_ERROR_PREFIX = re.compile(r"^(?:error(?: executing tool \w+)?\s*:\s*)+", re.IGNORECASE)


def clarification(missing: Sequence[str], rng: Random) -> str:
    """Ask for what is missing."""
    named = " and the ".join(map(label, missing))
    asked = rng.choice(
        (f"Could you please tell me the {named}?", f"Which {named} do you mean? Please specify the {named}.")
    )
    return f"{rng.choice(('Sure, I can help with that.', 'Happy to look into it.'))} {asked}"


def apology(failed: Sequence[Outcome]) -> str:
    """Name what the tools could not return and why, and ask for something else."""
    parts: list[str] = []
    for outcome in failed:
        what = next((value for value in outcome.call.arguments.values() if isinstance(value, str)), "")
        problem = sentences(_ERROR_PREFIX.sub("", outcome.error or shown(outcome.data) or "it found nothing"))[:2]
        about = f" for {what}" if what else ""
        parts.append(f"I'm sorry, I couldn't get the data{about}: {' '.join(problem).rstrip('.')}.")
    return " ".join([*dict.fromkeys(parts), "You could check the spelling, or I can try something else instead."])


def remembered(conversation: Conversation) -> str:
    """Repeat what users said of themselves; empty if they said nothing."""
    said = "; ".join(re.sub(r"[.!\s]+$", "", each) for each in conversation.statements)
    return f"As you told me: {said}." if said else ""


def acknowledge(conversation: Conversation, noted: bool, rng: Random) -> str:
    """Confirm what users said of themselves; `noted` says that a tool has stored it."""
    opening = (
        rng.choice(("Thank you, I have noted that.", "Got it, I saved that.")) if noted else "I will keep it in mind."
    )
    return f"{opening} {remembered(conversation)}"


def unknown() -> str:
    """Say honestly that there is nothing to answer from."""
    return "I don't have a source for this, so I can't answer reliably. If you share a document, I can use that."


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
        return rng.choice(("You're welcome!", "My pleasure."))
    if re.match(r"\s*(?:hi|hello|hey|good (?:morning|afternoon|evening))\b", lower):
        return rng.choice(("Hello! What would you like to know?", "Hi! How can I help?"))
    return "I'm not sure what you need. Could you tell me more?"
