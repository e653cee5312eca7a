"""When the turns, model calls and tool calls of an attempt were: from its transcript, or measured by a recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import orjson

from keval.execute.models.reply_usage import usage_in
from keval.records.cassettes import ModelTraffic, ServerTraffic, Traffic
from keval.records.transcript import ToolCall, Transcript, given_arguments
from keval.records.usage import Usage


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
    exchanges: dict[int, Span] = {}
    if transcript.started is not None and not transcript.refusals and not transcript.carried:
        exchanges = _exchanges(transcript, transcript.started)
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


def tokens_of(traffic: ModelTraffic) -> Usage | None:
    """Return the tokens that a reply says it took; `None` if it does not say."""
    return usage_in(traffic.request.wire, _bodies(traffic))


def _bodies(traffic: ModelTraffic) -> Iterator[Any]:
    """Yield the JSON values of a body: the one that it is, the items of a list, or the events of a stream."""
    body = b"".join(traffic.chunks)
    streamed = traffic.headers.get("content-type", "").startswith("text/event-stream")
    lines = body.splitlines() if streamed else [body]
    for line in lines:
        if streamed and not line.startswith(b"data:"):
            continue
        try:
            value = orjson.loads(line.removeprefix(b"data:"))
        except orjson.JSONDecodeError:
            continue  # such as the `[DONE]` of a stream
        yield from value if isinstance(value, list) else [value]


def measured_times(transcript: Transcript, traffic: Sequence[Traffic], told: Times) -> Times:
    """Return times that the traffic of the attempt makes finer; those that the transcript tells, if it cannot.

    It cannot where it has other model calls than the transcript, as middleware may have answered some of them, and
    where the transcript carries earlier turns.
    """
    asked = [each for each in traffic if isinstance(each, ModelTraffic) and each.request.asks_for_reply]
    asked.sort(key=lambda each: each.began)
    replied = [each for each in asked if _is_reply(each)]
    origin = transcript.started
    if origin is None or not asked or transcript.carried or len(replied) != (transcript.model_calls or 0):
        return told
    replied.sort(key=lambda each: each.ended or 0)
    refused = tuple(_refused(asked, replied, origin))
    models = {number: _span(each, origin) for number, each in enumerate(replied, start=1)}
    found = ((number, tokens_of(each)) for number, each in enumerate(replied, start=1))
    calls = {
        index: Span(_on_the_wall(span.start, refused), span.duration) for index, span in told.calls.items()
    } | _calls(transcript, traffic, origin)
    turns: dict[int, Span] = {}
    for turn, span in told.turns.items():
        start, end = _on_the_wall(span.start, refused), _on_the_wall(span.end, refused)
        turns[turn] = Span(start, None if start is None or end is None else end - start)
    return Times(
        turns,
        models,
        calls,
        _exchanges(transcript, origin),
        refused,
        {number: usage for number, usage in found if usage is not None},
        measured=True,
    )


def _is_reply(traffic: ModelTraffic) -> bool:
    return traffic.error is None and traffic.status is not None and 200 <= traffic.status < 300


def _span(traffic: Traffic, origin: float) -> Span:
    return Span(None if traffic.at is None else max(0.0, traffic.at - origin), traffic.seconds)


def _refused(asked: Sequence[ModelTraffic], replied: Sequence[ModelTraffic], origin: float) -> Iterator[Refused]:
    """Yield the requests that brought no reply, with how long it took until the next one was sent."""
    for position, each in enumerate(asked):
        if _is_reply(each):
            continue
        span = _span(each, origin)
        following = next((later.at for later in asked[position + 1 :] if later.at is not None), None)
        waited = None if following is None or span.end is None else max(0.0, following - origin - span.end)
        number = next((count for count, reply in enumerate(replied, start=1) if reply.began > each.began), None)
        abandoned = each.error is not None and each.error.kind == "abandoned"
        told = f"HTTP status {each.status}" if each.error is None else each.error.message or each.error.kind
        yield Refused(told, span, each.status, waited, number, abandoned)


def _on_the_wall(moment: float | None, refused: Sequence[Refused]) -> float | None:
    """Return when a moment was on the wall: an attempt's own time stands still while it waits after refusals."""
    if moment is None:
        return None
    for each in refused:
        if each.waited and each.span.start is not None and each.span.start <= moment:
            moment += each.waited
    return moment


def _exchanges(transcript: Transcript, origin: float) -> dict[int, Span]:
    return {
        index: Span(None if each.at is None else max(0.0, each.at - origin), each.duration if each.answered_by else 0.0)
        for index, each in enumerate(transcript.exchanges)
    }


def _calls(transcript: Transcript, traffic: Sequence[Traffic], origin: float) -> dict[int, Span]:
    """Return when servers ran calls, each matched with the next exchange of its tool, of its arguments if possible."""
    calls, carried = transcript.tool_calls, transcript.carried
    ran = [each for each in traffic if isinstance(each, ServerTraffic) and each.kind == "call"]
    found: dict[int, ServerTraffic] = {}
    for strictly in (True, False):
        for index, call in enumerate(calls):
            if index in found or call.executions == 0 or call.turn < carried:
                continue
            if (run := next((each for each in ran if _is_of(call, each, strictly)), None)) is not None:
                found[index] = run
                ran.remove(run)
    return {index: _span(run, origin) for index, run in found.items()}


def _is_of(call: ToolCall, traffic: ServerTraffic, strictly: bool) -> bool:
    params = traffic.params
    if params.get("name") != (call.tool or call.name) or call.server not in (None, traffic.server):
        return False
    given = params.get("arguments")
    return not strictly or given_arguments(call.arguments) == given_arguments(
        given if isinstance(given, Mapping) else {}
    )
