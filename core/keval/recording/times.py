"""Times of a recorded trial, restored in the trial that was played from it.

How long a replay takes says nothing of an agent. So a played trial has the recorded times where it went the same way,
and none where it did not.
"""

from __future__ import annotations

from itertools import chain, repeat

import attrs

from keval.records import Transcript, Trial

__all__ = ["with_recorded_times"]

_UNKNOWN = repeat((None, None))


def with_recorded_times(trial: Trial, recorded: Trial | None) -> Trial:
    """Return a played trial with the times of the recorded one, attempt by attempt; `None` where they differ."""
    earlier = recorded.attempts if recorded is not None else ()
    attempts = tuple(
        attrs.evolve(each, transcript=_timed(each.transcript, before))
        for each, before in zip(trial.attempts, chain((was.transcript for was in earlier), repeat(None)), strict=False)
    )
    # An attempt that was the last one when it was recorded may have been followed by another one here.
    same = recorded is not None and len(earlier) == len(trial.attempts)
    last = recorded.transcript if recorded is not None and same else None
    return attrs.evolve(trial, transcript=_timed(trial.transcript, last), attempts=attempts)


def _timed(played: Transcript | None, recorded: Transcript | None) -> Transcript | None:
    if played is None:
        return None
    before = recorded or Transcript()
    turns = len(played.turn_durations) == len(before.turn_durations)
    calls = [(call.duration, call.at) for call in before.tool_calls] if _names(played) == _names(before) else []
    passed = [(each.duration, each.at) for each in before.exchanges] if _passed(played) == _passed(before) else []
    return attrs.evolve(
        played,
        started=before.started if turns else None,
        duration=before.duration if turns else None,
        turn_durations=before.turn_durations if turns else (),
        replies=before.replies if len(played.replies) == len(before.replies) else (),
        tool_calls=tuple(
            attrs.evolve(call, duration=duration, at=at)
            for call, (duration, at) in zip(played.tool_calls, chain(calls, _UNKNOWN), strict=False)
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
