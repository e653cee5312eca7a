"""Tool calls told apart: by the model call that asked for them and by their ids."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from keval import Sample
from keval_gateway import ChatCall, ChatReply

TWO_TURNS = Sample("s1", "One?", turns=("Two?",))
ONE = ChatCall("echo", {"text": "one"})
TWO = ChatCall("echo", {"text": "two"})
UNKNOWN = ChatCall("fly", {})

each_api = pytest.mark.parametrize("api", ["chat", "responses"])


def identified(call: ChatCall, id: str) -> ChatCall:
    return attrs.evolve(call, id=id)


@each_api
def test_ids_that_come_again_in_every_reply_do_not_mix_up_the_calls(play: Any, toolbox: Any, api: str) -> None:
    script = [
        ChatReply(calls=(identified(ONE, "call_0"), identified(TWO, "call_1"))),
        ChatReply(calls=(identified(TWO, "call_0"),)),
        ChatReply("First."),
        ChatReply(calls=(identified(UNKNOWN, "call_0"), identified(ONE, "call_1"))),
        ChatReply("Second."),
    ]

    outcome = play(script, toolbox.server(), api=api, sample=TWO_TURNS)

    told = [(call.id, call.model_call, call.turn, call.result, call.error) for call in outcome.transcript.tool_calls]
    assert [
        ("call_0", 1, 0, "one", None),
        ("call_1", 1, 0, "two", None),
        ("call_0", 2, 0, "two", None),
        ("call_0", 4, 1, None, "'Function \"fly\" not found.'"),
        ("call_1", 4, 1, "one", None),
    ] == told
    assert 5 == outcome.transcript.model_calls


@each_api
def test_no_call_stays_open_when_two_of_one_reply_have_the_same_id(play: Any, toolbox: Any, api: str) -> None:
    calls = (identified(UNKNOWN, "call_0"), identified(ONE, "call_0"))

    outcome = play([ChatReply(calls=calls), ChatReply("Done.")], toolbox.server(), api=api)

    closed = [(call.name, (call.result is None) != (call.error is None)) for call in outcome.transcript.tool_calls]
    assert [("fly", True), ("echo", True)] == closed
