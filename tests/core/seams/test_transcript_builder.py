"""What builders make of reports: what counts as an answer, and who told of calls that an agent does not report."""

from __future__ import annotations

import pytest

from keval import ToolCall, Usage
from keval.plugin import McpServer, ModelError, TranscriptBuilder, TrialError, is_blank
from keval.records.servers import CallLog

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


def test_calls_that_are_left_to_the_tap_stand_in_their_turn_before_the_answer() -> None:
    log = CallLog()
    builder = TranscriptBuilder(clock=iter(range(100)).__next__, now=lambda: 1000.0)
    builder.leave_calls_to_tap([McpServer("notes", "http", log=log)])

    with builder.turn("How high is it?"):
        builder.requests.metered(Usage(10, 2, 0, 0))
        log.calls.append(ToolCall("look", {"at": "it"}, result="7 m", server="notes", executions=1, at=1005.0))
        builder.said("7 m.")
    with builder.turn("And how long?"):
        log.calls.append(ToolCall("look", error="no such thing", server="notes", executions=1, at=1009.0))
        builder.said("Nobody knows.")
        log.calls.append(ToolCall("look", error="the agent gave the call up", server="notes", at=1010.0))

    told = builder.transcript()
    assert [
        ("user", "How high is it?"),
        ("tool", "7 m"),
        ("assistant", "7 m."),
        ("user", "And how long?"),
        ("tool", "no such thing"),
        ("assistant", "Nobody knows."),
    ] == [(message.role, message.text) for message in told.messages]
    assert [(0, 5.0, 1), (1, 9.0, 1), (1, 10.0, 1)] == [
        (call.turn, call.at, call.model_call) for call in told.tool_calls
    ]
    assert ("tap", "proxy", 1, Usage(10, 2, 0, 0), 0) == (
        told.tool_calls_by,
        told.model_calls_by,
        told.model_calls,
        told.usage,
        told.unlisted_calls,
    )


def test_calls_of_a_server_without_a_tap_are_unknown_where_the_agent_does_not_report_them() -> None:
    builder = TranscriptBuilder()
    builder.leave_calls_to_tap([McpServer("notes", "http", url="http://127.0.0.1:1/mcp")])

    with builder.turn("How high is it?"):
        builder.said("7 m.")

    told = builder.transcript()
    assert (None, None, Usage()) == (told.unlisted_calls, told.model_calls, told.usage)


def test_what_an_adapter_reports_of_model_calls_replaces_what_a_proxy_counted() -> None:
    builder = TranscriptBuilder()

    with builder.turn("How high is it?"):
        builder.requests.metered(Usage(10, 2, 0, 0))
        builder.model_called(Usage(11, 3, 0, 0))
        builder.said("7 m.")

    told = builder.transcript()
    assert ("agent", 1, Usage(11, 3, 0, 0)) == (told.model_calls_by, told.model_calls, told.usage)


@pytest.mark.parametrize("ends", ["with an error", "with a text", "after another reply"])
def test_a_model_request_that_a_proxy_saw_fail_last_is_why_a_program_failed(ends: str) -> None:
    builder = TranscriptBuilder()
    failed = ModelError("the model's endpoint answered with status 429: not today", status=429)
    raised: TrialError | None = None

    try:
        with builder.turn("How high is it?"):
            builder.requests.failed(failed)
            if ends == "with an error":
                raise TrialError("the program ended with exit code 1", kind="process")
            if ends == "after another reply":
                builder.requests.metered(Usage())
            builder.said("high demand")
    except TrialError as error:
        raised = error

    assert raised is (None if ends == "after another reply" else failed)


def test_a_call_that_is_reported_late_has_the_time_that_it_took() -> None:
    now = 100.0
    builder = TranscriptBuilder(clock=lambda: now)

    with builder.turn("How high is it?"):
        now = 110.0
        builder.called("look", {}, "1", own=True, ago=4.0)
        builder.returned("up", id="1")
        builder.said("High.")

    (call,) = builder.transcript().tool_calls
    assert (6.0, 4.0) == (call.at, call.duration)


def test_calls_that_a_tap_records_while_a_text_is_written_come_after_it() -> None:
    log = CallLog()
    builder = TranscriptBuilder()
    builder.leave_calls_to_tap([McpServer("peaks", "http", log=log)])

    with builder.turn("How high is it?"):
        log.calls.append(ToolCall("find", {}, result="found"))
        builder.writes()
        log.calls.append(ToolCall("measure", {}, result="8,849 m"))
        builder.said("I measure it.")
        builder.writes()
        builder.said("It is high.")

    texts = [message.text for message in builder.transcript().messages]
    assert ["How high is it?", "found", "I measure it.", "8,849 m", "It is high."] == texts
