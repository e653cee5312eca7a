"""A conversation as the simulated model understands it: what is asked, of which place, for when, and by whom."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from keval_gateway import ChatCall, ChatMessage, ChatRequest
from keval_simulator.places import home_in, places_after_in, places_in
from keval_simulator.preferences import flags_of, stated_in, states_preference
from keval_simulator.tool_results import Reading, read
from keval_simulator.words import concepts, lexicon, numbers, split_identifier, stems

__all__ = ["PLACE_WORDS", "Conversation", "Outcome", "days_asked", "subject", "time_asked", "understand"]

PLACE_WORDS = lexicon("city cities location locations place places town address destination origin region")

_USER_ID = re.compile(
    r"\buser(?:['’]s)?[\s_-]*id\b['\"`]?(?:\s*(?:\bis\b|[:=])\s*['\"`]?|\s+(?=[\w-]*\d)|\s+['\"`])"
    r"([\w@-]+(?:\.[\w@-]+)*)",
    re.IGNORECASE,
)
_TIMES = frozenset({"forecast", "current"})
_BACK = re.compile(r"^(?:and|so|what about|how about)\b|\b(?:it|that(?: day| time)?|then)\W*$")
_OUTING = re.compile(
    r"\b(?:what (?:should|could|can|shall) (?:i|we) do|ideas?|spend|go for a|visit|activit(?:y|ies))\b"
)
_DAYS = re.compile(r"\b(\d+|\w+)[\s-]days?\b")
_MANY_DAYS = {"weekend": 5, "week": 5, "(?:mon|tues|wednes|thurs|fri|satur|sun)day": 5, "tomorrow": 2}
"""How far ahead a word reaches; a weekday is at most a week away, and forecasts rarely reach further than 5 days."""


@attrs.frozen
class Outcome:
    """A tool call and its result."""

    call: ChatCall
    reading: Reading


@attrs.frozen
class Conversation:
    """What the simulated model reads out of a request.

    `question` is the user's last message and `earlier` their messages before it; `outcomes` are the tool calls made
    for the question so far. `places` are those that the question names (`named_places`), or else the one that was last
    talked about or where the user lives.
    """

    question: str
    earlier: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    places: tuple[str, ...]
    named_places: tuple[str, ...]
    preferences: Mapping[str, bool]
    user_id: str | None

    @property
    def liked(self) -> list[str]:
        """The preference flags that hold."""
        return [flag for flag, holds in self.preferences.items() if holds]


def understand(request: ChatRequest) -> Conversation:
    """Read a request's conversation."""
    asked = [index for index, message in enumerate(request.messages) if message.role == "user"]
    start = asked[-1] if asked else len(request.messages)
    before, since = request.messages[:start], request.messages[start + 1 :]
    question = request.messages[start].text if asked else request.system
    earlier = tuple(message.text for message in before if message.role == "user")
    named = places_in(question)
    known = _known_place(before) or home_in(request.system)
    return Conversation(
        question,
        earlier,
        tuple(_outcomes(since)),
        named or ((known,) if known else ()),
        named,
        _preferences(request),
        _user_id((request.system, *earlier, question)),
    )


def _outcomes(messages: Sequence[ChatMessage]) -> list[Outcome]:
    """Pair results with calls: by id, else by name, in order."""
    waiting = [call for message in messages for call in message.calls]
    found: list[Outcome] = []
    for message in messages:
        if message.role != "tool":
            continue
        for call in waiting:
            if (message.call_id and call.id == message.call_id) or (not message.call_id and call.name == message.name):
                found.append(Outcome(call, read(message)))
                waiting.remove(call)
                break
    return found


def _known_place(messages: Sequence[ChatMessage]) -> str | None:
    """Return the place that was last talked about: looked up, named by the user, or named in an answer."""
    for message in reversed(messages):
        for call in reversed(message.calls):
            for key, value in call.arguments.items():
                if isinstance(value, str) and PLACE_WORDS.intersection(split_identifier(key)):
                    return value
        if message.role == "tool":
            continue
        found = places_in(message.text) if message.role == "user" else places_after_in(message.text)
        if found:
            return found[-1]
    return None


def _preferences(request: ChatRequest) -> dict[str, bool]:
    """Collect what is known of the user; what was said last wins."""
    found = stated_in(request.system)
    for message in request.messages:
        if message.role == "user":
            found.update(stated_in(message.text))
        elif message.role == "tool" and not message.error:
            found.update(flags_of(read(message).data))
    return found


def _user_id(texts: Sequence[str]) -> str | None:
    return next((match[1] for text in texts if (match := _USER_ID.search(text))), None)


def subject(conversation: Conversation) -> set[str]:
    """Return the concepts a question is about.

    A fragment ("And tomorrow?", "Rome") is about what the question before it was about, and one that refers back
    ("so what should I pack for it?") is about the same time. What to do somewhere depends on the weather there.
    """
    question = conversation.question.lower()
    found = concepts(question)
    if days_asked(question):
        found.add("forecast")
    before = _questions(conversation.earlier)
    if before and _follows_up(conversation, found):
        latest = concepts(before[-1])
        if _leaves_time_open(question):
            found |= {"forecast"} if days_asked(time_asked(conversation)) else latest & _TIMES
        if "weather" not in found and (len(question.split()) <= 5 or _BACK.search(question)):
            found |= latest - _TIMES
    if conversation.places and _OUTING.search(question):
        found.add("weather")
    return found


def days_asked(text: str) -> int | None:
    """Return how many days of forecast a question asks for, counting from today; `None` when it does not say."""
    lower = text.lower()
    named = next((count for word, count in _MANY_DAYS.items() if re.search(rf"\b{word}\b", lower)), None)
    counted = next((int(count[0]) for word in _DAYS.findall(lower) if (count := numbers(word))), None)
    return max(filter(None, (named, counted)), default=None)


def time_asked(conversation: Conversation) -> str:
    """Return the message that says for when: the question, unless it leaves that to those before it."""
    for text in (conversation.question, *reversed(_questions(conversation.earlier))):
        if days_asked(text) or not _leaves_time_open(text):
            return text
    return conversation.question


def _questions(messages: Sequence[str]) -> list[str]:
    """Return the messages that ask for something, without thanks and without statements of preferences."""
    return [text for text in messages if stems(text) and ("?" in text or not states_preference(text))]


def _leaves_time_open(text: str) -> bool:
    about = concepts(text)
    return not about & _TIMES and (bool(_BACK.search(text.lower())) or "weather" not in about)


def _follows_up(conversation: Conversation, found: set[str]) -> bool:
    """Tell whether a message asks on, as "Rome", "And tomorrow?" and "so what should I pack" do, unlike "Great!"."""
    question = conversation.question
    asks = "?" in question or bool(conversation.named_places or found & _TIMES or _BACK.search(question.lower()))
    return asks and bool(stems(question)) and not states_preference(question)
