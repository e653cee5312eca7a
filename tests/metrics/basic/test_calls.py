"""Whether the arguments of calls agree."""

from __future__ import annotations

from typing import Any

import pytest

from keval_metrics_basic.tools import Comparison, agree


@pytest.mark.parametrize(
    ("expected", "found", "subset", "exact"),
    [
        ({}, {}, True, True),
        ({}, {"a": 1}, True, False),
        ({"a": 1}, {"a": 1, "b": 2}, True, False),
        ({"a": 1}, {"b": 1}, False, False),
        ({"a": 5}, {"a": 5.0}, True, True),
        ({"a": 5}, {"a": "5"}, False, False),
        ({"a": True}, {"a": 1}, False, False),
        ({"a": 0}, {"a": False}, False, False),
        ({"a": True}, {"a": True}, True, True),
        ({"a": None}, {"a": None}, True, True),
        ({"a": None}, {}, False, False),
        ({"a": " São Paulo"}, {"a": "sa\u0303o paulo\n"}, True, True),
        ({"a": "New  York"}, {"a": "New York"}, False, False),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, True, False),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}, True, False),
        ({"a": [1, 2]}, {"a": (1, 2)}, True, True),
        ({"a": [1, 2]}, {"a": [2, 1]}, False, False),
        ({"a": [1]}, {"a": [1, 2]}, False, False),
        ({"a": {}}, {"a": []}, False, False),
        ({"a": float("nan")}, {"a": float("nan")}, False, False),
        ({}, None, False, False),
    ],
)
def test_values_agree(expected: Any, found: Any, subset: bool, exact: bool) -> None:
    ways: tuple[Comparison, ...] = ("subset", "exact", "ignore")

    assert [subset, exact, True] == [agree(expected, found, how) for how in ways]


def test_what_is_nested_too_deeply_does_not_agree() -> None:
    deep: Any = 5
    for _ in range(5000):
        deep = [deep]

    assert not agree(deep, deep, "subset")
