"""A conversation as the simulated model understands it: what is asked, of which place, for when, and by whom."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from keval_gateway import ChatCall, ChatMessage, ChatRequest
from keval_simulator.tool_results import Reading, read
from keval_simulator.words import STOP, concepts, lexicon, numbers, sentences, split_identifier, stems

# A word that starts with a capital letter of any alphabet that has them: São, Łódź, Zürich, St.
_CAPITAL = r"(?:St\.|[^\W\d_a-zß-öø-ÿ][^\W\d_]*(?:[-'’][^\W\d_]+)*)"
_PARTICLE = r"(?:d[aeo]|del|la|le|los|las|of|upon|am|an|der|den|el|al|sur)"
_PHRASE = re.compile(rf"{_CAPITAL}(?:\s+(?:{_PARTICLE}\s+)?{_CAPITAL}){{0,3}}")
_AFTER_IN = re.compile(rf"\b(?:in|for|at)\s+({_PHRASE.pattern})")
_HOME = re.compile(
    rf"\b(?:lives? in|living in|located in|based in|home(?: city)?(?: is|:)|default city(?: is|:)|city:)"
    rf"\s+({_PHRASE.pattern})"
)
_LOWER = re.compile(
    r"\b(?:in|at|near|around|visit|visiting|for)\s+"
    r"((?:(?:new|san|santa|são|sao|los|las|rio de|buenos|cape|kuala|hong|tel|saint|el|abu|mexico|den)\s+)?[^\W\d_]{3,})"
)

_NOT_PLACES = lexicon("""
    am any anything are avoid based because best bring but can check clothes compare could current currently degrees
    did do does ever every everyone fine first forecast general get give going good great have hello help here hey hi
    home how however i i'd i'll i'm i've if indoor indoors instead is it it's its just keep know let like list looking
    maybe me mid much my need never next nice no nope note now ok okay only other our outdoor outdoors outside
    perhaps plan please pm quick rain recommend remember right save say set she should show since snow so some
    something sorry speaking store suggest sun sunny sure tell temperature temperatures thank thanks that that's the
    then there these they think this those thursday time to today tomorrow tonight tool trip umbrella unfortunately
    until update use user visiting warm warmer was we weather week weekend well what what's when where where's
    whether which who why will wind with would write yes yesterday you your morning afternoon evening night
    monday tuesday wednesday friday saturday sunday january february march april may june july august september
    october november december spring summer autumn winter fall celsius fahrenheit english metric imperial usd eur gbp
    day days general least minute hour hours month months noon lunch dinner breakfast work school advance detail
    short total particular case mind order progress it's i’m what’s it’s mr mrs ms dr compared convert search find
    actually after again also ah alright awesome back brilliant cool excellent fantastic hmm later lovely oh once
    perfect same still too wonderful wow yeah yep
    """)

_COUNTRIES = lexicon("""
    argentina australia austria belgium brazil canada chile china croatia czechia denmark egypt england estonia finland
    france germany greece hungary iceland india indonesia ireland israel italy japan kenya latvia lithuania malaysia
    mexico morocco netherlands norway peru poland portugal romania scotland serbia slovakia slovenia spain sweden
    switzerland thailand turkey uk ukraine usa vietnam wales
    """)


def places_in(text: str) -> tuple[str, ...]:
    """Return the places a user's message names, in order and without repeats.

    A country after its city ("Paris, France") is left out.
    """
    found = [place for match in _PHRASE.finditer(text) if (place := _trimmed(match[0]))]
    if not found:
        found = [match[1].title() for match in _LOWER.finditer(text) if _plausible(match[1])]
    unique = list(dict.fromkeys(found))
    cities = [place for place in unique if place.lower() not in _COUNTRIES]
    return tuple(cities or unique)


def places_after_in(text: str) -> tuple[str, ...]:
    """Return the places an assistant's prose names as "in Oslo"; its other capitals mean nothing."""
    return tuple(place for match in _AFTER_IN.finditer(text) if (place := _trimmed(match[1])))


def home_in(text: str) -> str | None:
    """Return where a system prompt says that the user is at home."""
    match = _HOME.search(text)
    return _trimmed(match[1]) or None if match else None


def _trimmed(phrase: str) -> str:
    """Drop words at either end that only look like names, and a possessive ending; may leave nothing."""
    words = re.sub(r"['’]s\b", "", phrase).split()
    while words and not _plausible(words[0]):
        words.pop(0)
    while words and not _plausible(words[-1]):
        words.pop()
    place = " ".join(words)
    # Short words in capitals are acronyms and currency codes, not places.
    return "" if place.isupper() and len(place) <= 3 else place


def _plausible(word: str) -> bool:
    return word.lower() not in _NOT_PLACES and word.lower() not in STOP


PHRASES = {
    "dislikes_cold": "dislike the cold",
    "dislikes_heat": "dislike the heat",
    "dislikes_rain": "dislike rain",
    "dislikes_wind": "dislike wind",
    "prefers_sunny": "prefer sunny weather",
    "prefers_indoor": "prefer to be indoors",
    "outdoor_activities": "enjoy outdoor activities",
    "sensitive_to_weather": "are sensitive to the weather",
}
"""How each flag is said to the user, after "you"."""

FLAGS = tuple(PHRASES)

ACTIVITIES = ("hiking", "cycling", "running", "jogging", "swimming", "walking", "skiing", "camping", "sailing", "golf")

_NOT = r"(?:do(?:es)? ?n[o']t|never)"
_AVERSION = rf"(?:hates?|dislikes?|{_NOT} (?:really )?(?:like|enjoy)|can(?:no|')t stand|not a fan of)"
_LIKING = r"(?:loves?|likes?|enjoys?|prefers?|(?:am|is|are|i'm) (?:fond of|into))"
_GAP = r"(?: (?:the|any|very|really|to|be|being|doing|going|in|cold and|hot and|when it is|when it's|it when it's))*"
_SENSITIVE = r"(?:am|is|are|i'm|very|quite) (?:very |quite )?sensitive to"
_NO_LONGER = rf"(?:{_NOT}|no longer) (?:really )?"

_DISLIKED = {
    "dislikes_cold": "(?:cold|chill|freezing|winter|snow)",
    "dislikes_heat": "(?:heat|hot|humid)",
    "dislikes_rain": "(?:rain|wet|drizzle)",
    "dislikes_wind": "wind",
}
_LIKED = {
    "prefers_sunny": "(?:sun|clear sk)",
    "prefers_indoor": "(?:indoor|staying in|inside|museum)",
    "outdoor_activities": f"(?:outdoor|outside|nature|{'|'.join(ACTIVITIES)})",
}
_STATEMENTS = {
    **{flag: rf"{_AVERSION}{_GAP} {what}" for flag, what in _DISLIKED.items()},
    **{flag: rf"{_LIKING}{_GAP} {what}" for flag, what in _LIKED.items()},
    "sensitive_to_weather": _SENSITIVE,
}
_STATEMENTS["dislikes_cold"] += rf"|{_SENSITIVE} (?:the )?cold"
_STATEMENTS["dislikes_heat"] += rf"|{_SENSITIVE} (?:the )?heat"
_RETRACTIONS = {
    **{flag: rf"{_NO_LONGER}(?:minds?|hates?|dislikes?){_GAP} {what}" for flag, what in _DISLIKED.items()},
    **{flag: rf"{_NO_LONGER}(?:loves?|likes?|enjoys?|prefers?){_GAP} {what}" for flag, what in _LIKED.items()},
    "sensitive_to_weather": r"(?:not|no longer) (?:that |very )?sensitive to",
}
_STATED = {flag: re.compile(pattern) for flag, pattern in _STATEMENTS.items()}
_RETRACTED = {flag: re.compile(pattern) for flag, pattern in _RETRACTIONS.items()}
_FLAG = re.compile(rf"\b({'|'.join(FLAGS)})\b['\"`]?\s*(?:[:=]\s*)?(true|yes|1\b|\[\s*['\"\w]|false|no\b|0\b|\[)")
_HYPOTHETICAL = re.compile(r"\b(?:if|when|whenever|whether|for example|e\.g|such as)\b")
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i’m|my|me)\b")


def stated_in(text: str) -> dict[str, bool]:
    """Return the flags that a text states, in words or as `flag: true`; "I don't mind the rain" makes one false."""
    lower = text.lower().replace("’", "'")
    told = " ".join(part for part in sentences(lower) if not _HYPOTHETICAL.search(part))
    found = {flag: True for flag, pattern in _STATED.items() if pattern.search(told)}
    found |= {flag: False for flag, pattern in _RETRACTED.items() if pattern.search(told)}
    for flag, value in _FLAG.findall(lower):
        found[flag] = value not in ("false", "no", "0", "[")
    return found


def states_preference(text: str) -> bool:
    """Tell whether a user says what they themselves like or dislike."""
    lower = text.lower().replace("’", "'")
    return bool(_FIRST_PERSON.search(lower)) and any(
        pattern.search(lower) for pattern in (*_STATED.values(), *_RETRACTED.values())
    )


def activities_in(text: str) -> list[str]:
    """Return the outdoor activities a text names."""
    return [activity for activity in ACTIVITIES if activity in text.lower()]


def flags_of(data: Any) -> dict[str, bool]:
    """Return the flags anywhere inside a tool's result."""
    if isinstance(data, Mapping):
        found = {key: bool(value) for key, value in data.items() if key in FLAGS and value is not None}
        for value in data.values():
            found.update(flags_of(value))
        return found
    if isinstance(data, list):
        return {flag: value for item in data for flag, value in flags_of(item).items()}
    return {}


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
_BLOCK = re.compile(r"^<([a-z]+[_-](?:context|reminder))>.*?^</\1>$", re.DOTALL | re.MULTILINE)


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
    question = without_blocks(request.messages[start].text) if asked else request.system
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


def without_blocks(text: str) -> str:
    """Return what a person wrote of a message, without the blocks in tags in which coding agents tell of themselves."""
    return _BLOCK.sub("", text).strip() or text


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
