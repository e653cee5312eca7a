"""What a record keeps of long texts."""

from __future__ import annotations

from keval import Message, Transcript
from keval.execute.trial.reconciliation import shorten
from keval.records.transcript import Blob


def test_a_result_that_an_agent_tells_without_its_call_is_cut_too() -> None:
    told = Transcript(messages=(Message("user", "u" * 2000), Message("tool", "x" * 2000)))
    kept: list[Blob] = []

    asked, result = shorten(told, 1000, kept.append).messages

    assert (told.messages[0], "x" * 1000) == (asked, result.text[:1000])
    assert result.text.startswith("x" * 1000 + "… (2000 bytes, SHA-256 ")
    assert [b"x" * 2000] == [blob.content for blob in kept]
    assert shorten(told, 3000, kept.append) == told
