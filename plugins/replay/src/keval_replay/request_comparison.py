"""Comparing model requests: what of them is compared, and what differs between two."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from itertools import compress, zip_longest
from typing import Any

import attrs
import orjson

from keval.records.cassettes import Volatile
from keval.records.models import ModelRequest, Wire

_PROMPT: Mapping[Wire, tuple[str, ...]] = {
    "openai-chat": (),
    "openai-responses": ("instructions",),
    "anthropic": ("system",),
    "gemini": ("systemInstruction", "system_instruction"),
}
"""The fields that hold the system prompt. Chat Completions has it as the first messages."""
_MESSAGES: Mapping[Wire, str] = {
    "openai-chat": "messages",
    "openai-responses": "input",
    "anthropic": "messages",
    "gemini": "contents",
}
_PROMPT_ROLES = ("system", "developer")
_SCHEMAS = ("parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema")
_CALL_IDS = ("tool_call_id", "call_id", "tool_use_id")
"""The fields by which a result names its call."""


@attrs.define(slots=False)
class ParsedRequest:
    """A model request as its parts.

    `prompt` is the system prompt as it is sent, and `messages` are all others, each as it is sent. `tools` have
    `description`, `schema` and the `rest` of each tool by its name. `rest` are the fields of the body beside these.
    """

    prompt: Any
    messages: Sequence[Any]
    tools: Mapping[str, Mapping[str, Any]]
    rest: Mapping[str, Any]

    @property
    def prompt_text(self) -> str:
        """The texts of the system prompt."""
        return "\n".join(_texts(self.prompt))

    def answered(self, result: Mapping[str, Any]) -> str | None:
        """Return the name of the tool whose result an object of a message holds; `None` if it holds none."""
        # Gemini's results name the tool itself; those of the other protocols name the id of the call.
        if "response" in result and isinstance(result.get("name"), str):
            name: str = result["name"]
            return name
        call = next((result[key] for key in _CALL_IDS if key in result), None)
        # In the Responses API a call has a `call_id`, too, and is told from its result by the arguments.
        return None if call is None or "arguments" in result else self._names.get(call, "a tool")

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return dict(_calls(self.messages))


def parse_request(request: ComparableRequest) -> ParsedRequest:
    """Read a request whose body is a JSON object."""
    body, wire = request.body, request.wire
    prompt: Any = {name: body[name] for name in _PROMPT[wire] if name in body}
    given = body.get(_MESSAGES[wire], [])
    # `input` of the Responses API may be a text.
    messages = given if isinstance(given, list) else [given]
    if wire == "openai-chat":
        roles = [message.get("role") if isinstance(message, dict) else None for message in messages]
        # Of these roles only the first messages are the prompt; later ones are a part of the conversation.
        leading = next((place for place, role in enumerate(roles) if role not in _PROMPT_ROLES), len(roles))
        prompt, messages = {"messages": messages[:leading]}, messages[leading:]
    taken = {*_PROMPT[wire], _MESSAGES[wire], "tools"}
    tools, others = _tools_of(body.get("tools") or ())
    rest = {name: value for name, value in body.items() if name not in taken}
    return ParsedRequest(prompt, messages, tools, {**rest, "tools": others} if others else rest)


def _tools_of(given: Iterable[Any]) -> tuple[dict[str, dict[str, Any]], list[Any]]:
    """Return the tools by name, and whatever else is offered as a tool, such as one that the vendor runs."""
    tools: dict[str, dict[str, Any]] = {}
    others: list[Any] = []
    for entry in given:
        declared = _declarations(entry)
        if not declared:
            others.append(entry)
        for tool in declared:
            schema = {name: tool[name] for name in _SCHEMAS if name in tool}
            rest = {name: value for name, value in tool.items() if name not in {"name", "description", *_SCHEMAS}}
            tools[tool["name"]] = {"description": tool.get("description", ""), "schema": schema, "rest": rest}
    return tools, others


def _declarations(entry: Any) -> list[dict[str, Any]]:
    if not isinstance(entry, dict):
        return []
    of_gemini = entry.get("functionDeclarations") or entry.get("function_declarations")
    # Chat Completions nests a function in its entry; in the other protocols the entry is the tool.
    found = of_gemini if isinstance(of_gemini, list) else [entry.get("function", entry)]
    return [tool for tool in found if isinstance(tool, dict) and isinstance(tool.get("name"), str)]


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of a prompt, whether it is one, a list of parts, or an object that has parts."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        value = [item for name, item in value.items() if name not in ("role", "type", "cache_control")]
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _calls(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the id and the tool's name of every call in the messages."""
    if isinstance(value, dict):
        function = value.get("function", value)
        # An item of the Responses API has an `id` of its own beside the `call_id` that results name.
        number = value.get("call_id", value.get("id"))
        if isinstance(function, dict) and isinstance(number, str) and isinstance(function.get("name"), str):
            yield number, function["name"]
        value = [*value.values()]
    if isinstance(value, list):
        for item in value:
            yield from _calls(item)


_MOST_LINES = 16
"""Lines of a diff that are shown."""
_COMPARED_LINES = 400
"""Lines from the first difference on that are compared: comparing takes time that grows with their square."""
_WIDTH = 160
"""Characters of a line that are shown, from a little before its first difference."""
_BEFORE = 40


_ABSENT = object()
"""Stands where one of two requests has nothing."""


@attrs.frozen
class _Step:
    """A field or item in which two requests differ, of what the recorded one has around it."""

    holder: Any
    key: str | int
    recorded: Any
    now: Any


def first_difference(recorded: ComparableRequest, now: ComparableRequest) -> str:
    """Say where two requests differ first, with a short diff: prompt, tools, messages, then all other fields.

    Returns an empty text if they are equal.
    """
    asked = (f"{recorded.method} {recorded.path} ({recorded.wire})", f"{now.method} {now.path} ({now.wire})")
    found = _part("the model", recorded.model, now.model) or _part("the address", *asked)
    if not found and isinstance(recorded.body, dict) and isinstance(now.body, dict):
        found = _between(parse_request(recorded), parse_request(now))
    return found or _part("the body", recorded.body, now.body)


def first_difference_of_call(tool: str, recorded: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Say how the arguments of a call differ from the recorded ones; an empty text if they do not."""
    return _part(f"the call of `{tool}`", dict(recorded), dict(now))


def _between(recorded: ParsedRequest, now: ParsedRequest) -> str:
    return (
        # First what explains the rest: another prompt or tool makes the model's messages differ, too.
        _part("the system prompt", recorded.prompt_text, now.prompt_text)
        or _tools(recorded.tools, now.tools)
        or _messages(recorded, now)
        or _fields("field ", recorded.prompt, now.prompt)
        or _fields("field ", recorded.rest, now.rest)
    )


def _tools(recorded: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> str:
    only = next((name for name in (*recorded, *now) if (name in recorded) != (name in now)), None)
    if only is not None:
        how = "is not offered any more" if only in recorded else "is new"
        return f"the tool `{only}` {how}; recorded: {', '.join(recorded) or 'none'}; now: {', '.join(now) or 'none'}"
    for name, tool in recorded.items():
        for kind in ("description", "schema"):
            if found := _part(f"the {kind} of the tool `{name}`", tool[kind], now[name][kind]):
                return found
        if found := _fields(f"tool `{name}`, field ", tool["rest"], now[name]["rest"]):
            return found
    # A model sees the order, so that requests which differ by it only are not the same.
    return _part("the order of the tools", "\n".join(recorded), "\n".join(now))


def _messages(recorded: ParsedRequest, now: ParsedRequest) -> str:
    path = _steps([*recorded.messages], [*now.messages])
    if not path:
        return ""
    first, *within = path
    message = first.now if first.recorded is _ABSENT else first.recorded
    role = message.get("role") or message.get("type") if isinstance(message, dict) else None
    label = f"message {int(first.key) + 1}" + (f" ({role})" if role else "")
    if not within:
        return _part(label, first.recorded, first.now)
    last, place = _place(within, recorded)
    return _part(f"{label}: {place}", last.recorded, last.now)


def _fields(label: str, recorded: Any, now: Any) -> str:
    path = _steps(recorded, now)
    return _part(f"{label}`{_dotted(path)}`", path[-1].recorded, path[-1].now) if path else ""


def _steps(recorded: Any, now: Any) -> list[_Step]:
    """Return the way to the first value that differs; none if the two are no objects or lists, or equal."""
    pairs: Iterator[tuple[str | int, Any, Any]] = iter(())
    if isinstance(recorded, dict) and isinstance(now, dict):
        pairs = ((key, recorded.get(key, _ABSENT), now.get(key, _ABSENT)) for key in {**recorded, **now})
    elif isinstance(recorded, list) and isinstance(now, list):
        pairs = ((index, *pair) for index, pair in enumerate(zip_longest(recorded, now, fillvalue=_ABSENT)))
    found = next((pair for pair in pairs if pair[1] != pair[2]), None)
    return [_Step(recorded, *found), *_steps(*found[1:])] if found else []


def _place(path: Sequence[_Step], conversation: ParsedRequest) -> tuple[_Step, str]:
    """Return what differs within a message, and its name: a call, a tool's result, the text, or else the field."""
    for step in path:
        if not isinstance(step.holder, dict):
            continue
        if step.key in ("arguments", "args", "input") and "name" in step.holder:
            return step, f"the call of `{step.holder['name']}`"
        if tool := conversation.answered(step.holder):
            if step.key in ("content", "output", "response"):
                return path[-1], f"the result of `{tool}`"
        elif step.key in ("text", "content") and step is path[-1]:
            return step, "its text"
    return path[-1], f"`{_dotted(path)}`"


def _dotted(path: Sequence[_Step]) -> str:
    return ".".join(str(step.key) for step in path)


def _part(label: str, recorded: Any, now: Any) -> str:
    if recorded == now:
        return ""
    verb = "is missing" if now is _ABSENT else "is not in the recording" if recorded is _ABSENT else "differs"
    # Values that differ may look the same as lines: a number and a text of it, or JSON with other spaces.
    diff = _diff(_lines(recorded), _lines(now)) or _diff([repr(recorded)], [repr(now)])
    return "\n".join((f"{label} {verb}:", *diff))


def _lines(value: Any) -> list[str]:
    """Return the lines of a text; JSON, also in a text, is written with a line for each value."""
    if value is _ABSENT:
        return []
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return str(value).splitlines()
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode().splitlines()


def _diff(recorded: Sequence[str], now: Sequence[str]) -> list[str]:
    # One shared line stays, as context of the first difference.
    begin = max(0, _shared(recorded, now) - 1)
    compared = (recorded[begin : begin + _COMPARED_LINES], now[begin : begin + _COMPARED_LINES])
    lines = [*_narrow(difflib.unified_diff(*compared, "in the recording", "now", n=1, lineterm=""))]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"… {len(lines) - _MOST_LINES} more lines"]
    return lines


def _narrow(diff: Iterator[str]) -> Iterator[str]:
    """Yield the lines of a diff without line numbers; of wide ones, what stands around their difference."""
    removed: list[str] = []
    added: list[str] = []
    yield from (line.strip() for _, line in zip(range(2), diff, strict=False))
    for line in diff:
        if line[0] in "-+":
            (removed if line[0] == "-" else added).append(line[1:])
            continue
        yield from _changed(removed, added)
        removed, added = [], []
        yield "@@" if line.startswith("@@") else f" {_cut(line[1:], 0)}"
    yield from _changed(removed, added)


def _changed(removed: Sequence[str], added: Sequence[str]) -> Iterator[str]:
    begins = [max(0, _shared(*pair) - _BEFORE) for pair in zip(removed, added, strict=False)]
    begins += [0] * abs(len(removed) - len(added))
    for sign, lines in (("-", removed), ("+", added)):
        yield from (f"{sign}{_cut(line, begin)}" for line, begin in zip(lines, begins, strict=False))


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many items, or characters, two sequences share from their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (first, second) in pairs if first != second), min(len(one), len(other)))


def _cut(line: str, begin: int) -> str:
    if len(line) <= _WIDTH:
        return line
    end = begin + _WIDTH
    return ("…" if begin else "") + line[begin:end] + ("…" if end < len(line) else "")


MARK = "[volatile]"
"""What stands in place of a volatile text."""


@attrs.frozen
class ComparableRequest:
    """A model request as it is compared: equal ones are the same request to a recording.

    `body` is its JSON without what is volatile; objects are equal in any order of their keys. A body that is no JSON is
    its text. Headers are not compared.
    """

    model: str
    wire: Wire
    method: str
    path: str
    body: Any = attrs.field(repr=False)


def canonical(request: ModelRequest, volatile: Iterable[Volatile] = ()) -> ComparableRequest:
    """Return what of a request is compared. Its secrets must have been replaced before, as the recording's have."""
    declared = tuple(volatile)
    body, path = canonical_body(request.body, declared), without_volatile(request.path, declared)
    return ComparableRequest(request.model, request.wire, request.method, path, body)


def canonical_body(body: bytes, volatile: Iterable[Volatile]) -> Any:
    """Return the body of a request as JSON, or as a text if it is none, without what is volatile."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        found = body.decode("utf-8", "replace")
    return without_volatile(found, volatile)


def without_volatile(value: Any, volatile: Iterable[Volatile]) -> Any:
    """Return JSON, or a text, without the fields that are volatile, with a mark in place of such texts, and sorted."""
    fields, orders, patterns = _rules(tuple(volatile))
    for *path, key in fields:
        value = _changed_at(value, path, partial(_without, key))
    for *path, _, key in orders:
        value = _changed_at(value, path, partial(_sorted, key))
    return value if patterns is None else _marked(value, patterns)


# Each request is compared with several recorded ones, always by the rules of its agent.
@lru_cache
def _rules(
    volatile: tuple[Volatile, ...],
) -> tuple[Sequence[Sequence[str]], Sequence[Sequence[str]], re.Pattern[str] | None]:
    fields = [each.field.split(".") for each in volatile if each.field is not None]
    orders = [each.order.split(".") for each in volatile if each.order is not None]
    patterns = [f"(?:{each.pattern})" for each in volatile if each.pattern is not None]
    return fields, orders, re.compile("|".join(patterns)) if patterns else None


def _changed_at(value: Any, path: Sequence[str], change: Callable[[Any], Any]) -> Any:
    """Return JSON with what is at a path changed; a `*` in it stands for every item of a list or object."""
    if not path:
        return change(value)
    key, *rest = path
    if isinstance(value, list):
        return [_changed_at(item, rest, change) for item in value] if key == "*" else value
    if isinstance(value, dict):
        return {name: _changed_at(item, rest, change) if key in (name, "*") else item for name, item in value.items()}
    return value


def _without(key: str, value: Any) -> Any:
    """Return an object without a key; without any item, as a list is then, too, if it is `*`."""
    if isinstance(value, dict):
        return {name: item for name, item in value.items() if key not in (name, "*")}
    return [] if key == "*" and isinstance(value, list) else value


def _sorted(key: str, value: Any) -> Any:
    """Return a list whose items that have this key are sorted by it, in their places."""
    if not isinstance(value, list):
        return value
    keyed = [isinstance(item, dict) and key in item for item in value]
    # As texts, since nothing says that the keys are of one type.
    ordered = iter(sorted(compress(value, keyed), key=lambda item: str(item[key])))
    return [next(ordered) if has_key else item for item, has_key in zip(value, keyed, strict=True)]


def _marked(value: Any, patterns: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return patterns.sub(MARK, value)
    if isinstance(value, list):
        return [_marked(item, patterns) for item in value]
    if isinstance(value, dict):
        return {name: _marked(item, patterns) for name, item in value.items()}
    return value
