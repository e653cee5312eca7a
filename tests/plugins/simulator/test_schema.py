"""Filling schemas: whatever the schema, the value conforms, as jsonschema sees it."""

from __future__ import annotations

from random import Random
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings, strategies as st

from keval_gateway import ChatMessage, ChatRequest, ChatTool, ModelFault
from keval_simulator.model import SimulatedModel
from keval_simulator.schema import conform

NAMES = st.sampled_from(["score", "reasoning", "unverified_claims", "city", "a b", "ünï"])
WISHES = st.sampled_from([None, "text", 3, 2.5, True, -1e6, ("claim", "other"), "x" * 50])


def _bounded(low: str, high: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    pairs = st.tuples(values, values).map(sorted)
    return st.one_of(
        st.just({}),
        pairs.map(lambda pair: {low: pair[0], high: pair[1]}),
        values.map(lambda value: {low: value}),
        values.map(lambda value: {high: value}),
    )


WHOLE = st.integers(-50, 50)
SIZES = st.integers(0, 6)
NUMBERS = st.tuples(
    st.sampled_from(["integer", "number"]),
    st.one_of(
        _bounded("minimum", "maximum", WHOLE),
        WHOLE.map(lambda low: {"exclusiveMinimum": low, "exclusiveMaximum": low + 5}),
        st.integers(1, 9).map(lambda step: {"multipleOf": step, "minimum": -20, "maximum": 20}),
    ),
).map(lambda pair: {"type": pair[0], **pair[1]})
TEXTS = st.one_of(
    _bounded("minLength", "maxLength", SIZES).map(lambda limits: {"type": "string", **limits}),
    st.sampled_from(["date", "date-time", "email", "uuid", "uri", "ipv4"]).map(
        lambda form: {"type": "string", "format": form}
    ),
    st.sampled_from([r"^\d+$", "^[A-Z]{2}-", r"^\d{4}-\d{2}-\d{2}$", "^(yes|no)$"]).map(
        lambda pattern: {"type": "string", "pattern": pattern}
    ),
)
SCALARS = st.one_of(
    NUMBERS,
    TEXTS,
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"type": ["string", "null"]}, {}]),
    st.lists(st.one_of(WHOLE, st.sampled_from(["pass", "fail"]), st.none()), min_size=1, unique=True).map(
        lambda values: {"enum": values}
    ),
    WHOLE.map(lambda value: {"const": value}),
)


def _arrays(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(inner, _bounded("minItems", "maxItems", st.integers(0, 4))).map(
        lambda pair: {"type": "array", "items": pair[0], **pair[1]}
    )


def _objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    def build(parts: tuple[dict[str, Any], list[str], bool]) -> dict[str, Any]:
        properties, required, closed = parts
        named = [name for name in required if not closed or name in properties]
        return {
            "type": "object",
            "properties": properties,
            "required": named,
            **({"additionalProperties": False} if closed else {}),
        }

    properties = st.dictionaries(NAMES, inner, max_size=4)
    return st.tuples(properties, st.lists(NAMES, max_size=3, unique=True), st.booleans()).map(build)


SCHEMAS = st.recursive(
    st.one_of(SCALARS, st.just({"$ref": "#/$defs/It"})),
    lambda inner: st.one_of(
        _arrays(inner),
        _objects(inner),
        st.tuples(inner, inner).map(lambda pair: {"anyOf": list(pair)}),
        inner.map(lambda schema: {"allOf": [schema]}),
    ),
    max_leaves=8,
)


DOCUMENTS = st.tuples(SCHEMAS, SCALARS).map(lambda pair: {"$defs": {"It": pair[1]}, **pair[0]})


@settings(max_examples=150, deadline=None, derandomize=True)
@given(schema=DOCUMENTS, wish=WISHES, seed=st.integers(0, 3))
def test_every_value_conforms_to_its_schema(schema: dict[str, Any], wish: Any, seed: int) -> None:
    value = conform(schema, lambda path, inner: wish, Random(seed))

    jsonschema.Draft202012Validator(schema).validate(value)


NODE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
    "required": ["name", "children"],
}


def test_a_recursive_schema_comes_to_an_end() -> None:
    schema = {"$ref": "#/$defs/Node", "$defs": {"Node": NODE}}
    childless = {**NODE, "required": ["name"]}
    parameters = {"properties": {"root": {"$ref": "#/$defs/Node"}}, "required": ["root"], "$defs": {"Node": childless}}
    tool = ChatTool("build_tree", "Build a tree of nodes.", parameters)

    value = conform(schema, lambda path, inner: None, Random(0))
    (call,) = SimulatedModel()(
        ChatRequest("gemini", "m", (ChatMessage("user", "Build a tree of nodes."),), tools=(tool,))
    ).calls

    jsonschema.Draft202012Validator(schema).validate(value)
    jsonschema.validate(call.arguments, parameters)


def test_wishes_are_granted_where_the_schema_allows_them() -> None:
    schema = {
        "type": "object",
        "properties": {"score": {"type": "integer", "minimum": 1, "maximum": 5}, "claims": {"type": "array"}},
        "required": ["score", "claims"],
    }
    wishes: dict[tuple[str, ...], Any] = {("score",): 9, ("claims",): ("a", "b")}

    value = conform(schema, lambda path, inner: wishes.get(path), Random(0))

    assert value == {"score": 5, "claims": ["a", "b"]}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^the quick brown fox$"},
        {"type": "integer", "minimum": 1, "maximum": 2, "multipleOf": 7},
        {"enum": []},
        {"$ref": "https://example.org/schema"},
        {"$defs": {"A": {"$ref": "#/$defs/A"}}, "$ref": "#/$defs/A"},
        {"type": "array", "items": {"type": "boolean"}, "minItems": 3, "uniqueItems": True},
        {
            "$defs": {"N": {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "required": ["n"]}},
            "$ref": "#/$defs/N",
        },
    ],
)
def test_a_schema_that_cannot_be_filled_is_refused_in_words(schema: dict[str, Any]) -> None:
    with pytest.raises(ModelFault, match=r"schema|pattern") as caught:
        conform(schema, lambda path, inner: None, Random(0))

    assert caught.value.status == 400
