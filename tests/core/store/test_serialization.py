"""What is written of a trial is read again."""

from __future__ import annotations

import pytest

from keval import Judgement, Message, Sample, ToolCall, Transcript, Trial, Usage
from keval.plugin import Content, ServerExchange
from keval.store.serialization import read_record, read_trial, trial_line


def test_what_passed_between_agent_and_server_is_read_as_it_was() -> None:
    picture = Content("image", "image/png", "0f", 68)
    call = ToolCall("look", {"at": "it"}, "", server="docs", content=(picture,), dropped=("image",))
    asked = ServerExchange("docs", "roots/list", "server", result={"roots": []}, answered_by="policy", at=1.5)
    told = ServerExchange("docs", "notifications/message", "server", {"data": "żółć"})
    transcript = Transcript((Message("user", "Well?"),), (call,), exchanges=(asked, told))
    trial = Trial("a/c/s/1", Sample("s", "Well?"), "a", "c", 1, transcript)

    read = read_trial(trial_line(trial), lambda _: trial.sample, lambda _: {})

    assert transcript == read.transcript


def test_a_record_like_one_before_is_read_as_carefully() -> None:
    read_record(Judgement, {"rejected": ["one"], "usage": {"input_tokens": 1}, "model_calls": 1})
    found = read_record(Judgement, {"rejected": ["two"], "usage": {"input_tokens": 2}, "model_calls": 0})

    assert Judgement(rejected=("two",), usage=Usage(input_tokens=2), model_calls=0) == found
    for damage in ({"rejected": [2]}, {"usage": {"input_tokens": "2"}}, {"model_calls": "0"}, {"usage": [2]}):
        with pytest.raises(TypeError):
            read_record(Judgement, {"rejected": ["two"], "usage": {"input_tokens": 2}, "model_calls": 0, **damage})


def test_unknown_keys_are_left_out_of_every_record() -> None:
    later = {"input_tokens": 1, "of_a_later_version": 1}

    assert [Usage(input_tokens=1)] * 2 == [read_record(Usage, later), read_record(Usage, later)]
