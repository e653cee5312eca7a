"""Tools whose schemas are odd, as servers of others have them: the simulated model calls them, or refuses in words."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from keval_gateway import ChatMessage, ChatReply, ChatRequest, ChatTool, ModelFault
from keval_simulator.model import SimulatedModel

VALUES: dict[str, list[Any]] = {
    "type": ["string", "integer", "array", "object", "boolean", ["string", "null"], [], "weird", 5, None],
    "enum": [[], [1], ["a"], None, "x"],
    "const": [None, {}],
    "minimum": [100, "5", None, True],
    "maximum": [0, "a"],
    "multipleOf": [0, "2"],
    "minLength": [5, -1, "x"],
    "maxLength": [2, None],
    "pattern": ["^a+$", 3],
    "default": ["x", None, []],
    "minItems": [3, "a"],
    "maxItems": [1],
    "uniqueItems": [True, "y"],
    "required": [["city"], "city", [1], None],
    "additionalProperties": [False, {}, "x"],
    "$ref": ["#/nowhere", "#", "https://example.org/a", 7],
    "description": ["the city", None],
}
NAMES = ("city", "days", "unit", "query", "id", "date")


def odd(random: Random, depth: int = 0) -> Any:
    if depth > 3 or random.random() < 0.15:
        return random.choice([{}, True, False, None, [], "x", {"enum": []}, {"type": []}])
    schema = {key: random.choice(values) for key, values in VALUES.items() if random.random() < 0.2}
    if random.random() < 0.6:
        schema["properties"] = {random.choice(NAMES): odd(random, depth + 1) for _ in range(random.randint(0, 3))}
    for key in ("anyOf", "allOf", "prefixItems"):
        if random.random() < 0.15:
            schema[key] = random.choice([[odd(random, depth + 1)], [], None])
    if random.random() < 0.2:
        schema["items"] = odd(random, depth + 1)
    return schema


def reply(parameters: dict[str, Any], **choice: Any) -> ChatReply:
    question = ChatMessage("user", "What's the weather in Oslo for 3 days?")
    tool = ChatTool("get_weather", "Get the weather in a city for some days.", parameters)
    return SimulatedModel()(ChatRequest("gemini", "m", (question,), tools=(tool,), **choice))


@pytest.mark.parametrize("choice", [{}, {"tool_choice": "required"}, {"forced_tool": "get_weather"}], ids=str)
def test_no_schema_breaks_the_model(choice: dict[str, Any]) -> None:
    random, refused = Random(25), []

    for _ in range(400):
        schema = odd(random)
        try:
            found = reply(schema if isinstance(schema, dict) else {"properties": {"city": schema}}, **choice)
        except ModelFault as fault:
            refused.append((fault.status, bool(str(fault))))
        else:
            assert json.loads(json.dumps([call.arguments for call in found.calls])) is not None

    assert {(400, True)} == {*refused}
    assert len(refused) < 200


def test_a_parameter_that_no_value_fits_is_left_out() -> None:
    properties = {"city": {"type": "string"}, "unit": {"enum": []}}

    (call,) = reply({"type": "object", "properties": properties, "required": ["city"]}).calls

    assert {"city": "Oslo"} == call.arguments
