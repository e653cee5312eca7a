"""Traffic as lines: it is read as it was written, and secrets are in no form in it."""

from __future__ import annotations

import json

import attrs
import pytest

from keval.records.cassettes import ModelTraffic, ServerTraffic, Traffic, TrafficError
from keval.records.models import Asker, ModelRequest
from keval.redaction import MARK, Redactor
from keval.store.serialization import dump
from keval_replay.traffic_lines import (
    RecordedEndpoint,
    read_endpoint,
    read_traffic,
    traffic_line,
)
from tests.canaries import forms

ASKER = Asker("agent", "a", "a/none/q1/1", 1, 2)
REQUEST = ModelRequest("openai/gpt", "openai-chat", "POST", "/chat/completions", {}, b'{"a":"\xc3\xa9"}', ASKER)
ANSWERED = ModelTraffic(ASKER, REQUEST, 200, {"content-type": "text/event-stream"}, (b"data: 1\n", b"\n"), None, 3, 4)
SECRET = 'sk-"dead\\beef"/é+1'


@pytest.mark.parametrize(
    "traffic",
    [
        ANSWERED,
        attrs.evolve(ANSWERED, chunks=(b"whole",), at=1.5, seconds=0.25),
        attrs.evolve(ANSWERED, chunks=("é".encode()[:1], "é".encode()[1:])),
        attrs.evolve(ANSWERED, chunks=(b"\xff\x00", b"\xfe")),
        attrs.evolve(ANSWERED, chunks=(b"\xff",), request=attrs.evolve(REQUEST, body=b"\x80")),
        attrs.evolve(ANSWERED, status=None, headers={}, chunks=(), error=TrafficError("abandoned"), ended=None),
        attrs.evolve(ANSWERED, error=TrafficError("failed", "too large", "reply_too_large", details={"seconds": 1.5})),
        ServerTraffic("s", "listed", result={"tools": [{"name": "t"}]}, began=1, ended=1),
        ServerTraffic("s", "call", "tools/call", {"name": "t", "arguments": {"a": [1, None, ""]}}, {"content": []}),
        ServerTraffic("s", "told", "notifications/progress", {"progress": 1}, during=7, attempt=2, at=1.0, seconds=0.0),
        ServerTraffic("s", "call", error=TrafficError("refused", "no", code=-32602, data={"a": 1})),
        ServerTraffic("s", "asked", "elicitation/create", result={}),
    ],
)
def test_traffic_is_read_as_it_was_written(traffic: Traffic) -> None:
    assert traffic == read_traffic(traffic_line(traffic, Redactor()))


def test_a_body_is_kept_as_text_that_can_be_read() -> None:
    line = json.loads(traffic_line(ANSWERED, Redactor()))

    assert ('{"a":"é"}', "data: 1\n\n", [8, 1]) == (line["request"]["body"], line["body"], line["chunks"])


def test_keys_of_a_newer_version_are_ignored() -> None:
    line = {**json.loads(traffic_line(ANSWERED, Redactor())), "newer": 1}

    assert ANSWERED == read_traffic(json.dumps(line).encode())


@pytest.mark.parametrize("form", forms(SECRET))
def test_secrets_are_in_no_form_in_a_line(form: str) -> None:
    redact = Redactor()
    redact.learn([("KEY", SECRET)])
    secret = forms(SECRET)[form]
    body = f'{{"text": "{secret}"}}'.encode()
    called = json.dumps({"function": {"arguments": json.dumps({"token": SECRET})}}).encode() + body
    model = ModelTraffic(
        ASKER,
        attrs.evolve(REQUEST, path=f"/x?key={secret}", body=body),
        200,
        {"x-request-id": secret},
        (b"data: {}\n\n", b"data: " + called[:30], called[30:] + b"\n\n", b"data: [DONE]"),
        TrafficError("broken", secret, details={"seen": [secret]}),
    )
    server = ServerTraffic("s", "call", "tools/call", {"arguments": {secret: secret}}, {"content": [{"text": secret}]})

    lines = [traffic_line(model, redact), traffic_line(server, redact)]

    kept = secret[8:-24] if "position" in form else secret
    assert [] == [text for text in (kept, json.dumps(kept)[1:-1]) for line in lines if text.encode() in line]
    assert [True, True] == [MARK.encode() in line for line in lines]
    again = read_traffic(lines[0])
    assert isinstance(again, ModelTraffic)
    assert [b"data: {}\n\n", b"data: [DONE]"] == [again.chunks[0], again.chunks[-1]]


def test_a_stream_with_a_secret_in_pieces_is_cut_anew_after_each_event() -> None:
    redact = Redactor()
    redact.learn([("KEY", SECRET)])
    events = [f"data: {json.dumps({'delta': text})}\n\n".encode() for text in (SECRET[:9], SECRET[9:], " it is.")]
    body = b"".join(events)
    traffic = attrs.evolve(ANSWERED, chunks=(body[:20], body[20:]))

    again = read_traffic(traffic_line(traffic, redact))

    assert isinstance(again, ModelTraffic)
    told = [json.loads(chunk.removeprefix(b"data: "))["delta"] for chunk in again.chunks]
    assert [MARK, "", " it is."] == told


def test_an_endpoint_is_read_as_it_was_written() -> None:
    endpoint = RecordedEndpoint("p/m", {"openai-chat": "https://x.example/v1", "anthropic": "https://x"}, True)

    again = read_endpoint(dump(endpoint))

    assert (endpoint, ("openai-chat", "anthropic")) == (again, tuple(again.urls))
