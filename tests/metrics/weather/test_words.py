"""Texts read into words: what is a word, and where it stands."""

from __future__ import annotations

import pytest

from keval_metrics_weather.reading.words import Said, read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Łódź is cold.", [("lodz", "Łódź"), ("is", "is"), ("cold", "cold"), (".", ".")]),
        ("It won't rain", [("it", "It"), ("will", "won't"), ("not", "won't"), ("rain", "rain")]),
        ("dont go", [("do", "dont"), ("not", "dont"), ("go", "go")]),
        ("St. John's,", [("st", "St"), ("john", "John's"), (",", ",")]),
        ("3–5 – no", [("3", "3"), ("5", "5"), ("–", "–"), ("no", "no")]),
        ("5.2,\n", [("5", "5"), ("2", "2"), (",", ","), ("\n", "\n")]),
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
