"""Tools: which ones a question needs, in which order, and with which arguments."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import attrs

from keval_gateway import ChatCall, ChatTool
from keval_simulator.conversation import (
    FLAGS,
    PHRASES,
    PLACE_WORDS,
    Conversation,
    activities_in,
    days_asked,
    stated_in,
    states_preference,
    subject,
    time_asked,
)
from keval_simulator.schema import properties_of, required_of, resolved, schema_type
from keval_simulator.words import STOP, concepts, key_words, lexicon, numbers, sentences, split_identifier, stems

_QUERY_WORDS = lexicon("query queries search keyword keywords topic term terms q text subject prompt")
_QUESTION_WORDS = lexicon("question insight note message content comment statement body description")
_SOURCE_WORDS = lexicon("from source base origin start")
_TARGET_WORDS = lexicon("to target destination dest end into")
_CURRENCIES = {
    "dollar": "USD", "dollars": "USD", "euro": "EUR", "euros": "EUR", "pound": "GBP", "pounds": "GBP", "yen": "JPY",
    "francs": "CHF", "franc": "CHF", "zloty": "PLN", "rupees": "INR", "yuan": "CNY",
}  # fmt: skip
_FORMATS = {
    "email": re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+\w"),
    "uri": re.compile(r"https?://[^\s\"'<>)]+"),
    "uuid": re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE),
    "date": re.compile(r"\b\d{4}-\d{2}-\d{2}\b"),
}
_WHEN = re.compile(
    r"\b(?:today|tonight|tomorrow|(?:mon|tues|wednes|thurs|fri|satur|sun)day|this weekend)\b", re.IGNORECASE
)
_IDENTIFIER = re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[^\W\d])[\w-]+\b")
_QUOTED = re.compile(r"[\"“'`]([^\"”'`]{1,200})[\"”'`](?![^\W\d])")


@attrs.frozen
class Filled:
    """The arguments found, and the required parameters for which nothing was."""

    arguments: Mapping[str, Any]
    missing: tuple[str, ...] = ()


def place_parameters(parameters: Mapping[str, Any]) -> list[str]:
    """Return the names of the text parameters that take a place."""
    return [
        name
        for name, schema in properties_of(parameters).items()
        if PLACE_WORDS.intersection(split_identifier(name)) and schema_type(resolved(schema, parameters)) == "string"
    ]


_DEEPEST = 3
"""Objects within objects that are filled; a schema may contain itself."""


def fill_arguments(
    parameters: Mapping[str, Any], conversation: Conversation, place: str | None, depth: int = 0
) -> Filled:
    """Fill an object schema's properties, `depth` objects deep; `place` is the place this call is about.

    An optional parameter is only filled from what was said; a required one falls back to its default, to the user's
    words or to a common value, and is missing where neither would make sense.
    """
    properties = properties_of(parameters)
    required = set(required_of(parameters))
    filler = _Filler(conversation, place, len(place_parameters(parameters)) > 1, depth)
    arguments: dict[str, Any] = {}
    missing: list[str] = []
    # Parameters whose names occur in the question take their numbers before the others take what is left.
    for name in sorted(properties, key=lambda each: not stems(each).intersection(stems(conversation.question))):
        value = filler.value(name, resolved(properties[name], parameters), parameters, name in required)
        if value is not None:
            arguments[name] = value
        elif name in required:
            missing.append(name)
    ordered = {name: arguments[name] for name in properties if name in arguments}
    return Filled(ordered, tuple(missing))


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


class _Filler:
    """Hands out what the conversation offers; a number or a place is used once."""

    def __init__(self, conversation: Conversation, place: str | None, several_places: bool, depth: int) -> None:
        self._depth = depth
        self._conversation = conversation
        self._question = conversation.question
        self._place = place
        self._several_places = several_places
        self._places = list(conversation.places)
        self._numbers = numbers(self._question)

    def value(self, name: str, schema: Mapping[str, Any], root: Mapping[str, Any], required: bool) -> Any:
        """Return a parameter's value, or `None` when there is none to give."""
        words = split_identifier(name)
        if "const" in schema:
            return schema["const"] if required else None
        if "enum" in schema:
            return self._choice(schema, required)
        match schema_type(schema):
            case "boolean":
                return self._flag(name, schema, required)
            case "integer" | "number" as kind:
                return self._amount(name, words, schema, kind, required)
            case "array":
                return self._list(name, schema, root, required)
            case "object" if self._depth == _DEEPEST:
                return None
            case "object":
                whole = {**schema, "$defs": root.get("$defs", {})}
                inner = fill_arguments(whole, self._conversation, self._place, self._depth + 1)
                return dict(inner.arguments) if inner.arguments or (required and not inner.missing) else None
            case _:
                return self._text(name, words, schema, required)

    def _choice(self, schema: Mapping[str, Any], required: bool) -> Any:
        if not schema["enum"]:
            return None  # no value would do
        said = stems(self._question)
        for option in schema["enum"]:
            if isinstance(option, str) and stems(" ".join(split_identifier(option))) & said:
                return option
        return (schema.get("default", schema["enum"][0])) if required else None

    def _flag(self, name: str, schema: Mapping[str, Any], required: bool) -> bool | None:
        if name in FLAGS:
            return stated_in(self._question).get(name, schema.get("default", False) if required else None)
        if stems(" ".join(split_identifier(name))) & stems(self._question):
            return True
        return bool(schema.get("default", False)) if required else None

    def _amount(
        self, name: str, words: list[str], schema: Mapping[str, Any], kind: str, required: bool
    ) -> float | int | None:
        value: float | None
        if "days" in words or "day" in words:
            value = days_asked(time_asked(self._conversation))
            fallback: float | None = _number(schema.get("default", 3))
        else:
            value = self._numbers.pop(0) if self._numbers and (required or self._speaks_of(words)) else None
            fallback = _number(schema.get("default"))
        if value is None:
            value = fallback if required else None
        if value is None:
            return None
        value = max(value, schema.get("minimum", -math.inf))
        value = min(value, schema.get("maximum", math.inf))
        return int(value) if kind == "integer" or float(value).is_integer() else value

    def _speaks_of(self, words: list[str]) -> bool:
        return bool(stems(" ".join(words)) & stems(self._question))

    def _list(self, name: str, schema: Mapping[str, Any], root: Mapping[str, Any], required: bool) -> list[Any] | None:
        if name in FLAGS:
            return activities_in(self._question) or ([] if required else None)
        items = resolved(schema.get("items") or {}, root)
        kind = schema_type(items)
        if kind in ("integer", "number") and self._numbers:
            found = [int(each) if each.is_integer() else each for each in self._numbers]
            self._numbers = []
            return found
        if PLACE_WORDS.intersection(split_identifier(name)) and self._places:
            return list(self._places)
        one = self.value(name, items, root, required)
        return None if one is None else [one]

    def _text(self, name: str, words: list[str], schema: Mapping[str, Any], required: bool) -> str | None:
        said = self._said(name, words, schema)
        if said is not None:
            return said
        if not required:
            return None
        if "default" in schema:
            return str(schema["default"])
        if "user" in words or "username" in words:
            return self._conversation.user_id or "default"
        if {"unit", "units"} & set(words):
            return "metric"
        if {"language", "lang", "locale"} & set(words):
            return "en"
        if {"date", "day", "when", "time"} & set(words):
            return "today"
        if PLACE_WORDS.intersection(words) or {"id", "currency", "email", "url", "number"} & set(words):
            return None
        return key_words(self._question) or self._question

    def _said(self, name: str, words: list[str], schema: Mapping[str, Any]) -> str | None:
        """Return what the user said for a text parameter, going by the words of its name."""
        kinds = set(words)
        pattern = _FORMATS.get(str(schema.get("format"))) or next((_FORMATS[w] for w in words if w in _FORMATS), None)
        if pattern and (match := pattern.search(self._question)):
            return match[0]
        if kinds & {"user", "username"} and self._conversation.user_id:
            return self._conversation.user_id
        if "currency" in kinds or "currencies" in kinds:
            return self._currency(kinds)
        if kinds & PLACE_WORDS:
            return self._place_for(kinds)
        if kinds & {"date", "when", "day"}:
            return match[0].lower() if (match := _WHEN.search(self._question)) else None
        if kinds & _QUESTION_WORDS:
            return self._statement() if "insight" in kinds else self._question.strip()
        if quoted := _QUOTED.search(self._question):
            return quoted[1]
        if kinds & _QUERY_WORDS:
            return key_words(self._question) or self._question.strip()
        spoken = re.search(
            rf"\b{re.escape(' '.join(words))}\s*(?:is|=|:|of|to)?\s+[\"'`]?([\w@.-]*\w)", self._question, re.IGNORECASE
        )
        if spoken and spoken[1].lower() not in STOP:
            return spoken[1]
        if kinds & {"id", "number", "code", "key", "ticket", "order"}:
            return match[0] if (match := _IDENTIFIER.search(self._question)) else None
        return None

    def _place_for(self, kinds: set[str]) -> str | None:
        if not self._several_places:
            return self._place
        marker = "from" if kinds & _SOURCE_WORDS else "to" if kinds & _TARGET_WORDS else None
        for place in self._places:
            if marker and re.search(rf"\b{marker}\s+{re.escape(place)}", self._question):
                self._places.remove(place)
                return place
        return self._places.pop(0) if self._places else None

    def _currency(self, kinds: set[str]) -> str | None:
        """Return a currency's code; the one beside a number is what is converted, whatever the order."""
        named = r"[A-Z]{3}\b|" + "|".join(rf"{word}\b" for word in _CURRENCIES)
        found: list[str] = re.findall(rf"\b(?:{named})", self._question)
        if beside := re.search(rf"\d\s*({named})", self._question):
            found.sort(key=lambda each: each != beside[1])
        codes = [_CURRENCIES.get(each, each) for each in found]
        if not codes:
            return None
        return codes[-1] if kinds & _TARGET_WORDS and len(codes) > 1 else codes[0]

    def _statement(self) -> str:
        """Return what the user said of themselves, in their words."""
        told = [part for part in sentences(self._question) if stated_in(part)]
        flags = ", ".join(PHRASES[flag] for flag in stated_in(self._question))
        return " ".join(told) or flags or self._question.strip()


_MOST_PLACES = 4
_MOST_CALLS = 8
_NAME_WEIGHT = 2.0
_DESCRIPTION_WEIGHT = 0.5
_FITS = 0.5
"""What a tool gains that takes a place, when the question names one and shares a word with the tool."""
_NEEDED = 1.0
"""The score a tool must reach: a word of its name that two tools share, or two words of its description."""

_EFFECTS = lexicon(
    "update set save store create delete remove record remember write post send book cancel learn insert edit"
)
_READS = lexicon("get list search find read fetch show lookup query check describe count")
_PROFILE = frozenset({"prefer", "preference", "preferences", "profile", "favourites", "settings", "memory"})
_FREE_TEXT = lexicon("query question q search topic keywords prompt text term")
_ASKING = lexicon(
    "what which who whom whose when where why how is are can does do explain describe list find show tell give"
)
_COMPARING = stems("compare versus vs")
_PERSONAL = frozenset({"i", "me", "my", "i'm", "mine", "we", "our"})
_ADVICE = lexicon("should recommend recommendation suggest advice wear bring take pack plan good")
_SEARCHES = lexicon("search find lookup query")
_OPENS = lexicon("read open get fetch show view")
_NAMES = lexicon("page path url uri slug title document doc file article section")
_MOST_OPENED = 2


@attrs.frozen
class Plan:
    """What to do next: call tools, ask the user for what is missing, or answer."""

    step: Literal["call", "clarify", "answer"]
    calls: tuple[ChatCall, ...] = ()
    missing: tuple[str, ...] = ()


def _personal(conversation: Conversation) -> bool:
    """Tell whether a question asks what is good for this user."""
    words = set(conversation.question.lower().replace("’", "'").replace("?", " ").replace(",", " ").split())
    return bool(words & _PERSONAL) and bool(words & _ADVICE)


def is_profile(tool: str) -> bool:
    """Tell by its name whether a tool stores what is known of the user."""
    return bool(_PROFILE & set(split_identifier(tool)))


def plan_calls(
    tools: Sequence[ChatTool], conversation: Conversation, *, careful: bool = True, reads_on: bool = True
) -> Plan:
    """Decide the next step: the first stage of the plan with calls that were not made yet.

    Stages are: note what the user said of themselves, look the user up, look the answer up, then open what a search
    found. Without `careful` the user is not looked up, and without `reads_on` nothing is opened.
    """
    made = [(outcome.call.name, dict(outcome.call.arguments)) for outcome in conversation.outcomes]
    if len(made) >= _MOST_CALLS:
        return Plan("answer")
    for stage in _stages(tools, conversation, careful):
        wanted = [_calls(tool, conversation) for tool in stage]
        calls = tuple(call for found, _ in wanted for call in found if (call.name, dict(call.arguments)) not in made)
        if calls:
            return Plan("call", calls)
        if missing := tuple(name for _, lacking in wanted for name in lacking):
            return Plan("clarify", missing=missing)
    further = opening_calls(tools, conversation) if reads_on else []
    calls = tuple(call for call in further if (call.name, dict(call.arguments)) not in made)
    return Plan("call", calls) if calls else Plan("answer")


def _stages(tools: Sequence[ChatTool], conversation: Conversation, careful: bool) -> Iterator[list[ChatTool]]:
    profile = [tool for tool in tools if is_profile(tool.name)]
    # What opens a document needs its name, which a search is there to find.
    searched = any(is_search(tool.name) for tool in tools)
    lookups = [tool for tool in tools if tool not in profile and not (searched and opened_by(tool))]
    chosen = _chosen(lookups, conversation)
    answerable = any(found for found, _ in (_calls(tool, conversation) for tool in chosen))
    states = states_preference(conversation.question)
    if states:
        yield [tool for tool in profile if _has_effect(tool)]
    asks_profile = "preference" in concepts(conversation.question) and not states
    if asks_profile or (careful and answerable and _personal(conversation) and not states):
        yield [tool for tool in profile if not _has_effect(tool)]
    only_tells = states and "?" not in conversation.question and not conversation.named_places
    if chosen and not only_tells:
        yield chosen


def _has_effect(tool: ChatTool) -> bool:
    return _effect(tool) is not None


def _effect(tool: ChatTool) -> str | None:
    """Return the verb of a tool that changes something; `get_blog_post` only reads, whatever follows its verb."""
    verb = next((word for word in split_identifier(tool.name) if word in _EFFECTS or word in _READS), None)
    return verb if verb in _EFFECTS else None


def _chosen(tools: Sequence[ChatTool], conversation: Conversation) -> list[ChatTool]:
    """Return the best tool, and every other that the question names by a word of its own."""
    asked = subject(conversation)
    if "weather" in asked and "forecast" not in asked:
        asked.add("current")
    votes = {tool.name: _votes(tool, tools, asked) for tool in tools if _permitted(tool, conversation)}
    fitting = {tool.name for tool in tools if conversation.named_places and place_parameters(tool.parameters)}
    scored = {name: sum(vote.values()) + (_FITS if vote and name in fitting else 0) for name, vote in votes.items()}
    best = max(scored, key=lambda name: scored[name], default=None)
    if best is None or scored[best] < _NEEDED:
        return _for_bare_place(tools, conversation) or _searchers(tools, conversation)
    names = {best}
    names.update(
        name
        for name, vote in votes.items()
        if name != best and _related(vote, votes[best]) and any(weight >= _NAME_WEIGHT for weight in vote.values())
    )
    return [tool for tool in tools if tool.name in names]


def _related(vote: dict[str, float], best: dict[str, float]) -> bool:
    """Tell whether two tools share a word the question uses: a forecast joins the current weather, not a flight."""
    return bool(vote.keys() & best.keys())


def _votes(tool: ChatTool, tools: Sequence[ChatTool], asked: set[str]) -> dict[str, float]:
    """Return the weight of each word of the question that the tool has; a word that many tools have counts less."""
    own = _weights(tool)
    return {word: own[word] / sum(word in _weights(other) for other in tools) for word in asked & own.keys()}


def _weights(tool: ChatTool) -> dict[str, float]:
    described = dict.fromkeys(stems(tool.description), _DESCRIPTION_WEIGHT)
    return described | dict.fromkeys(stems(" ".join(split_identifier(tool.name))), _NAME_WEIGHT)


def _permitted(tool: ChatTool, conversation: Conversation) -> bool:
    """Tell whether a tool may be called; one that changes something only if the user's own words ask for that."""
    verb = _effect(tool)
    return verb is None or bool(stems(verb) & stems(conversation.question))


def _for_bare_place(tools: Sequence[ChatTool], conversation: Conversation) -> list[ChatTool]:
    """Return the first tool that takes a place, when the user says nothing but places ("Helsinki?")."""
    named = stems(" ".join(conversation.named_places))
    if not named or stems(conversation.question) - named - _COMPARING:
        return []
    return [tool for tool in tools if place_parameters(tool.parameters) and not _has_effect(tool)][:1]


def _searchers(tools: Sequence[ChatTool], conversation: Conversation) -> list[ChatTool]:
    """Return the first tool that takes free text, for a question that no tool names."""
    words = conversation.question.lower().split()
    asks = "?" in conversation.question or (words and words[0] in _ASKING)
    if not asks or len(stems(conversation.question)) == 0:
        return []
    for tool in tools:
        properties = properties_of(tool.parameters)
        required = required_of(tool.parameters) or properties
        free = [name for name in required if _FREE_TEXT & set(split_identifier(name))]
        if free and not _has_effect(tool):
            return [tool]
    return []


def _calls(tool: ChatTool, conversation: Conversation) -> tuple[list[ChatCall], list[str]]:
    """Return the calls of one tool: one per place when it takes one place."""
    takes_place = len(place_parameters(tool.parameters)) == 1
    places = conversation.places[:_MOST_PLACES] if takes_place and conversation.places else (None,)
    calls: list[ChatCall] = []
    missing: list[str] = []
    for place in places:
        filled = fill_arguments(tool.parameters, conversation, place)
        if filled.missing:
            missing += filled.missing
        else:
            calls.append(ChatCall(tool.name, filled.arguments))
    return calls, ["city" if PLACE_WORDS & set(split_identifier(name)) else name for name in dict.fromkeys(missing)]


def is_search(tool: str) -> bool:
    """Tell by its name whether a tool searches."""
    return bool(_SEARCHES & set(split_identifier(tool)))


def opened_by(tool: ChatTool) -> str | None:
    """Return the parameter by which a tool opens one document, or `None` when it does something else."""
    words = split_identifier(tool.name)
    required = required_of(tool.parameters)
    if not _OPENS & set(words) or is_search(tool.name) or len(required) != 1:
        return None
    (name,) = required
    schema = resolved(properties_of(tool.parameters).get(name), tool.parameters)
    return name if _NAMES & set(split_identifier(name)) and schema_type(schema) == "string" else None


def opening_calls(tools: Sequence[ChatTool], conversation: Conversation) -> list[ChatCall]:
    """Return the calls that open the first documents that searches for this question have named."""
    found = [outcome.reading.data for outcome in conversation.outcomes if is_search(outcome.call.name)]
    for tool in tools:
        if parameter := opened_by(tool):
            named = dict.fromkeys(name for data in found for name in _named(data, parameter))
            return [ChatCall(tool.name, {parameter: name}) for name in [*named][:_MOST_OPENED]]
    return []


def _named(data: Any, parameter: str) -> Iterator[str]:
    """Yield what a result has under a parameter's name, as a key of a record or as `name: value` in a text."""
    if isinstance(data, str):
        line = rf"^\W*{re.escape(parameter)}\W*:\W*?([^\s\"'`*,]+)"
        yield from re.findall(line, data, re.MULTILINE | re.IGNORECASE)
    elif isinstance(data, Mapping):
        for key, value in data.items():
            if key == parameter and isinstance(value, str):
                yield value
            else:
                yield from _named(value, parameter)
    elif isinstance(data, list):
        for item in data:
            yield from _named(item, parameter)
