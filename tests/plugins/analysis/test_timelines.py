"""Timelines of trials: of recorded runs, of conversations, and of trials of which little is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from keval import Message, Sample, ToolCall, Transcript, Trial, Usage, open_run
from keval.records.cassettes import ModelTraffic, ServerTraffic, Traffic, TrafficError
from keval.records.models import Asker, ModelRequest
from keval.records.transcript import Refusal, ServerExchange
from keval.records.trial import Attempt, Failure
from keval_analysis.timeline import Step, Timeline, timelines
from keval_replay.recording import traffic_of

ROOT = Path(__file__).parents[3]
RECORDED = ROOT / "examples" / "context-ab" / "recording"
LANDED = ROOT / "tests" / "runs" / "0.1.0"
FAILED = Failure("model", "overloaded", "the model is overloaded")
LONG_AGO = 1_000_000.0


def brief(steps: tuple[Step, ...]) -> list[str]:
    return [f"{step.kind} {step.label}" for step in steps]


def spans(timeline: Timeline, kind: str) -> list[tuple[float | None, float | None]]:
    def rounded(value: float | None) -> float | None:
        return None if value is None else round(value, 3)

    return [(rounded(step.start), rounded(step.duration)) for step in timeline.steps if step.kind == kind]


def trial(transcript: Transcript | None, *attempts: Attempt, failure: Failure | None = None) -> Trial:
    return Trial("t", Sample("s", "How warm?"), "a", "c", 1, transcript, failure, attempts)


def asked(at: float, seconds: float | None, status: int | None, began: int, attempt: int = 1) -> ModelTraffic:
    asker = Asker("agent", "a", attempt=attempt)
    request = ModelRequest("p/m", "openai-chat", "POST", "/chat/completions", {}, b"{}", asker)
    error = TrafficError("abandoned") if seconds is None else None
    ended = None if seconds is None else began + 1
    return ModelTraffic(request.asker, request, status, {}, (b"{}",), error, began, ended, LONG_AGO + at, seconds)


def ran(server: str, tool: str, arguments: dict[str, str], at: float, seconds: float) -> ServerTraffic:
    params = {"name": tool, "arguments": arguments}
    return ServerTraffic(server, "call", "tools/call", params, began=5, ended=6, at=LONG_AGO + at, seconds=seconds)


def test_a_trial_alone_tells_what_happened_and_bounds_when_the_model_was_asked() -> None:
    (timeline,) = timelines(open_run(RECORDED).trial("openai/with_docs/prune-default/1"))

    expected = [
        "asked question",
        "model model call 1",
        "tool search_docs",
        "model model call 2",
        "tool read_page",
        "tool read_page",
        "model model call 3",
        "said answer",
    ]
    assert expected == brief(timeline.steps)
    assert [(0.0, 0.034), (0.103, 0.032), (0.146, 0.046)] == spans(timeline, "model")
    assert {True} == {step.is_bound for step in timeline.steps if step.kind == "model"}
    assert [1, 2, 2] == [step.model_call for step in timeline.steps if step.kind == "tool"]
    assert [("user", ""), ("agent", ""), ("model", ""), ("server", "docs")] == [
        (lane.kind, lane.name) for lane in timeline.lanes
    ]
    assert (0.192, False, 0) == (round(timeline.seconds or 0, 3), timeline.measured, timeline.untimed)


def test_a_recording_tells_when_models_and_servers_worked_and_each_calls_tokens() -> None:
    run = open_run(RECORDED)
    name = "openai/with_docs/prune-default/1"

    (timeline,) = timelines(run.trial(name), traffic_of(run, name))

    assert timeline.measured
    assert [(0.014, 0.02), (0.119, 0.016), (0.152, 0.04)] == spans(timeline, "model")
    assert [(0.047, 0.069), (0.14, 0.01), (0.14, 0.01)] == spans(timeline, "tool")
    told = [step.usage for step in timeline.steps if step.kind == "model"]
    assert [(242, 18), (689, 19), (1027, 87)] == [(use.input_tokens, use.output_tokens) for use in told if use]


@pytest.mark.parametrize("run", ["20261122-063743-c6a2", "20261122-115659-d915"])
def test_runs_of_landed_versions_have_timelines_and_leave_unknown_times_unknown(run: str) -> None:
    for each in open_run(LANDED / run).trials():
        *_, timeline = timelines(each)

        transcript = each.transcript or Transcript()
        assert [*transcript.messages[:1]] == [transcript.messages[step.message or 0] for step in timeline.steps[:1]]
        assert {(None, None)} >= {*spans(timeline, "model")}
        assert len(transcript.tool_calls) == len(spans(timeline, "tool"))


def test_a_trial_without_a_transcript_has_no_steps() -> None:
    (timeline,) = timelines(trial(None, failure=FAILED))

    assert ((), (), None, FAILED) == (timeline.steps, timeline.lanes, timeline.seconds, timeline.failure)


def test_each_attempt_has_its_own_timeline_and_the_time_that_passed_before_it() -> None:
    began = [Transcript((Message("user", "How warm?"),), started=LONG_AGO + after) for after in (0.0, 7.5)]

    first, second = timelines(trial(began[1], Attempt(FAILED, began[0])))

    assert (1, 0.0, FAILED) == (first.attempt, first.after, first.failure)
    assert (2, 7.5, None) == (second.attempt, second.after, second.failure)


def test_each_attempt_has_its_own_traffic() -> None:
    began = [Transcript((Message("user", "How warm?"),), model_calls=1, started=LONG_AGO + after) for after in (0, 7)]

    traffic = [asked(0.5, 1.0, 200, 1), asked(7.25, 2.0, 200, 3, attempt=2)]
    first, second = timelines(trial(began[1], Attempt(FAILED, began[0])), traffic)

    assert ([(0.5, 1.0)], [(0.25, 2.0)]) == (spans(first, "model"), spans(second, "model"))


def test_texts_stand_with_the_reply_that_they_came_with_turn_by_turn() -> None:
    messages = (
        Message("user", "How warm?"),
        Message("assistant", "Let me look."),
        Message("tool", "3"),
        Message("assistant", "It is 3 °C."),
        Message("user", "And tomorrow?", 1),
        Message("assistant", "4 °C.", 1),
    )
    call = ToolCall("get", model_call=1, at=1.0, duration=0.5, executions=0)
    transcript = Transcript(
        messages, (call,), model_calls=3, turn_durations=(2.0, 1.0), started=LONG_AGO, replies=(1.0, 2.0, 2.9)
    )

    (timeline,) = timelines(trial(transcript))

    expected = [
        ("asked", 0, 0.0),
        ("model", 0, 0.0),
        ("said", 0, 1.0),
        ("tool", 0, 1.0),
        ("model", 0, 1.5),
        ("said", 0, 2.0),
        ("asked", 1, 2.0),
        ("model", 1, 2.0),
        ("said", 1, 3.0),
    ]
    assert expected == [(step.kind, step.turn, step.start) for step in timeline.steps]
    # No server had the call.
    assert ["user", "agent", "model"] == [lane.kind for lane in timeline.lanes]


def test_turns_that_earlier_trials_told_are_left_out() -> None:
    messages = (
        *(Message("user", "How warm?"), Message("tool", "3"), Message("assistant", "3 °C.")),
        *(Message("user", "And now?", 1), Message("tool", "4", 1), Message("assistant", "4 °C.", 1)),
    )
    calls = (
        ToolCall("earlier", model_call=1, at=0.5, duration=0.5),
        ToolCall("now", model_call=1, at=9.25, duration=0.5, turn=1),
    )
    transcript = Transcript(
        messages, calls, model_calls=2, turn_durations=(9.0, 1.0), started=LONG_AGO, replies=(9.25, 9.875), carried=1
    )

    (timeline,) = timelines(trial(transcript))

    assert ["asked", "model", "tool", "model", "said"] == [step.kind for step in timeline.steps]
    assert ([(0.0, 0.25), (0.75, 0.125)], [(0.25, 0.5)]) == (spans(timeline, "model"), spans(timeline, "tool"))
    assert (1.0, {1}) == (timeline.seconds, {step.turn for step in timeline.steps})


def test_waits_after_refusals_are_on_the_axis_of_a_recording_only() -> None:
    call = ToolCall("get", {"of": "x"}, server="docs", model_call=1, at=1.1, duration=0.2, executions=1)
    exchange = ServerExchange("docs", "ping", "server", answered_by="agent", at=LONG_AGO + 4.2, duration=0.0)
    transcript = Transcript(
        (Message("user", "How warm?"), Message("tool", "3"), Message("assistant", "3 °C.")),
        (call,),
        model_calls=2,
        turn_durations=(2.0,),
        refusals=(Refusal(429, "too many requests", 3.0),),
        started=LONG_AGO,
        replies=(1.0, 1.9),
        exchanges=(exchange,),
    )
    traffic: list[Traffic] = [
        asked(0.1, 0.4, 429, 1),
        asked(3.5, 0.5, 200, 3),
        ran("docs", "get", {"of": "x"}, at=4.1, seconds=0.2),
        asked(4.4, 0.5, 200, 7),
    ]

    (told,) = timelines(trial(transcript))
    (measured,) = timelines(trial(transcript), traffic)

    assert (3.0, [(None, None)], [(None, None)]) == (told.waited, spans(told, "refusal"), spans(told, "exchange"))
    assert ["asked", "refusal", "model", "tool", "exchange", "model", "said"] == [s.kind for s in measured.steps]
    refusal = measured.steps[1]
    assert (429, 0.1, 3.0) == (refusal.status, round(refusal.start or 0, 3), round(refusal.waited or 0, 3))
    assert ([(4.1, 0.2)], [(4.2, 0.0)]) == (spans(measured, "tool"), spans(measured, "exchange"))
    assert (0.0, 5.0) == (measured.waited, round(measured.seconds or 0, 3))


def test_traffic_with_other_model_calls_than_the_transcript_is_left_out() -> None:
    transcript = Transcript((Message("user", "How warm?"),), model_calls=2, started=LONG_AGO, replies=(1.0, 2.0))

    (timeline,) = timelines(trial(transcript), [asked(0.1, 0.4, 200, 1)])

    assert (False, [(0.0, 1.0), (1.0, 1.0)]) == (timeline.measured, spans(timeline, "model"))


def test_what_was_cut_off_has_a_beginning_and_no_end() -> None:
    call = ToolCall("get", model_call=1, at=1.0)
    late = Failure("agent", "timeout", "no answer within 5 s")
    transcript = Transcript(
        (Message("user", "How warm?"),), (call,), model_calls=1, turn_durations=(5.0,), started=LONG_AGO, replies=(0.9,)
    )

    (timeline,) = timelines(trial(transcript, failure=late), [asked(0.1, 0.4, 200, 1), asked(2.0, None, None, 3)])

    assert [(1.0, None)] == spans(timeline, "tool")
    assert [(0.1, 0.4), (2.0, None)] == spans(timeline, "model")
    assert 5.0 == timeline.seconds


def test_the_only_model_calls_tokens_are_the_trials() -> None:
    transcript = Transcript((Message("user", "How warm?"),), usage=Usage(7, 2), model_calls=1)

    (timeline,) = timelines(trial(transcript))

    assert Usage(7, 2) == timeline.steps[1].usage
