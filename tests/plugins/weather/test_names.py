from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from keval_weather.names import fold


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("São Paulo", "sao paulo"),
        ("SAO-PAULO", "sao paulo"),
        ("Łódź", "lodz"),
        ("Tromsø", "tromso"),
        ("İstanbul", "istanbul"),
        ("ZÜRICH", "zurich"),
        ("Reykjavík", "reykjavik"),
        ("  New   York ", "new york"),
        ("St. John's", "st john s"),
        ("東京", "東京"),
        ("", ""),
    ],
)
def test_spellings_of_one_name_fold_to_one(written: str, expected: str) -> None:
    assert expected == fold(written)


@given(st.text())
def test_folding_twice_changes_nothing_more(text: str) -> None:
    once = fold(text)

    assert once == fold(once)
