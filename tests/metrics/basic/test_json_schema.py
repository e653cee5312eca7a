from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keval_metrics_basic.json_schema import JsonSchema
from tests.metrics.basic.conftest import make_trial as trial

SCHEMA = {
    "type": "object",
    "required": ["city"],
    "properties": {"city": {"type": "string"}, "days": {"type": "array", "items": {"type": "integer"}}},
}
FITS = '{"city": "Oslo", "days": [1, 2]}'


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails a test that resolves a host's name; an error alone might be taken for an unreachable host."""
    asked: list[Any] = []

    def refuse(host: Any, *_: Any, **__: Any) -> None:
        asked.append(host)
        raise OSError("no network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    yield
    assert [] == asked


@pytest.mark.parametrize(
    ("said", "value"),
    [
        (FITS, 1.0),
        (f"Here you are:\n```json\n{FITS}\n```\nAnything else?", 1.0),
        (f"  ````JSON \n{FITS}\n  ````\n```json\n5\n```", 1.0),
        (f"```json\n{FITS}", 1.0),
        ('```json\n{"city":\n"Os\u2028lo"}\n```', 1.0),
        (f"```yaml\na: 5\n```\n```json\n{FITS}\n```", 1.0),
        (f"```json\n5\n```\n```json\n{FITS}\n```", 0.0),
        (f"```\n{FITS}\n```", 0.0),
        ('{"city": 5}', 0.0),
        ('{"days": []}', 0.0),
        ("", 0.0),
        ('{"city": "Oslo"', 0.0),
    ],
)
def test_an_answer_is_json_that_fits(said: str, value: float) -> None:
    assert value == JsonSchema(schema=SCHEMA).score(trial(said)).value


@pytest.mark.parametrize("said", ["NaN", "[Infinity]", "1e999", "[" * 200_000 + "]" * 200_000, "9" * 5000])
def test_what_no_json_reader_takes_is_no_json(said: str) -> None:
    score = JsonSchema(schema={}).score(trial(said))

    assert 0.0 == score.value
    assert score.reason.startswith("the answer is no JSON: ")


def test_blocks_count_only_if_fenced() -> None:
    assert 0.0 == JsonSchema(schema=SCHEMA, fenced=False).score(trial(f"```json\n{FITS}\n```")).value


def test_the_reason_is_the_first_error_and_the_details_have_the_others() -> None:
    score = JsonSchema(schema=SCHEMA).score(trial('```json\n{"days": [1, "two", "three"]}\n```'))

    assert "$: 'city' is a required property (3 errors)" == score.reason
    assert "the answer's JSON block" == score.details["json"]
    assert ["$", "$.days[1]", "$.days[2]"] == [error["path"] for error in score.details["errors"]]


def test_the_details_are_bounded() -> None:
    score = JsonSchema(schema=SCHEMA).score(trial(json.dumps({"city": "Oslo", "days": ["x" * 1000] * 100})))

    assert score.reason.endswith("(20 or more errors)")
    assert 20 == len(score.details["errors"])
    assert all(len(error["message"]) <= 300 for error in score.details["errors"])


@pytest.mark.parametrize("reference", [SCHEMA, json.dumps(SCHEMA)])
def test_the_reference_is_a_schema_as_data_or_text(reference: Any) -> None:
    metric = JsonSchema(reference="facts.shape")

    values = [metric.score(trial(said, facts={"shape": reference})).value for said in (FITS, "{}")]

    assert [1.0, 0.0] == values


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "nothing to compare with: the sample has no answer; give it a JSON Schema, or the metric `schema` or"),
        ("Oslo", "nothing to compare with: answer of the sample is not a JSON Schema; give it"),
        ("true", "nothing to compare with: answer of the sample is not a JSON Schema; give it"),
        ('{"city": "Oslo"}', "answer of the sample is not a JSON Schema: it checks nothing, having only city"),
        ('{"type": "rain"}', "answer of the sample is not a JSON Schema: at $.type: 'rain' is not"),
        ('{"$ref": "http://a.example/b"}', "answer of the sample is not a JSON Schema: it refers to 'http://a.example/b'"),
    ],
)  # fmt: skip
def test_without_a_usable_schema_the_answer_is_unscored(answer: str | None, reason: str) -> None:
    score = JsonSchema().score(trial("{}", answer))

    assert score.value is None
    assert score.reason.startswith(reason)


@pytest.mark.parametrize("facts", [{"shape": {"const": object()}}, {"shape": {"enum": {1}}}])
def test_a_reference_that_json_cannot_hold_is_unscored(facts: dict[str, Any]) -> None:
    score = JsonSchema(reference="facts.shape").score(trial("{}", facts=facts))

    assert score.value is None
    assert "it cannot be used: " in score.reason


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "strin"}, "at $.type: 'strin' is not valid"),
        ({"tpye": "string"}, "it checks nothing, having only tpye"),
        ({"$schema": "http://nowhere.example"}, "its $schema 'http://nowhere.example' is no known draft"),
        ({"$schema": 5, "type": "string"}, "its $schema '5' is no known draft"),
        ({"pattern": "("}, "at $.pattern: '(' is not a 'regex'"),
        ({"properties": {"a": {"$ref": "http://a.example/b"}}}, "it refers to 'http://a.example/b', which"),
        ({"$ref": "#/$defs/a"}, "it refers to '#/$defs/a', which it does not hold; put that under $defs"),
        ({"$id": "http://[", "type": "object"}, "it cannot be used: Invalid IPv6 URL"),
    ],
)
def test_an_option_that_is_no_schema_is_refused(schema: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=r"^'schema' must be a JSON Schema: ") as caught:
        JsonSchema(schema=schema)

    assert problem in str(caught.value)


def test_the_draft_is_what_the_schema_says() -> None:
    """Draft 7 has a list of schemas under `items`, draft 2020-12 under `prefixItems`."""
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}

    assert 0.0 == JsonSchema(schema=schema).score(trial("[5]")).value
    with pytest.raises(ValueError, match="items"):
        JsonSchema(schema={"items": [{"type": "string"}]})


def test_references_within_the_schema_are_followed() -> None:
    schema = {
        "$id": "https://a.example/root",
        "$defs": {"name": {"$id": "name", "type": "string"}, "age": {"$anchor": "age", "type": "integer"}},
        "properties": {"name": {"$ref": "name"}, "age": {"$ref": "#age"}, "again": {"$ref": "#/$defs/age"}},
    }
    metric = JsonSchema(schema=schema)

    values = [metric.score(trial(said)).value for said in ('{"name": "x", "age": 5}', '{"name": 5}', '{"again": "x"}')]

    assert [1.0, 0.0, 0.0] == values


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"$ref": "#"}, "{}"),
        ({"multipleOf": 0.1}, "1" + "0" * 400),
        ({"$ref": "#/unknown/a", "unknown": {"a": {"$ref": "http://a.example/b"}}}, "{}"),
    ],
)
def test_a_schema_that_cannot_be_applied_leaves_the_answer_unscored(schema: dict[str, Any], said: str) -> None:
    score = JsonSchema(schema=schema).score(trial(said))

    assert score.value is None
    assert score.reason.startswith("the schema cannot be applied to this answer: ")


def test_a_schema_may_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "shape.json"
    file.write_text(json.dumps(SCHEMA), encoding="utf-8")

    metric = JsonSchema(path=file)

    assert [1.0, 0.0] == [metric.score(trial(said)).value for said in (FITS, "{}")]


@pytest.mark.parametrize(
    ("content", "problem"),
    [(None, "cannot be read: No such file"), (b"[]", "holds no JSON object"), (b"{", "holds no JSON object"),
     (b"\xff", "codec can't decode"), (b'{"tpye": 1}', "it checks nothing")],
)  # fmt: skip
def test_a_file_without_a_schema_is_refused(content: bytes | None, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "shape.json"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(ValueError, match=r"^'path' must be a JSON Schema: ") as caught:
        JsonSchema(path=file)

    assert problem in str(caught.value)


def test_a_schema_is_given_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'path' must not be given beside `schema`; keep one"):
        JsonSchema(schema=SCHEMA, path=tmp_path / "shape.json")


NARROW = {"patternProperties": {"^a": {}}, "properties": {"b": {}}, "additionalProperties": False}
SLOW = "^(a|aa)+$"
LONG = "a" * 60 + "!"
HUNG: dict[str, tuple[dict[str, Any], str]] = {
    "pattern": ({"pattern": SLOW}, f'"{LONG}"'),
    "patternProperties": ({"patternProperties": {SLOW: {}}}, f'{{"{LONG}": 1}}'),
    "additionalProperties": ({"patternProperties": {SLOW: {}}, "additionalProperties": False}, f'{{"{LONG}": 1}}'),
    "references": (
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$defs": {
                **{f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)},
                "d30": {"type": "integer"},
            },
            "$ref": "#/$defs/d0",
        },
        "1",
    ),
    "itself": (
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$defs": {"p": {"pattern": SLOW}},
            "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#/$defs/p"}},
        },
        f'{{"a": {{"b": "{LONG}"}}}}',
    ),
}


@pytest.mark.parametrize("name", HUNG)
def test_a_schema_that_takes_too_long_is_given_up(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keval_metrics_basic.json_schema._SECONDS", 0.1)
    schema, said = HUNG[name]

    score = JsonSchema(schema=schema).score(trial(said))

    assert score.value is None
    assert "the schema was not done with the answer in 0.1 s" in score.reason


@pytest.mark.parametrize(
    ("schema", "said", "value"),
    [
        ({"pattern": "^(a+)+$"}, '"' + "a" * 50 + '"', 1.0),
        ({"pattern": "^(a+)+$"}, f'"{LONG}"', 0.0),
        ({"patternProperties": {"^a": {"type": "integer"}}}, '{"ab": 1, "c": "x"}', 1.0),
        ({"patternProperties": {"^a": {"type": "integer"}}}, '{"ab": "x"}', 0.0),
        (NARROW, '{"a1": 1, "b": 2}', 1.0),
        (NARROW, '{"a1": 1, "c": 2}', 0.0),
    ],
)
def test_patterns_of_a_schema_are_searched_for(schema: Any, said: str, value: float) -> None:
    assert value == JsonSchema(schema=schema).score(trial(said)).value


def test_a_schema_whose_patterns_cannot_be_bounded_is_refused() -> None:
    schema = {"patternProperties": {"^a": {}}, "unevaluatedProperties": False}

    with pytest.raises(ValueError, match="both patternProperties and unevaluatedProperties"):
        JsonSchema(schema=schema)
