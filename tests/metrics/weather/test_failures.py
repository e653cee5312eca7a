"""Telling an answer that has no data from one that says what its reader need not or cannot do."""

from __future__ import annotations

import pytest

from keval_metrics_weather.reading.failures import failures
from keval_metrics_weather.reading.words import read
from keval_metrics_weather.wording import MISSING


@pytest.mark.parametrize(
    "text",
    [
        "You don't have to take an umbrella.",
        "You can't get a nicer day.",
        "It's mild, so you really can't find a better day.",
        "It can't get any nicer.",
        "If you don't have an umbrella, buy one.",
        "It doesn't have to be cold.",
        "I don't have to warn you of anything.",
        "You can't tell the sea from the sky.",
    ],
)
def test_what_one_need_not_or_cannot_do_is_no_missing_data(text: str) -> None:
    assert () == failures(read(text), (), MISSING).missing


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't have live weather data.", "don't have"),
        ("We don't have that.", "don't have"),
        ("I told you I can't get it.", "can't get"),
        ("As you know, I currently can't tell.", "can't tell"),
        ("Can't get the weather right now.", "can't get"),
        ("I asked for it, but it couldn't find Atlantis.", "couldn't find"),
        ("The service doesn't have data for it.", "doesn't have"),
        ("I have no data to show.", "no data"),
        ("I was unable to find it.", "unable to"),
    ],
)
def test_missing_data_is_admitted_by_the_speaker_or_of_a_service(text: str, expected: str) -> None:
    assert any(expected in words for words in failures(read(text), (), MISSING).missing)
