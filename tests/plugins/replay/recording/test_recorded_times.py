"""What no replay can repeat of a recorded trial is restored in the played one, where both went the same way."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from keval import Failure, Message, ToolCall, Transcript, Trial
from keval.plugin import Volatile
from keval.records.trial import Attempt
from keval_replay.recorded_times import with_recorded_times

LATE = Failure("agent", "timeout", "no answer within 2 s")
PATHS = Volatile("a path of the trial", pattern=r"/tmp/\S+")
RECORDED = Transcript(
    messages=(
        Message("user", "Add both."),
        Message("tool", "5"),
        Message("tool", "kept in /tmp/a"),
        Message("assistant", "Done."),
    ),
    tool_calls=(ToolCall("add", result="5", id="drawn-1", duration=0.5, at=1.0),),
    duration=3.0,
    turn_durations=(3.0,),
    replies=(1.0, 2.0),
    started=1_000.0,
)
PLAYED = attrs.evolve(
    RECORDED,
    messages=tuple(Message(each.role, each.text.replace("/tmp/a", "/tmp/b")) for each in RECORDED.messages),
    tool_calls=(ToolCall("add", result="5", id="drawn-2", duration=0.1, at=0.2),),
    duration=0.3,
    turn_durations=(0.3,),
    replies=(0.1, 0.2),
    started=2_000.0,
)


def trial(transcript: Transcript, **rest: Any) -> Trial:
    values = {"id": "a/c/s/1", "sample": "s", "agent": "a", "condition": "c", "repetition": 1, **rest}
    return Trial(transcript=transcript, **values)


def restored(played: Transcript, recorded: Transcript = RECORDED, **rest: Any) -> Transcript | None:
    return with_recorded_times(trial(played, **rest), trial(recorded, **rest), [PATHS]).transcript


def turned(transcript: Transcript) -> Transcript:
    """The results the other way round."""
    question, first, second, answer = transcript.messages
    return attrs.evolve(transcript, messages=(question, second, first, answer))


@pytest.mark.parametrize("played", [PLAYED, turned(PLAYED)], ids=["in the same order", "in another order"])
def test_a_trial_that_went_the_same_way_is_the_recorded_one(played: Transcript) -> None:
    assert RECORDED == restored(played)


def test_a_trial_that_went_another_way_has_no_times() -> None:
    question, *_, answer = PLAYED.messages
    other = attrs.evolve(
        PLAYED, messages=(question, answer), tool_calls=(), replies=(0.1,), turn_durations=(0.1, 0.2), duration=0.3
    )

    transcript = restored(other)

    expected = attrs.evolve(other, duration=None, turn_durations=(), replies=(), started=None)
    assert expected == transcript
    assert None is with_recorded_times(trial(PLAYED), None).transcript.duration  # type: ignore[union-attr]


def test_another_text_stays() -> None:
    messages = (*PLAYED.messages[:-1], Message("assistant", "Done at last."))

    transcript = restored(attrs.evolve(PLAYED, messages=messages))

    assert transcript is not None
    assert messages == transcript.messages
    assert RECORDED.duration == transcript.duration


def test_what_ran_out_of_time_ends_where_it_ended_when_it_was_recorded() -> None:
    shorter = attrs.evolve(PLAYED, messages=PLAYED.messages[:2], tool_calls=())

    assert RECORDED == restored(shorter, failure=LATE)
    assert RECORDED != restored(shorter)
    assert RECORDED != restored(attrs.evolve(shorter, messages=(Message("user", "Multiply."),)), failure=LATE)


def test_attempts_are_restored_each_by_its_own() -> None:
    one, two = (trial(each, attempts=(Attempt(LATE, each),)) for each in (PLAYED, RECORDED))

    assert two == with_recorded_times(one, two, [PATHS])
    # With an attempt more than there was, the last one is another one.
    longer = attrs.evolve(one, attempts=(*one.attempts, *one.attempts))
    assert [RECORDED.duration, None] == [
        each.transcript and each.transcript.duration for each in with_recorded_times(longer, two, [PATHS]).attempts
    ]
