"""Arguments: each parameter of a tool, by its schema, gets the span of what was said that fits it best."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from keval_gateway import ChatTool
from keval_simulator.conversation import ATTITUDES, Conversation, stated_in
from keval_simulator.found import CATALOGUES, catalogued, named, taken_from_results
from keval_simulator.parameters import (
    FORM,
    Parameter,
    beside,
    bounded,
    fit,
    fit_number,
    orders,
    parameters_of,
    reading,
    written,
)
from keval_simulator.schema import Schema, resolved, schema_type
from keval_simulator.spans import Span
from keval_simulator.words import ORDINALS, alike, lexicon, shares_stem, split_identifier, stem, stems

_STRONG = 3.0
"""What a span must reach for an optional parameter: it is of the kind wanted, or the parameter's name is beside it."""
_DEEPEST = 3
_SEARCHES = stems("search find lookup look query list filter get fetch read retrieve open")
_FRACTION = re.compile(r"\bdecimal\b|\bfraction\b|\b0\.\d+", re.IGNORECASE)
_UNIT = re.compile(r"\bhow many ([a-z]+)|\b(?:to|into|in) (?:degrees )?([A-Za-zµ°]+(?:/[a-z]+)?)", re.IGNORECASE)
_MOMENT = re.compile(r"(?:\d{4}-\d\d-\d\d|YYYY-MM-DD)([ T])(?:\d\d|HH):(?:\d\d|mm|MM)(:)?")
_FOLDER = lexicon("folder directory dir")


@attrs.frozen
class Filled:
    """The arguments found, the required parameters without any, and what else each parameter could have."""

    arguments: Mapping[str, Any]
    missing: tuple[str, ...] = ()
    others: Mapping[str, Sequence[Any]] = attrs.field(factory=dict)
    strength: float = 0.0
    extra: float = 0.0
    """How well the best optional parameter fits."""
    used: float = 0.0
    """The share of the question's names, numbers and other values that the arguments have."""


def fill(
    tool: ChatTool,
    conversation: Conversation,
    *,
    found: Sequence[str] = (),
    needed: Sequence[str] = (),
    schema: Schema | None = None,
    depth: int = 0,
) -> Filled:
    """Fill a tool's parameters with spans of the question; each span is used once.

    A required parameter falls back to what was said or used before, to its default, or to the question's words; with
    `found` it takes what earlier results name. `needed` are optional parameters that an error has asked for.
    """
    parameters = [
        attrs.evolve(each, required=each.required or each.name in needed) for each in parameters_of(tool, schema)
    ]
    schema = schema or tool.parameters
    own = stems(" ".join(split_identifier(tool.name)))
    ranked = {each.name: list(_candidates(each, conversation, own, found)) for each in parameters}
    if [each.kind for each in parameters if each.required] == ["expression"]:
        ranked[next(each.name for each in parameters if each.required)] += _conversions(tool, conversation)
    pairs = sorted(
        ((score, at, value, span) for at, each in enumerate(parameters) for score, value, span in ranked[each.name]),
        key=lambda pair: (-pair[0], not parameters[pair[1]].required, pair[1], pair[3].start if pair[3] else 0),
    )
    arguments: dict[str, Any] = {}
    taken: list[Span] = []
    strengths: list[float] = []
    extra = 0.0
    for score, at, value, span in pairs:
        parameter = parameters[at]
        taken_before = any(_overlap(span, each) for each in taken) if span else value in map(str, arguments.values())
        # An id, a name or a number may be anything's, unless it stands beside the parameter's name.
        least = _STRONG + 0.5 * (parameter.kind in ("id", "name") or isinstance(value, float | int))
        if parameter.name not in arguments and not taken_before and score >= (0.1 if parameter.required else least):
            arguments[parameter.name] = value
            taken += [span] if span else []
            strengths += [score] if parameter.required else []
            extra = max(extra, 0.0 if parameter.required else score)

    for name in [each.name for each in parameters if each.kind == "query" and each.name in arguments]:
        elsewhere = {word for other, value in arguments.items() if other != name for word in str(value).split()}
        kept = [word for word in str(arguments[name]).split() if word not in elsewhere]
        arguments[name] = " ".join(kept) or arguments[name]

    def within(inner: Schema) -> dict[str, Any] | None:
        """Fill an object that an argument is or has."""
        if depth == _DEEPEST:
            return None
        inner = {"$defs": schema.get("$defs", {}), **inner}
        filled = fill(tool, conversation, found=found, schema=inner, depth=depth + 1)
        return dict(filled.arguments) if filled.arguments and not filled.missing else None

    missing: list[str] = []
    for parameter in parameters:
        if parameter.name in arguments:
            continue
        kind = schema_type(parameter.schema)
        items = resolved(parameter.schema.get("items") if kind == "array" else {}, schema)
        given: Any = None
        match kind:
            case "object":
                given = within(parameter.schema) if parameter.required else None
            case "array" if schema_type(items) == "object":
                inner = within(items) if parameter.required else None
                given = None if inner is None else [inner]
            case "array":
                one = Parameter(parameter.name.removesuffix("s"), items, parameter.required)
                given = _listed([*_candidates(one, conversation, own, found)], parameter.required)
                strengths += [2.0] if given and len(given) > 1 and parameter.required else []
            case _:
                given = _fallback(parameter, conversation)
        if given is not None:
            arguments[parameter.name] = given
            strengths += [1.5] if parameter.required and parameter.options and "default" not in parameter.schema else []
        elif parameter.required:
            missing.append(parameter.name)
    paths = [each for each in parameters if each.kind == "path"]
    folders = [each.name for each in paths if _FOLDER & set(each.words) and each.name not in arguments]
    for path in (each.name for each in paths if folders and "/" in str(arguments.get(each.name))):
        arguments[folders[0]], _, arguments[path] = arguments[path].rpartition("/")
    others = {
        each.name: [value for _, value, _ in sorted(ranked[each.name], key=lambda one: -one[0])]
        for each in parameters if each.required
    }  # fmt: skip
    ordered = {each.name: arguments[each.name] for each in parameters if each.name in arguments}
    plain = ("word", "phrase", "initial", "expression", "quantity", "part")
    values = [span for span in conversation.asked if span.kind not in plain]
    said = str(list(arguments.values()))
    used = sum(span.text in said for span in values) / max(len(values), 1)
    return Filled(ordered, tuple(missing), others, min(strengths, default=0.0), extra, used)


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


def _candidates(
    parameter: Parameter, conversation: Conversation, own: set[str], found: Sequence[str]
) -> Iterator[tuple[float, Any, Span | None]]:
    schema, kind = parameter.schema, schema_type(parameter.schema)
    if parameter.options:
        yield from _choices(parameter, conversation)
        return
    if parameter.name in found and parameter.kind != "sql" and kind in ("string", "integer"):
        taken = taken_from_results(parameter, conversation)[:3]
        yield from ((20.0 - at, value, None) for at, value in enumerate(taken))
    if kind in ("integer", "number"):
        for span in conversation.asked:
            if span.kind in ("number", "part") and (score := fit_number(parameter, span)) > 0:
                from_zero = span.text.lower() in ORDINALS and "index" in parameter.words and not schema.get("minimum")
                percent = "%" in span.after[:1] and kind == "number" and _FRACTION.search(parameter.about)
                number = span.number / 100 if percent else span.number - from_zero
                yield score, bounded(number, schema, kind), span
    elif kind == "string" and parameter.kind == "query":
        yield from ((2.0 - at / 4, value, None) for at, value in enumerate(queries(conversation, own)[:5]))
    elif kind == "string" and parameter.kind == "sql":
        statements = _statements(conversation, parameter.name in found)
        yield from ((8.0 - at, each, None) for at, each in enumerate(statements))
    elif kind == "string":
        yield from _moments(parameter, conversation)
        for span in conversation.asked:
            if (score := fit(parameter, span, own)) > 0 and (value := written(parameter, span)) is not None:
                yield score, value, span
        for span in conversation.told:
            if parameter.required and fit(parameter, span, own) > 0 and beside(parameter, span) >= 2:
                yield 2.6, span.text, None


def _moments(parameter: Parameter, conversation: Conversation) -> Iterator[tuple[float, Any, Span | None]]:
    """Yield a date with a time, where the question has both and the description shows such a value."""
    days, clocks = ([each for each in conversation.asked if each.kind == kind] for kind in ("date", "time"))
    shape = _MOMENT.search(f"{parameter.about} {parameter.examples}")
    if shape and days and clocks:
        yield 6.0, f"{days[0].text}{shape[1]}{clocks[0].text}{':00' if shape[2] else ''}", days[0]


def _conversions(tool: ChatTool, conversation: Conversation) -> Iterator[tuple[float, Any, Span | None]]:
    """Yield "3 km to miles" for a tool that converts, and takes nothing but such a text."""
    names = split_identifier(tool.name)
    quantity = next((each for each in conversation.asked if each.kind == "quantity"), None)
    if quantity and "convert" in names and "to" not in names and (unit := _UNIT.search(conversation.question)):
        yield 5.0, f"{quantity.text} to {unit[1] or unit[2]}", quantity


def _choices(parameter: Parameter, conversation: Conversation) -> Iterator[tuple[float, Any, Span | None]]:
    """Yield the options of an enumeration that the question names, at their places."""
    said = stems(conversation.topic)
    modes = reading(parameter)
    ordered = [each for each in parameter.options if modes and orders(conversation.question, str(each).lower())]
    for at, option in enumerate([*ordered, *modes]):
        yield 4.0 - at / 10 + (stem(str(option)) in said), option, None
    for option in parameter.options if not modes else ():
        words = {stem(word) for word in split_identifier(str(option))}
        spans = [each for each in conversation.asked if each.kind != "quantity"]
        same = [each for each in spans if stems(each.text) == words > set() or each.text == str(option)]
        if same:
            plain = any(each.text.lower() in (str(option).lower(), f"{option}s".lower()) for each in same)
            yield 4.0 + plain + beside(parameter, same[0]), option, same[0]
        elif shared := [word for word in words if len(word) > 2 and shares_stem(word, said)]:
            yield 3.0 if len(shared) == len(words) else 1.5, option, None
        elif parameter.required and (meant := alike(conversation.topic) & (words | _meaning(parameter, str(option)))):
            yield 2.0 + len(meant) / 10, option, None


def _meaning(parameter: Parameter, option: str) -> set[str]:
    """Return the words by which a description explains an option, as in "diff: date difference, add: add to date"."""
    told = re.search(rf"(?<![\w-]){re.escape(option)}['\"`]?(?:: | - | = | \()([^,;.\n]+)", parameter.about)
    return stems(told[1]) if told else set()


def queries(conversation: Conversation, own: set[str]) -> list[str]:
    """Return what one would type into a search box: a quote, a name that only the question has, or its words."""
    asked = conversation.asked
    known = stems(conversation.system) | own
    quotes = [span.text for span in asked if span.kind in ("quote", "email", "url")]
    names = [span.text for span in asked if span.kind in ("name", "id", "code") and not stems(span.text) & known]
    told = [span for span in asked if span.kind not in ("phrase", "expression", "quantity", "quote", "url", "part")]
    told = [span for span in told if span.text in conversation.question]  # a date may stand there in words
    told = [span for span in told if span.text[0] not in "/~"]
    told = [span for span in told if not stems(span.text) & (own | FORM)]
    words = [span.text for span in told]
    single = sorted((span.text for span in told if span.kind == "word"), key=len)
    joined = [" ".join(words[:8])] if words else []
    few = bool(names) and len(words) > len(names)
    phrases = [span.text for span in asked if span.kind == "phrase" and not stems(span.text) & own]
    found = [*quotes, *(names if few else []), *joined, *phrases, *reversed(single)]
    whole = [conversation.question.strip()]
    return list(dict.fromkeys([*found, *whole] if own & _SEARCHES else [*whole, *found]))


def _statements(conversation: Conversation, found: bool) -> list[str]:
    """Return statements of SQL: those that the question has, or all rows of the table that it names."""
    if told := re.search(r"\bselect\b[^`;?]+", conversation.question, re.IGNORECASE):
        whole = told[0].strip(' ."\n')
        # Where it ends is tried: "SELECT … and tell me" may go on after it.
        return [whole, *(whole[: each.start()] for each in reversed([*re.finditer(r",? (?:and|then) ", whole)]))]
    table = Parameter("table_name", {}, required=True)
    asked = [span.text for span in conversation.asked if span.kind != "phrase" and beside(table, span) >= 2.5]
    tables = asked or ((catalogued(conversation) or named(table, conversation))[:3] if found else [])
    tables = [each for each in tables if re.fullmatch(r"[A-Za-z_]\w*", str(each))]
    if found and not tables:
        return [*CATALOGUES]
    return [f"SELECT * FROM {each}" for each in tables]  # noqa: S608 - the server decides what it lets be read


def _fallback(parameter: Parameter, conversation: Conversation) -> Any:
    """Return what a parameter gets that no span of the question fits."""
    schema, required, kind = parameter.schema, parameter.required, schema_type(parameter.schema)
    if "const" in schema:
        return schema["const"] if required else None
    if kind == "boolean":
        return _flag(parameter, conversation)
    if kind == "string" and parameter.kind == "quote" and stated_in(conversation.question):
        return " ".join(stated_in(conversation.question))
    if not required:
        return None
    for span in conversation.told if kind == "string" else ():
        value = written(parameter, span)
        if span.kind == parameter.kind and fit(parameter, span, set()) > 1.5 and value:
            return value
    if parameter.name in conversation.used:
        return conversation.used[parameter.name]
    if "default" in schema:
        return schema["default"]
    if kind == "integer" and {"start", "page", "offset"} & set(parameter.words):
        return schema.get("minimum", 0 if "offset" in parameter.words else 1)
    return "12:00" if parameter.kind == "time" and "time" in parameter.words else next(iter(parameter.options), None)


def _flag(parameter: Parameter, conversation: Conversation) -> bool | None:
    """Return whether the question, or what users say of themselves in it, has a flag's words; "dislikes_x" negates."""
    flag = stems(" ".join(parameter.words))
    words = flag - ATTITUDES
    stated = stated_in(conversation.question)
    clauses = re.split(r"\band\b|\bbut\b|[;,]", " and ".join(stated).lower())
    said = next((each for each in reversed(clauses) if any(shares_stem(word, stems(each)) for word in words)), None)
    if said is not None:
        against = re.search(r"\b(?:hate|dislike|can't stand|don't like|do not like|no longer|not|never)", said)
        minds = re.search(r"\b(?:don't|do not|never|no longer) (?:\w+ )?(?:mind|hate|dislike)", said)
        negative = bool(flag & stems("dislike avoid without exclude not no"))
        return (bool(against) and not minds) == negative
    if words & stems(conversation.question) and not stated:
        return True
    return bool(parameter.schema.get("default", False)) if parameter.required else None


def _listed(candidates: Sequence[tuple[float, Any, Span | None]], required: bool) -> list[Any] | None:
    """Return all spans for a list that are of the best one's kind, or a list of one."""
    ranked = [each for each in candidates if each[0] >= (0.1 if required else _STRONG)]
    if not ranked:
        return None
    _, value, best = max(ranked, key=lambda each: each[0])
    return [value for _, value, span in ranked if span and span.kind == best.kind] if best else [value]


_AND = re.compile(r"['\"`]?(?:, ?(?:and |or )?| (?:and|or|vs\.?|versus|with|than) (?:in )?)(?:\w+ )?['\"`#]?")
"""What stands between two items of an enumeration."""


def several(tool: ChatTool, filled: Filled, conversation: Conversation) -> list[dict[str, Any]]:
    """Return the arguments of one call for each item that the question names for one parameter ("Paris and Rome")."""
    whole = dict(filled.arguments)
    question = conversation.question
    for parameter in parameters_of(tool):
        value = whole.get(parameter.name)
        span = next((each for each in conversation.asked if each.text == str(value)), None)
        if not (parameter.required and span and span.kind not in ("word", "phrase", "expression", "initial")):
            continue
        alike, end = [value], span.end
        for each in conversation.asked:
            if each.kind == span.kind and each.start >= end and _AND.fullmatch(question[end : each.start]):
                kind = schema_type(parameter.schema)
                other = each.text if isinstance(value, str) else bounded(each.number, parameter.schema, kind)
                alike, end = [*alike, other], each.end
        used = {str(other) for name, other in whole.items() if name != parameter.name}
        if len(alike) > 1 and not used & set(map(str, alike)):
            return [{**whole, parameter.name: each} for each in alike[:4]]
    return [whole]
