"""What is written of a trial is read again."""

from __future__ import annotations

from functools import partial

import attrs
import pytest

from keval import Failure, Message, Sample, Score, ScoreLine, ToolCall, Transcript, Trial, Usage
from keval.records.scores import Judgement
from keval.records.transcript import Content, ServerExchange
from keval.records.trial import Attempt
from keval.store.serialization import read_record, read_score, read_trial, score_line, trial_line


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
    for damage in ({"rejected": [2]}, {"model_calls": "0"}, {"usage": [2]}):
        with pytest.raises(TypeError):
            read_record(Judgement, {"rejected": ["two"], "usage": {"input_tokens": 2}, "model_calls": 0, **damage})


def test_unknown_keys_are_left_out_of_every_record() -> None:
    later = {"input_tokens": 1, "of_a_later_version": 1}

    assert [Usage(input_tokens=1)] * 2 == [read_record(Usage, later), read_record(Usage, later)]


CALLS = (ToolCall("look", {"n": 2**70}, "fine", duration=0.5), ToolCall("look", error="none"))
TRIAL = Trial(
    "a/c/s/1",
    Sample("s", "Why?"),
    "a",
    "c",
    1,
    Transcript(messages=(Message("user", "Why?"), Message("assistant", "ü\ud800")), tool_calls=CALLS, duration=1.0),
    attempts=(Attempt(Failure("agent", "odd", "no")),),
)


@pytest.mark.parametrize("odd", ['{"a":1}', "[1,2]", "3"])
def test_a_trial_in_which_an_adapter_left_something_odd_is_read_as_any_other(odd: str) -> None:
    line = trial_line(TRIAL)
    strange = line.replace(b'"result":"fine"', f'"result":{odd}'.encode())

    plain, read = (read_trial(each, lambda _: TRIAL.sample, lambda _: {"x": 1}) for each in (line, strange))

    assert plain.transcript is not None
    assert read.transcript is not None
    assert odd == read.transcript.tool_calls[0].result
    first, second = plain.transcript.tool_calls
    calls = (attrs.evolve(first, result=odd), second)
    assert attrs.evolve(plain, transcript=attrs.evolve(plain.transcript, tool_calls=calls)) == read


def test_a_score_is_read_as_it_was_written() -> None:
    judged = ScoreLine("a/c/s/1", "s", "a", "c", 1, "fair", "gpt", Score(4, "good", details={"n": [1, 0.5]}))
    for line in (judged, attrs.evolve(judged, failure=Failure("score", "odd", "no"), judgement=Judgement(2, ("x",)))):
        assert line == read_score(score_line(line))
        assert score_line(line) == score_line(read_score(score_line(line)))


@pytest.mark.parametrize("damage", [b"\xff", b'"'])
def test_what_is_no_json_is_no_trial_and_no_score(damage: bytes) -> None:
    for line, read in (
        (trial_line(TRIAL), partial(read_trial, sample=lambda _: TRIAL.sample, characteristics=lambda _: {})),
        (score_line(ScoreLine("t", "s", "a", "c", 1, "fair", None, Score(1.0))), read_score),
    ):
        with pytest.raises(ValueError, match=r"."):
            read(line.replace(b'"agent":"a"', b'"agent":"a' + damage + b'"'))
