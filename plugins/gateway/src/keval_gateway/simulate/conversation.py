"""The conversation as the simulated model understands it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from keval_gateway.chat import ChatCall, ChatMessage, ChatRequest
from keval_gateway.simulate.places import home_in, places_after_in, places_in
from keval_gateway.simulate.preferences import flags_of, stated_in
from keval_gateway.simulate.reading import Reading, read
from keval_gateway.simulate.words import lexicon, split_identifier

__all__ = ["PLACE_WORDS", "Conversation", "Outcome", "understand"]

PLACE_WORDS = lexicon("city cities location locations place places town address destination origin region")

_USER_ID = re.compile(
    r"\buser(?:['’]s)?[\s_-]*id\b['\"`]?(?:\s*(?:\bis\b|[:=])\s*['\"`]?|\s+(?=[\w-]*\d)|\s+['\"`])"
    r"([\w@-]+(?:\.[\w@-]+)*)",
    re.IGNORECASE,
)


@attrs.frozen
class Outcome:
    """A tool call and what came of it."""

    call: ChatCall
    reading: Reading


@attrs.frozen
class Conversation:
    """What matters of a request.

    `question` is the user's last message and `earlier` their messages before it; `outcomes` are the tool calls made
    for the question so far. `places` are those it is about: named in it, else in what was said before.
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
