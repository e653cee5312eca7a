"""A conversation as the simulated model understands it: the question, what was said before, and what tools returned."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs

from keval_gateway import ChatMessage, ChatRequest
from keval_simulator.results import Outcome, outcome
from keval_simulator.spans import Span, spans
from keval_simulator.words import sentences, stems

_BLOCK = re.compile(r"^<([a-z]+[_-](?:context|reminder))>.*?^</\1>$", re.DOTALL | re.MULTILINE)
_SELF = re.compile(r"\b(?:i|i'm|my)\b(?:.* )?(?:hate|dislike|love|like|enjoy|prefer|stand|mind|live|fond|favou?rite)\b")
_HYPOTHETICAL = re.compile(
    r"\b(?:if|when|whether)\b|\?|\bi (?:would|will|want|should|am (?:going|flying|travel))|i'd\b|i'll\b"
)
_FOLLOWS_UP = re.compile(
    r"^(?:and|so|but|also|now|back to|sorry|no|what about|how about)\b|\b(?:it|that|there|them|then)\W*$"
)
_OF_THE_USER = re.compile(
    r"\b(?:user|customer|default|home|current|repository|working|project|located)\b", re.IGNORECASE
)


@attrs.frozen
class Conversation:
    """What the simulated model reads out of a request.

    `question` is the user's last message, `topic` the question with what it refers back to, and `outcomes` are the tool
    calls made for it so far. `used` has the arguments of earlier turns by the names of parameters, and `statements` are
    what the user said of themselves.
    """

    question: str
    topic: str
    earlier: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    used: Mapping[str, Any]
    statements: tuple[str, ...]
    system: str

    @cached_property
    def subject(self) -> str:
        """The topic without the paths and URLs of where to look."""
        places = [span.text for span in spans(self.topic) if span.kind in ("path", "url")]
        return re.sub("|".join(map(re.escape, places)) or "(?!)", " ", self.topic)

    @cached_property
    def asked(self) -> list[Span]:
        """The spans of the question."""
        return spans(self.question)

    @cached_property
    def told(self) -> list[Span]:
        """The spans of what the user said before, the latest first, and of what the system prompt says of the user."""
        about = [part for part in sentences(self.system) if _OF_THE_USER.search(part)]
        return [span for text in (*reversed(self.earlier), *about) for span in spans(text) if span.kind not in _LOOSE]


_LOOSE = ("initial", "phrase", "word")
"""Kinds of spans that mean nothing outside the question."""


def understand(request: ChatRequest) -> Conversation:
    """Read a request's conversation."""
    asked = [index for index, message in enumerate(request.messages) if message.role == "user"]
    start = asked[-1] if asked else len(request.messages)
    before, since = request.messages[:start], request.messages[start + 1 :]
    question = without_blocks(request.messages[start].text) if asked else request.system
    earlier = tuple(message.text for message in before if message.role == "user")
    used = {name: value for message in before for call in message.calls for name, value in call.arguments.items()}
    asking = [text for text in earlier if not stated_in(text) and len(stems(text)) > 1]
    follows = bool(asking) and (len(stems(question)) < 2 or bool(_FOLLOWS_UP.search(question.lower())))
    thanks = not stems(question) or (not follows and "?" not in question)
    topic = f"{question} {asking[-1]}" if follows and not thanks and not stated_in(question) else question
    statements = _latest([each for text in (*earlier, question) for each in stated_in(text)])
    return Conversation(question, topic, earlier, tuple(_outcomes(since)), used, statements, request.system)


def without_blocks(text: str) -> str:
    """Return what a person wrote of a message, without the blocks in tags in which coding agents tell of themselves."""
    return _BLOCK.sub("", text).strip() or text


def stated_in(text: str) -> list[str]:
    """Return the sentences in which users say something of themselves."""
    found = sentences(re.sub(r", (?=but )|: ", ". ", text.replace("’", "'")))
    return [part for part in found if _SELF.search(part.lower()) and not _HYPOTHETICAL.search(part.lower())]


def _latest(statements: Sequence[str]) -> tuple[str, ...]:
    """Return statements without those that a later one on the same subject replaces."""
    kept: dict[str, set[str]] = {}
    for each in statements:
        words = stems(each) - ATTITUDES
        kept = {text: about for text, about in kept.items() if not words & about} | {each: words}
    return tuple(kept)


ATTITUDES = stems("hate dislike love like enjoy prefer stand mind really actually weather longer please remember know")
"""Words of how users feel about something, and not of what."""


def _outcomes(messages: Sequence[ChatMessage]) -> list[Outcome]:
    """Pair results with calls: by id, else by name, in order."""
    waiting = [call for message in messages for call in message.calls]
    found: list[Outcome] = []
    for message in messages:
        if message.role != "tool":
            continue
        for call in waiting:
            if (message.call_id and call.id == message.call_id) or (not message.call_id and call.name == message.name):
                found.append(outcome(call, message))
                waiting.remove(call)
                break
    return found
