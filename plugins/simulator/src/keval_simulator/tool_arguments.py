"""Tool arguments: filling a tool's parameters from its JSON Schema and the conversation."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import attrs

from keval_simulator.conversation import PLACE_WORDS, Conversation, days_asked, time_asked
from keval_simulator.json_schema import resolved, schema_type
from keval_simulator.preferences import FLAGS, PHRASES, activities_in, stated_in
from keval_simulator.words import STOP, key_words, lexicon, numbers, sentences, split_identifier, stems

__all__ = ["Filled", "fill_arguments", "place_parameters"]

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
        for name, schema in (parameters.get("properties") or {}).items()
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
    properties = parameters.get("properties") or {}
    required = set(parameters.get("required") or ())
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
            fallback: float | None = schema.get("default", 3)
        else:
            value = self._numbers.pop(0) if self._numbers and (required or self._speaks_of(words)) else None
            fallback = schema.get("default")
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
