"""What is written of a trial is read again."""

from __future__ import annotations

from keval import Message, Sample, ToolCall, Transcript, Trial
from keval.plugin import Content, ServerExchange
from keval.store.serialization import read_trial, trial_line


def test_what_passed_between_agent_and_server_is_read_as_it_was() -> None:
    picture = Content("image", "image/png", "0f", 68)
    call = ToolCall("look", {"at": "it"}, "", server="docs", content=(picture,), dropped=("image",))
    asked = ServerExchange("docs", "roots/list", "server", result={"roots": []}, answered_by="policy", at=1.5)
    told = ServerExchange("docs", "notifications/message", "server", {"data": "żółć"})
    transcript = Transcript((Message("user", "Well?"),), (call,), exchanges=(asked, told))
    trial = Trial("a/c/s/1", Sample("s", "Well?"), "a", "c", 1, transcript)

    read = read_trial(trial_line(trial), lambda _: trial.sample, lambda _: {})

    assert transcript == read.transcript
