"""Texts read into words: what is a word, and where it stands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keval_metrics_weather.reading import words
from keval_metrics_weather.reading.words import Said, read

ANSWERS = Path(__file__).parent / "answers"


def test_words_told_without_a_search_are_those_that_a_search_finds() -> None:
    texts = [case["response"].lower() for path in ANSWERS.glob("*.json") for case in json.loads(path.read_bytes())]
    texts += [
        "",
        " ",
        "a  b",
        "st. john's, ok",
        f"{'a' * 64} {'b' * 65}. {'c' * 64}.",
        "18–20 - 3 – 4, -",
        "x_y (z) ².",
    ]

    differing = [
        text
        for text in texts
        if [*zip(*words._tokens(text), strict=True)]
        != [(found[0], found.start(), found.end()) for found in words._TOKEN.finditer(text)]
    ]

    assert len(texts) > 500
    assert [] == differing


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Łódź is cold.", [("lodz", "Łódź"), ("is", "is"), ("cold", "cold"), (".", ".")]),
        ("It won't rain", [("it", "It"), ("will", "won't"), ("not", "won't"), ("rain", "rain")]),
        ("dont go", [("do", "dont"), ("not", "dont"), ("go", "go")]),
    ],
)
def test_a_word_stands_where_the_text_has_it(text: str, expected: list[tuple[str, str]]) -> None:
    found = read(text)

    assert expected == [(w, text[a:b]) for w, a, b in zip(found.words, found.starts, found.ends, strict=True)]


def test_there_is_no_word_beyond_either_end_of_a_text() -> None:
    text = read("It rains")

    assert ["", "", "it", "rains", "", ""] == [text.padded[place] for place in range(-2, 4)]


def test_what_is_said_is_a_name_that_knows_where_it_stands() -> None:
    text = read("Take a jacket, please.")

    said = Said.at(text, 2, 2, "coat")

    assert ("coat", "jacket") == (said, text.original[said.start : said.end])
