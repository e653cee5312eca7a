"""What no replay can repeat of a recorded trial, restored in the trial that was played from it.

How long a replay takes says nothing of an agent. So a played trial has the recorded times where it went the same way,
and none where it did not. The same holds of ids and texts that its agent declares to vary, and of the order in which
results of parallel calls were reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from typing import TypeAlias

import attrs

from keval.records.cassettes import REPLAY_MISS, Volatile
from keval.records.transcript import Transcript
from keval.records.trial import Attempt, Trial
from keval_replay.request_comparison import without_volatile

_UNKNOWN = repeat((None, None))

_Said: TypeAlias = tuple[int, str, str]
"""The turn of a message, who speaks, and the text without what varies."""


def with_recorded_times(trial: Trial, recorded: Trial | None, volatile: Sequence[Volatile] = ()) -> Trial:
    """Return a played trial with the times of the recorded one, attempt by attempt; `None` where they differ.

    One that asked for what the recording does not have has no times. `volatile` is what its agent declares.
    """
    if trial.failure is not None and trial.failure.kind == REPLAY_MISS:
        recorded = None
    earlier = recorded.attempts if recorded is not None else ()
    attempts = tuple(
        attrs.evolve(each, transcript=_restored(each, before, volatile))
        for each, before in zip(trial.attempts, chain(earlier, repeat(None)), strict=False)
    )
    # An attempt that was the last one when it was recorded may have been followed by another one here.
    last = recorded if len(earlier) == len(trial.attempts) else None
    return attrs.evolve(trial, transcript=_restored(trial, last, volatile), attempts=attempts)


def _restored(
    played: Trial | Attempt, recorded: Trial | Attempt | None, volatile: Sequence[Volatile]
) -> Transcript | None:
    now, before = played.transcript, recorded.transcript if recorded is not None else None
    if now is None or recorded is None or before is None:
        return _timed(now, None)
    said, was_said = (
        [(message.turn, message.role, str(without_volatile(message.text, volatile))) for message in each.messages]
        for each in (now, before)
    )
    # What had no more time ends wherever the agent was at that moment, which no replay hits.
    is_cut = all(each.failure is not None and each.failure.kind == "timeout" for each in (played, recorded))
    if is_cut and _agree(said, was_said) and _agree(_names(now), _names(before)):
        return before
    if sorted(said) == sorted(was_said) and _without_results(said) == _without_results(was_said):
        now = attrs.evolve(now, messages=before.messages)
    return _timed(now, before)


def _without_results(said: Sequence[_Said]) -> list[_Said]:
    return [each for each in said if each[1] != "tool"]


def _agree(one: Sequence[object], other: Sequence[object]) -> bool:
    """Return whether the shorter one is how the longer one begins."""
    return all(first == second for first, second in zip(one, other, strict=False))


def _timed(played: Transcript | None, recorded: Transcript | None) -> Transcript | None:
    if played is None:
        return None
    before = recorded or Transcript()
    turns = len(played.turn_durations) == len(before.turn_durations)
    calls = before.tool_calls if _names(played) == _names(before) else ()
    passed = [(each.duration, each.at) for each in before.exchanges] if _passed(played) == _passed(before) else []
    return attrs.evolve(
        played,
        started=before.started if turns else None,
        duration=before.duration if turns else None,
        turn_durations=before.turn_durations if turns else (),
        replies=before.replies if len(played.replies) == len(before.replies) else (),
        tool_calls=tuple(
            attrs.evolve(call, duration=was.duration, at=was.at, id=was.id)
            if was is not None
            else attrs.evolve(call, duration=None, at=None)
            for call, was in zip(played.tool_calls, chain(calls, repeat(None)), strict=False)
        ),
        exchanges=tuple(
            attrs.evolve(exchange, duration=duration, at=at)
            for exchange, (duration, at) in zip(played.exchanges, chain(passed, _UNKNOWN), strict=False)
        ),
    )


def _names(transcript: Transcript) -> list[str]:
    return [call.name for call in transcript.tool_calls]


def _passed(transcript: Transcript) -> list[tuple[str, str, str]]:
    return [(exchange.server, exchange.method, exchange.sender) for exchange in transcript.exchanges]
