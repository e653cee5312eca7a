"""How timelines are drawn, and how texts are cut: without a browser."""

from __future__ import annotations

import pytest

from keval.records.formats import time_span
from keval_analysis.timeline import AGENT, MODEL, USER, Step, Timeline
from keval_report.marks import Mark
from keval_viewer.pages.sample import MOST_WORDS, differing
from keval_viewer.scores import pieces_of, spans_of
from keval_viewer.tracks import track_of


def test_marks_that_overlap_cut_a_text_into_pieces() -> None:
    marks = (Mark(0, 6, "both", "good"), Mark(3, 9, "half", "bad"), Mark(9, 10, "end"))

    pieces = pieces_of("0123456789ab", marks)

    expected = [("012", "good"), ("345", "bad"), ("678", "bad"), ("9", "neutral"), ("ab", "")]
    assert expected == [(piece.text, piece.kind) for piece in pieces]
    assert "both; half" == pieces[1].told


def test_marks_of_one_piece_are_told_together() -> None:
    marks = (Mark(0, 5, "item", "good"), Mark(0, 5, "one of three", "good"), Mark(2, 5, "part"))

    spans = spans_of("boots and a coat", marks)

    assert [("boots", "item; one of three", "good"), ("ots", "part", "neutral")] == [
        (span.text, span.told, span.kind) for span in spans
    ]


def test_wordings_join_to_both_answers() -> None:
    answer, other = "It is  3 °C.\nTake a coat. ", "It was 3 °C. Take an umbrella."

    pieces = differing(answer, other) or []

    assert answer == "".join(text for mark, text in pieces if mark != "-")
    assert other.split() == "".join(text for mark, text in pieces if mark != "+").split()
    assert [" was", " is"] == [text for mark, text in pieces if mark != " "][:2]


def test_answers_that_are_too_long_are_not_compared() -> None:
    assert differing("a " * (MOST_WORDS + 1), "a") is None
    assert [] == differing("", "")


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.0, "0 s"),
        (0.000_21, "210 µs"),
        (0.0034, "3.4 ms"),
        (0.34, "340 ms"),
        (3.4, "3.4 s"),
        (34.0, "34 s"),
        (125.0, "2 min 5 s"),
    ],
)
def test_times_are_told_with_what_one_remembers(seconds: float, told: str) -> None:
    assert told == time_span(seconds)


def test_bars_share_an_axis_with_round_ticks() -> None:
    steps = (
        Step("asked", USER, AGENT, "question", start=0.0, duration=0.0),
        Step("model", AGENT, MODEL, "model call 1", start=0.5, duration=1.0, is_bound=True),
        Step("model", AGENT, MODEL, "model call 2", start=1.5),
        Step("refusal", AGENT, MODEL, "refused"),
    )

    track = track_of(Timeline(1, steps, (USER, AGENT, MODEL), seconds=2.0))

    bars = [row.bar and (row.bar.x, row.bar.width, row.bar.kind) for row in track.rows]
    assert [(0.0, 0.0, "moment"), (25.0, 50.0, "bound"), (75.0, 25.0, "open"), None] == bars
    assert ["0", "0.5 s", "1 s", "1.5 s"] == [tick.told for tick in track.ticks]
    assert ["", "≤ 1.0 s", "", ""] == [row.took for row in track.rows]
    assert (32.0, 96.0, 192) == (track.rows[0].begin, track.rows[0].end, track.width)
