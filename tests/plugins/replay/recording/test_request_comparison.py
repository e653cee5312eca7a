"""What of a request is compared with a recording, and how the first difference is named, on every wire."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pytest

from keval.plugin import Volatile
from keval.records.models import ModelRequest, Wire
from keval_replay.request_comparison import ComparableRequest, canonical, first_difference, first_difference_of_call

Body: TypeAlias = dict[str, Any]

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
PROMPT = "Answer like a bookkeeper."
BODIES: Mapping[Wire, Body] = {
    "openai-chat": {
        "model": "m",
        "temperature": 0,
        "messages": [
            {"role": "system", "content": PROMPT},
            {"role": "user", "content": "What is 2 + 3?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":2,"b":3}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "5"},
        ],
        "tools": [
            {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": SCHEMA}},
            {"type": "function", "function": {"name": "divide", "description": "Divides.", "parameters": SCHEMA}},
        ],
    },
    "openai-responses": {
        "model": "m",
        "temperature": 0,
        "instructions": PROMPT,
        "input": [
            {"role": "user", "content": "What is 2 + 3?"},
            {"type": "function_call", "id": "f1", "call_id": "c1", "name": "add", "arguments": '{"a":2,"b":3}'},
            {"type": "function_call_output", "call_id": "c1", "output": "5"},
        ],
        "tools": [
            {"type": "function", "name": "add", "description": "Adds.", "parameters": SCHEMA},
            {"type": "function", "name": "divide", "description": "Divides.", "parameters": SCHEMA},
        ],
    },
    "anthropic": {
        "model": "m",
        "temperature": 0,
        "system": [{"type": "text", "text": PROMPT}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "What is 2 + 3?"}]},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 2, "b": 3}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "5"}]},
        ],
        "tools": [
            {"name": "add", "description": "Adds.", "input_schema": SCHEMA},
            {"name": "divide", "description": "Divides.", "input_schema": SCHEMA},
        ],
    },
    "gemini": {
        "generationConfig": {"temperature": 0},
        "systemInstruction": {"role": "user", "parts": [{"text": PROMPT}]},
        "contents": [
            {"role": "user", "parts": [{"text": "What is 2 + 3?"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "add", "args": {"a": 2, "b": 3}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "add", "response": {"result": "5"}}}]},
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "add", "description": "Adds.", "parametersJsonSchema": SCHEMA},
                    {"name": "divide", "description": "Divides.", "parametersJsonSchema": SCHEMA},
                ]
            }
        ],
    },
}
ROLES: Mapping[Wire, tuple[str, str]] = {
    "openai-chat": ("assistant", "tool"),
    "openai-responses": ("function_call", "function_call_output"),
    "anthropic": ("assistant", "user"),
    "gemini": ("model", "user"),
}
"""What the messages are of that hold the call and its result."""


@pytest.fixture(params=[*BODIES])
def wire(request: pytest.FixtureRequest) -> Wire:
    wire: Wire = request.param
    return wire


def compared(wire: Wire, body: Any, *volatile: Volatile, path: str = "/ask", model: str = "p/m") -> ComparableRequest:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return canonical(ModelRequest(model, wire, "POST", path, {}, content), volatile)


def replaced(wire: Wire, old: str, new: str) -> Body:
    text = json.dumps(BODIES[wire])
    assert 1 == text.count(old)
    body: Body = json.loads(text.replace(old, new))
    return body


def difference(wire: Wire, now: Any, recorded: Any = None) -> str:
    return first_difference(compared(wire, recorded or BODIES[wire]), compared(wire, now))


def test_equal_requests_are_equal_in_any_order_of_their_keys(wire: Wire) -> None:
    turned = dict(reversed(BODIES[wire].items()))

    assert compared(wire, BODIES[wire]) == compared(wire, turned)
    assert "" == difference(wire, turned)


def test_a_changed_word_of_the_prompt_is_shown_as_a_diff(wire: Wire) -> None:
    found = difference(wire, replaced(wire, "bookkeeper", "pirate"))

    assert [
        "the system prompt differs:",
        "--- in the recording",
        "+++ now",
        "@@",
        "-Answer like a bookkeeper.",
        "+Answer like a pirate.",
    ] == found.splitlines()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Divides.", "Splits.", "the description of the tool `divide` differs:"),
        ("What is 2 + 3?", "What is 2 + 4?", "message 1 (user): its text differs:"),
    ],
)
def test_the_tool_or_message_that_differs_is_named(wire: Wire, old: str, new: str, said: str) -> None:
    found = difference(wire, replaced(wire, old, new)).splitlines()

    assert (said, f"-{old}", f"+{new}") == (found[0], found[-2], found[-1])


def test_changed_arguments_and_results_are_named_by_their_tool(wire: Wire) -> None:
    in_a_string = wire.startswith("openai")
    call = difference(
        wire, replaced(wire, '\\"b\\":3' if in_a_string else '"b": 3', '\\"b\\":4' if in_a_string else '"b": 4')
    )
    result = difference(wire, replaced(wire, '"5"', '"6"'))

    caller, answerer = ROLES[wire]
    assert f"message 2 ({caller}): the call of `add` differs:" == call.splitlines()[0]
    assert ['-  "b": 3', '+  "b": 4'] == [line for line in call.splitlines() if '"b"' in line]
    assert f"message 3 ({answerer}): the result of `add` differs:" == result.splitlines()[0]
    assert ("-5", "+6") == tuple(result.splitlines()[-2:])


def without_divide(body: Body) -> None:
    tools = body["tools"][0].get("functionDeclarations", body["tools"])
    tools.pop()


def turn_tools(body: Body) -> None:
    body["tools"][0].get("functionDeclarations", body["tools"]).reverse()


def add_a_field(body: Body) -> None:
    body["stop"] = ["END"]


def drop_the_last_message(body: Body) -> None:
    messages = next(body[name] for name in ("messages", "input", "contents") if name in body)
    messages.pop()


def change_the_schema(body: Body) -> None:
    tool = body["tools"][0].get("functionDeclarations", body["tools"])[1]
    tool = tool.get("function", tool)
    schema = next(name for name in ("parameters", "input_schema", "parametersJsonSchema") if name in tool)
    tool[schema] = {**SCHEMA, "required": ["a"]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without_divide, "the tool `divide` is not offered any more; recorded: add, divide; now: add"),
        (turn_tools, "the order of the tools differs:"),
        (change_the_schema, "the schema of the tool `divide` differs:"),
        (add_a_field, "field `stop` is not in the recording:"),
        (drop_the_last_message, "is missing:"),
    ],
)
def test_what_is_there_on_one_side_only_is_named(wire: Wire, change: Callable[[Body], None], said: str) -> None:
    body = json.loads(json.dumps(BODIES[wire]))
    change(body)

    assert said in difference(wire, body).splitlines()[0]


def test_model_and_address_are_compared() -> None:
    recorded = compared("anthropic", {})

    assert "the model differs:" == first_difference(recorded, compared("anthropic", {}, model="p/n")).splitlines()[0]
    assert "the address differs:" == first_difference(recorded, compared("anthropic", {}, path="/x")).splitlines()[0]


def test_a_body_that_is_no_json_is_compared_as_text() -> None:
    found = difference("anthropic", b"two words", recorded=b"two\xff words")

    assert ["the body differs:", "-two\ufffd words", "+two words"] == [found.splitlines()[n] for n in (0, -2, -1)]


def test_a_diff_of_long_texts_is_short_and_shows_the_difference() -> None:
    text = "\n".join(f"{number}: " + "word " * 2_000 for number in range(500))

    wide = difference("anthropic", replaced("anthropic", PROMPT, "a" * 50_000 + "c"), None)
    found = first_difference(
        compared("anthropic", {"system": text}), compared("anthropic", {"system": text.replace("0: word", "0: World")})
    )

    assert max(map(len, found.splitlines())) < 170
    assert len(found.splitlines()) <= 20
    assert "-0: word word" in found
    assert "+0: World word" in found
    assert "more lines" in found
    assert len(wide) < 500


def test_a_difference_of_calls_shows_their_arguments() -> None:
    found = first_difference_of_call("add", {"a": 2, "b": 3}, {"b": 4, "a": 2})

    assert "the call of `add` differs:" == found.splitlines()[0]
    assert ['-  "b": 3', '+  "b": 4'] == [line for line in found.splitlines() if '"b"' in line]
    assert "" == first_difference_of_call("add", {"a": 2, "b": 3}, {"b": 3, "a": 2})


def test_what_is_volatile_is_not_compared() -> None:
    volatile = (
        Volatile("made anew for each request", field="metadata.request"),
        Volatile("numbered by the framework", field="messages.*.id"),
        Volatile("the day of the run", pattern=r"\d{4}-\d{2}-\d{2}"),
    )

    def of(number: int, day: str, text: str = "Hello") -> ComparableRequest:
        messages = [{"id": number, "content": f"{text} on {day}"}, {"content": "no id"}]
        body = {"metadata": {"request": number, "user": "u"}, "messages": messages}
        return compared("openai-chat", body, *volatile, path=f"/{day}/chat")

    assert of(1, "2026-11-22") == of(2, "2027-01-01")
    assert of(1, "2026-11-22") != of(2, "2027-01-01", "Goodbye")
    assert {
        "metadata": {"user": "u"},
        "messages": [{"content": "Hello on [volatile]"}, {"content": "no id"}],
    } == of(1, "2026-11-22").body


def test_an_order_that_is_volatile_is_not_compared() -> None:
    volatile = Volatile("results come as they arrive", order="messages.*.content.*.of")

    def of(*content: dict[str, str]) -> ComparableRequest:
        return compared("anthropic", {"messages": [{"content": [*content]}, {"content": "text"}]}, volatile)

    one, two, text = {"of": "c1", "text": "a"}, {"of": "c2", "text": "b"}, {"text": "c"}
    assert of(one, text, two) == of(two, text, one)
    assert of(one, text, two) != of(one, two, text)
    assert of(one, two) != of(one, {**two, "text": "a"})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "needs exactly one of"),
        ({"field": "a", "pattern": "a"}, "needs exactly one of"),
        ({"order": "messages.id"}, "of no list"),
        ({"pattern": "("}, "cannot be read"),
        ({"pattern": "a*"}, "matches the empty text"),
    ],
)
def test_a_declaration_that_says_nothing_is_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Volatile("for no reason", **options)
