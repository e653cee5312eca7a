"""What counts as an answer: a text of which a reader sees something."""

from __future__ import annotations

import pytest

from keval.plugin import TranscriptBuilder, TrialError, is_blank

INVISIBLE = [
    "",
    " \t\r\n\u00a0\u2003\u3000\u2028\u2029",
    "\u200b\u200c\u200d\u2060\ufeff",
    "\u00ad\u200e\u202e\u2066\u180e",
    "\x00\x07\x1b\x7f\x85",
    "\ufe00\ufe0f\U000e0100\U000e01ef",
    "\u034f\u180b\u180f\u17b4\u17b5",
    "\u2800",
    "\u3164\u115f\u1160\uffa0",
    "\U000e0001\U000e0041\U000e007f\u2065\ufff0",
]
VISIBLE = [
    ".",
    "\u200b7\u200b",
    "👍",
    "❤\ufe0f",
    "👨\u200d👩\u200d👧",
    "\u0301",
    "\u20dd",
    "\u2801",
    "\u06dd",
    "가",
    "\ue000",
    "\ufffd",
    "\u0378",
]


@pytest.mark.parametrize("text", INVISIBLE)
def test_an_answer_of_which_nothing_is_visible_is_no_answer(text: str) -> None:
    builder = TranscriptBuilder()

    with pytest.raises(TrialError) as raised, builder.turn("How high is it?"):
        builder.said(text)

    assert (True, "no_answer", False) == (is_blank(text), raised.value.kind, raised.value.retryable)


@pytest.mark.parametrize("text", VISIBLE)
def test_an_answer_of_which_something_is_visible_is_one(text: str) -> None:
    builder = TranscriptBuilder()

    with builder.turn("How high is it?"):
        builder.said(text)

    assert (False, text) == (is_blank(text), builder.transcript().output)


def test_only_the_last_text_of_the_last_turn_says_whether_it_was_truncated() -> None:
    builder = TranscriptBuilder()

    with builder.turn("How high is it?"):
        builder.said("It is", truncated=True)
    first = builder.transcript().truncated
    with builder.turn("And how long?"):
        builder.said("Let me", truncated=True)
        builder.called("look", {})
        builder.returned("7 m")
        builder.said("7 m.")

    assert (True, False) == (first, builder.transcript().truncated)


def test_a_turn_that_failed_before_it_said_anything_is_not_truncated() -> None:
    builder = TranscriptBuilder()

    with builder.turn("How high is it?"):
        builder.said("It is", truncated=True)
    with pytest.raises(TrialError), builder.turn("And how long?"):
        raise TrialError("the model failed", stage="model", kind="http_500")

    assert not builder.transcript().truncated
