"""The sheet: keys that vendors accept, and a schema in OpenAI's strict form."""

from __future__ import annotations

import re
from typing import Any

import pytest

from keval import Rubric
from keval_judges.prompt import Sheet

LEVELS = {1: "No.", 2: "Yes."}


def keys(*names: str) -> dict[str, str]:
    sheet = Sheet.of([Rubric(name, "?", LEVELS) for name in names], answered=True)
    return {rubric.name: key for key, rubric in sheet.rubrics.items()}


def test_a_plain_name_is_its_own_key() -> None:
    assert {"plain_name-1.0": "plain_name-1.0"} == keys("plain_name-1.0")


@pytest.mark.parametrize(
    "name", ["acme/tone", "with space", "höflich", "丁寧さ", 'a"b', "x" * 100, "unverified_claims"]
)
def test_any_other_name_gets_a_key_that_vendors_accept(name: str) -> None:
    (key,) = keys(name).values()

    assert re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", key)
    assert "unverified_claims" != key


def test_names_that_look_alike_get_keys_of_their_own() -> None:
    found = keys("a/b", "a b", "a_b", "x" * 100, "x" * 101)

    assert 5 == len(set(found.values()))
    assert {"a/b": "a_b", "a b": "a_b_2", "a_b": "a_b_3"}.items() <= found.items()
    assert [64, 64] == [len(found["x" * 100]), len(found["x" * 101])]


def test_the_schema_asks_for_reasoning_before_the_score_and_allows_levels_only() -> None:
    sheet = Sheet.of([Rubric("gaps", "?", {5: "High.", 0: "Low."})], answered=True)

    entry = sheet.schema["properties"]["gaps"]

    assert ["reasoning", "score"] == [*entry["properties"]]
    assert {"type": "integer", "enum": [0, 5]} == entry["properties"]["score"]
    assert ["gaps", "unverified_claims"] == [*sheet.schema["properties"]]


def test_the_schema_has_nothing_optional_and_nothing_additional() -> None:
    def objects(schema: Any) -> list[Any]:
        nested = [found for value in schema.values() if isinstance(value, dict) for found in objects(value)]
        return [schema, *nested] if schema.get("type") == "object" else nested

    found = objects(Sheet.of([Rubric("a", "?", LEVELS), Rubric("b", "?", LEVELS)], answered=False).schema)

    assert 3 == len(found)
    assert all(each["additionalProperties"] is False for each in found)
    assert all(each["required"] == [*each["properties"]] for each in found)
