"""Marks, as a metric's details have them."""

from __future__ import annotations

from typing import Any

import pytest

from keval import Score
from keval_report.marks import Mark, marks_of

ANSWER = "It is 3 °C, and feels like −2 °C."


def test_marks_are_read_in_the_order_of_the_text() -> None:
    told = [
        {"start": 27, "end": 32, "label": "feels like", "kind": "bad"},
        {"start": 6, "end": 7, "label": "figure", "kind": "good", "of": "the air"},
        {"start": 6, "end": 10, "label": "temperature"},
    ]

    found = marks_of(Score(1.0, details={"marks": told}), ANSWER)

    expected = [Mark(6, 10, "temperature"), Mark(6, 7, "figure", "good"), Mark(27, 32, "feels like", "bad")]
    assert expected == [*found]


@pytest.mark.parametrize(
    "told",
    [
        None,
        7,
        "all of it",
        {"start": 0},
        [None, 7, "x", [0, 1], {}],
        [{"start": "0", "end": 2}, {"start": True, "end": 2}, {"start": 0.0, "end": 2.0}],
        [{"start": -1, "end": 2}, {"start": 2, "end": 2}, {"start": 3, "end": 2}, {"start": 0, "end": 10**9}],
    ],
)
def test_what_is_no_mark_is_left_out(told: Any) -> None:
    assert () == marks_of(Score(1.0, details={"marks": told}), ANSWER)


def test_an_unknown_kind_or_label_is_none() -> None:
    told = [{"start": 0, "end": 2, "label": ["x"], "kind": {}}, {"start": 0, "end": 2, "kind": "splendid"}]

    assert (Mark(0, 2), Mark(0, 2)) == marks_of(Score(1.0, details={"marks": told}), ANSWER)
