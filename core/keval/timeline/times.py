"""Times: when the turns, model calls and tool calls of an attempt were, as far as its transcript tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from keval.records import Transcript, Usage

__all__ = ["Refused", "Span", "Times", "told_times", "turns_of"]


@attrs.frozen
class Span:
    """From when and for how long, in seconds; either is `None` if it is unknown. See `Step.is_bound`."""

    start: float | None = None
    duration: float | None = None
    is_bound: bool = False

    @property
    def end(self) -> float | None:
        """When it ended; `None` if this is unknown."""
        return None if self.start is None or self.duration is None else self.start + self.duration


@attrs.frozen
class Refused:
    """A model request that brought no reply. It came before the reply of this `number`; `None` if this is unknown."""

    error: str
    span: Span = Span()
    status: int | None = None
    waited: float | None = None
    number: int | None = None
    abandoned: bool = False


@attrs.frozen
class Times:
    """When things were: turns by their number, model calls by theirs (from 1), tool calls and exchanges by index."""

    turns: Mapping[int, Span] = attrs.field(factory=dict)
    models: Mapping[int, Span] = attrs.field(factory=dict)
    calls: Mapping[int, Span] = attrs.field(factory=dict)
    exchanges: Mapping[int, Span] = attrs.field(factory=dict)
    refused: Sequence[Refused] = ()
    usages: Mapping[int, Usage] = attrs.field(factory=dict)
    measured: bool = False


def told_times(transcript: Transcript) -> Times:
    """Return the times that a transcript tells.

    It tells when the model had answered, and not when it was asked: a model call began no earlier than its turn, and
    than the end of what came before it. Times of exchanges are those of the clock on the wall, so they are unknown
    where the transcript's own time stands still: after a refusal, and between the turns of a conversation that it
    carries on. All times are from the first turn on that it does not carry.
    """
    turns = _turns(transcript)
    before = sum(transcript.turn_durations[: transcript.carried])
    calls = {
        index: Span(call.at - before if call.at is not None and call.turn in turns else None, call.duration)
        for index, call in enumerate(transcript.tool_calls)
    }
    replies = [reply - before for reply in transcript.replies]
    count = transcript.model_calls or 0
    ended = [span.end for span in calls.values() if span.end is not None]
    began = [span.start for span in turns.values() if span.start is not None]
    models: dict[int, Span] = {}
    if len(replies) == count:
        for number, reply in enumerate(replies, start=1):
            # A turn may begin in the moment in which the one before it was answered.
            earlier = [moment for moment in began if moment < reply]
            earlier += [moment for moment in (*ended, *replies[: number - 1]) if moment <= reply]
            start = max(earlier, default=reply)
            models[number] = Span(start, reply - start, is_bound=True)
    exchanges = {}
    if transcript.started is not None and not transcript.refusals and not transcript.carried:
        for index, exchange in enumerate(transcript.exchanges):
            at = None if exchange.at is None else max(0.0, exchange.at - transcript.started)
            exchanges[index] = Span(at, exchange.duration if exchange.answered_by else 0.0)
    usages = {1: transcript.usage} if count == 1 and transcript.usage != Usage() else {}
    refused = tuple(Refused(each.message, status=each.status, waited=each.waited) for each in transcript.refusals)
    return Times(turns, models, calls, exchanges, refused, usages)


def turns_of(transcript: Transcript) -> set[int]:
    """Return the numbers of the turns that a transcript has anything of, without those that it carries."""
    turns = {message.turn for message in transcript.messages} | {call.turn for call in transcript.tool_calls}
    return {turn for turn in turns if turn >= transcript.carried}


def _turns(transcript: Transcript) -> dict[int, Span]:
    """Return the turns whose times are known, one after the other; durations are those of the last turns."""
    last = max(turns_of(transcript), default=transcript.carried)
    durations = transcript.turn_durations[transcript.carried :][-last - 1 :]
    if not durations:
        known = transcript.started is not None or any(call.at is not None for call in transcript.tool_calls)
        return {last: Span(0.0)} if known else {}
    turns, start = {}, 0.0
    for turn, duration in enumerate(durations, start=last + 1 - len(durations)):
        turns[turn] = Span(start, duration)
        start += duration
    return turns
