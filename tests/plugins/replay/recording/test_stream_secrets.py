"""Secrets that a stream spells over several events: they are found in every wire protocol, wherever they are cut."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from keval.redaction import MARK, Redactor
from keval_replay.traffic_lines import without_split_secrets

SECRET = 'c4n4ry "deltas" é'


def chat(number: int, text: str) -> dict[str, Any]:
    return {"choices": [{"index": number, "delta": {"content": text}}]}


def chat_call(number: int, text: str) -> dict[str, Any]:
    call = {"index": number, "function": {"arguments": text}}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}


def responses(number: int, text: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": number, "content_index": 0, "delta": text}


def anthropic(number: int, text: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": number, "delta": {"type": "input_json_delta", "partial_json": text}}


def gemini(number: int, text: str) -> dict[str, Any]:
    return {"candidates": [{"index": number, "content": {"parts": [{"text": text}], "role": "model"}}]}


WIRES = [chat, chat_call, responses, anthropic, gemini]


def stream(*events: Any) -> bytes:
    return (
        b"".join(b"event: x\r\ndata: " + json.dumps(event).encode() + b"\r\n\r\n" for event in events) + b"data: [DONE]"
    )


def read(body: bytes, wire: Callable[[int, str], Any], number: int) -> str:
    """What a client reads of one of several texts."""
    shape = json.dumps(wire(number, "TEXT")).split("TEXT")
    datas = [line.removeprefix(b"data:").strip() for line in body.splitlines() if line.startswith(b"data: {")]
    events = [json.dumps(json.loads(data)) for data in datas]
    pieces = [event[len(shape[0]) : -len(shape[1])] for event in events if event.startswith(shape[0])]
    return "".join(json.loads(f'"{piece}"') for piece in pieces)


def redactor() -> Redactor:
    redact = Redactor()
    redact.learn([("KEY", SECRET)])
    return redact


@pytest.mark.parametrize("wire", WIRES)
def test_a_secret_in_pieces_is_replaced_in_every_wire(wire: Callable[[int, str], Any]) -> None:
    told = json.dumps({"a": SECRET, "b": f"{SECRET}{SECRET}"})
    for size in (1, 2, 3, 7, 40):
        pieces = [told[start : start + size] for start in range(0, len(told), size)]
        # Two texts whose events take turns, as those of parallel calls do.
        body = stream(*(event for piece in pieces for event in (wire(0, piece), wire(1, piece.upper()))))

        scrubbed = without_split_secrets(body, redactor())

        assert json.dumps({"a": MARK, "b": MARK * 2}) == read(scrubbed, wire, 0)
        assert told.upper() == read(scrubbed, wire, 1)
        assert body.count(b"data:") == scrubbed.count(b"data:")
        assert scrubbed.endswith(b"\r\n\r\ndata: [DONE]")


def test_a_stream_without_a_secret_stays_as_it_is() -> None:
    body = stream(chat(0, SECRET[:5]), chat(1, SECRET[5:]), chat(0, " and no more")) + b"\n\n: ping\n\ndata: {no JSON"

    assert without_split_secrets(body, redactor()) is body
    assert without_split_secrets(body, Redactor()) is body


def test_what_is_replaced_already_is_left() -> None:
    redact = Redactor()
    redact.learn([("KEY", "secret")])
    body = stream(chat(0, "[sec"), chat(0, "ret]"), chat(0, " sec"), chat(0, "ret"))

    assert f"{MARK} {MARK}" == read(without_split_secrets(body, redact), chat, 0)
