"""Times as a recording measured them: every request to a model and every call of a server, on the clock of the wall."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keval.records import ToolCall, Transcript
from keval.tapes import ModelTraffic, ServerTraffic, Traffic
from keval.timeline.times import Refused, Span, Times
from keval.timeline.tokens import tokens_of

__all__ = ["measured_times"]


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
    exchanges = {
        index: Span(None if each.at is None else max(0.0, each.at - origin), each.duration if each.answered_by else 0.0)
        for index, each in enumerate(transcript.exchanges)
    }
    return Times(
        {turn: _turn_on_the_wall(span, refused) for turn, span in told.turns.items()},
        models,
        calls,
        exchanges,
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
        yield Refused(_told(each), span, each.status, waited, number, abandoned)


def _told(traffic: ModelTraffic) -> str:
    if traffic.error is not None:
        return traffic.error.message or traffic.error.kind
    return f"HTTP status {traffic.status}"


def _on_the_wall(moment: float | None, refused: Sequence[Refused]) -> float | None:
    """Return when a moment was on the wall: an attempt's own time stands still while it waits after refusals."""
    if moment is None:
        return None
    for each in refused:
        if each.waited and each.span.start is not None and each.span.start <= moment:
            moment += each.waited
    return moment


def _turn_on_the_wall(span: Span, refused: Sequence[Refused]) -> Span:
    start, end = _on_the_wall(span.start, refused), _on_the_wall(span.end, refused)
    return Span(start, None if start is None or end is None else end - start)


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
    return not strictly or _given(call.arguments) == _given(given if isinstance(given, Mapping) else {})


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    # Frameworks differ in whether they send an argument that the model left null.
    return {name: value for name, value in arguments.items() if value is not None}
