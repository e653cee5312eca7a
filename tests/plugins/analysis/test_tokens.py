"""Tokens of a reply, as each API writes them."""

from __future__ import annotations

import pytest

from keval import Usage
from keval.records.cassettes import ModelTraffic
from keval.records.models import Asker, ModelRequest, Wire
from keval_analysis.timeline import tokens_of

STREAM = {"content-type": "text/event-stream; charset=utf-8"}


@pytest.mark.parametrize(
    ("wire", "headers", "chunks", "expected"),
    [
        (
            "openai-chat",
            {},
            [b'{"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3}}}'],
            Usage(9, 4, 3),
        ),
        (
            "openai-chat",
            STREAM,
            [b'data: {"choices":[],"usage":null}\n\nda', b'ta: {"usage":{"prompt_tokens":9}}\n\ndata: [DONE]\n\n'],
            Usage(9),
        ),
        (
            "openai-responses",
            STREAM,
            [b'event: x\ndata: {"response":{"usage":{"input_tokens":9,"output_tokens":4}}}\n\n'],
            Usage(9, 4),
        ),
        (
            "anthropic",
            STREAM,
            [
                b'data: {"message":{"usage":{"input_tokens":5,"cache_read_input_tokens":3,"output_tokens":1}}}\n\n',
                b'data: {"usage":{"output_tokens":12}}\n\n',
            ],
            Usage(8, 12, 3),
        ),
        (
            "gemini",
            {},
            [
                b'[{"usageMetadata":{"promptTokenCount":9}},',
                b'{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":4,"thoughtsTokenCount":2}}]',
            ],
            Usage(9, 6, 0, 2),
        ),
        ("openai-chat", {}, [b'{"choices":[]}'], None),
        ("openai-chat", {}, [b"<html>"], None),
        ("openai-chat", {}, [b'{"usage":{"prompt_tokens":true,"completion_tokens":"4"}}'], Usage()),
    ],
)  # fmt: skip
def test_tokens_are_read_from_whole_replies_and_from_streams(
    wire: Wire, headers: dict[str, str], chunks: list[bytes], expected: Usage | None
) -> None:
    request = ModelRequest("p/m", wire, "POST", "/", {}, b"{}")

    found = tokens_of(ModelTraffic(Asker("agent", "a"), request, 200, headers, tuple(chunks)))

    assert expected == found
