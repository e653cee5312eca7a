"""Timelines: what happened in a trial, step by step, on one axis of time.

`timelines` makes them from a trial alone: the steps of each attempt in the order of its conversation, with what is
known of their times. What its records do not tell stays unknown; the traffic of a recording tells more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import attrs
import orjson

from keval.execute.models.reply_usage import usage_in
from keval.records.cassettes import ModelTraffic, ServerTraffic, Traffic
from keval.records.transcript import Message, ToolCall, Transcript, given_arguments
from keval.records.trial import Attempt, Failure, Trial
from keval.records.usage import Usage

LaneKind: TypeAlias = Literal["user", "agent", "model", "server"]
StepKind: TypeAlias = Literal["asked", "model", "refusal", "tool", "exchange", "said"]


@attrs.frozen
class Lane:
    """One side that took part. `name` is a server's; it is empty where it is not known which server was called."""

    kind: LaneKind
    name: str = ""


USER, AGENT, MODEL = Lane("user"), Lane("agent"), Lane("model")


@attrs.frozen
class Step:
    """One step: `sender` turned to `receiver`.

    `asked` is a message of the user and `said` one of the agent; both take no time. `model` is a model request with its
    reply, `refusal` one that was refused or broke off, `tool` a tool call, and `exchange` what else passed between
    agent and server. A call that never reached a server has the agent on both sides.

    `start` is in seconds after the attempt's first turn began, and `duration` in seconds; both are `None` where they
    are unknown. With `is_bound` only the end is known: the step began no earlier than `start`. `waited` is how long
    the agent waited after a refusal until it asked again. `model_call` is the number of a model's reply, from 1, and of
    a tool call, that of the reply which asked for it: calls with the same number are parallel. `message`, `call` and
    `exchange` are indices into the transcript's messages, tool calls and exchanges.
    """

    kind: StepKind
    sender: Lane
    receiver: Lane
    label: str
    turn: int = 0
    start: float | None = None
    duration: float | None = None
    is_bound: bool = False
    usage: Usage | None = None
    error: str | None = None
    status: int | None = None
    waited: float | None = None
    model_call: int | None = None
    message: int | None = None
    call: int | None = None
    exchange: int | None = None

    @property
    def end(self) -> float | None:
        """When it ended, in seconds on the axis; `None` where this is unknown."""
        return None if self.start is None or self.duration is None else self.start + self.duration


@attrs.frozen
class Timeline:
    """The steps of one attempt at a trial, in their order, with the `lanes` that they run between.

    `attempt` counts from 1. `began` is when its first turn began, as Unix time, and `after` the seconds since the
    trial's first attempt began. `seconds` is how long the axis is; `None` if nothing is known of times. `measured` says
    that the times of models and servers are those of a recording's traffic. Without it, the axis leaves out the
    `waited` seconds between a refusal and the next request, and nobody knows where they were.
    """

    attempt: int
    steps: tuple[Step, ...]
    lanes: tuple[Lane, ...]
    seconds: float | None = None
    began: float | None = None
    after: float | None = None
    measured: bool = False
    waited: float = 0.0
    failure: Failure | None = None

    @property
    def untimed(self) -> int:
        """How many steps have no known place on the axis."""
        return sum(step.start is None for step in self.steps)


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

    @classmethod
    def at(cls, moment: float | None) -> Span:
        """Return what takes no time."""
        return cls(moment, None if moment is None else 0.0)


@attrs.frozen
class Times:
    """When things were: turns by their number, model calls by theirs (from 1), tool calls and exchanges by index.

    `refused` has the steps of model requests that brought no reply, each with the number of the reply that it came
    before; `None` if this is unknown.
    """

    turns: Mapping[int, Span] = attrs.field(factory=dict)
    models: Mapping[int, Span] = attrs.field(factory=dict)
    calls: Mapping[int, Span] = attrs.field(factory=dict)
    exchanges: Mapping[int, Span] = attrs.field(factory=dict)
    refused: Sequence[tuple[int | None, Step]] = ()
    usages: Mapping[int, Usage] = attrs.field(factory=dict)
    measured: bool = False


_UNKNOWN = Span()


def timelines(trial: Trial, traffic: Sequence[Traffic] = ()) -> tuple[Timeline, ...]:
    """Return the timeline of each attempt at a trial; the last one is of the attempt that counts.

    `traffic` is what a recording has of all attempts. Without it, or where it has other model calls than the
    transcript, times are those that the transcript tells. Turns that a transcript carries from earlier trials are left
    out.
    """
    became: tuple[Attempt | Trial, ...] = (*trial.attempts, trial)
    first = next((each.transcript.started for each in became if each.transcript and each.transcript.started), None)
    return tuple(
        _timeline(number, each, [one for one in traffic if one.attempt == number], first)
        for number, each in enumerate(became, start=1)
    )


def _timeline(attempt: int, became: Attempt | Trial, traffic: Sequence[Traffic], first: float | None) -> Timeline:
    transcript = became.transcript or Transcript()
    times = measured_times(transcript, traffic, told_times(transcript))
    steps = _in_time(_told(transcript, times), _exchanges(transcript, times))
    used = {side for step in steps for side in (step.sender, step.receiver)}
    servers = dict.fromkeys(step.receiver for step in steps if step.kind == "tool" and step.receiver.kind == "server")
    servers |= dict.fromkeys(side for side in used if side.kind == "server")
    ends = [step.end if step.end is not None else step.start for step in steps]
    turns = [span.end for span in times.turns.values()]
    known = [moment for moment in (*ends, *turns) if moment is not None]
    began = transcript.started
    return Timeline(
        attempt=attempt,
        steps=tuple(steps),
        lanes=(*(lane for lane in (USER, AGENT, MODEL) if lane in used), *servers),
        seconds=max(known) if known else None,
        began=began,
        after=None if began is None or first is None else began - first,
        measured=times.measured,
        waited=0.0 if times.measured else sum((each.waited for each in transcript.refusals), start=0.0),
        failure=became.failure,
    )


def _told(transcript: Transcript, times: Times) -> list[Step]:
    """Return the steps in the order of the conversation, turn by turn."""
    turns = turns_of(transcript)
    last = max(turns, default=transcript.carried)
    numbers = _turn_of_replies(transcript, times, last)
    unplaced = [step for number, step in times.refused if number is None]
    steps: list[Step] = []
    for turn in sorted(turns | {*numbers.values()}):
        of_turn = [number for number, of in numbers.items() if of == turn]
        steps += _turn(turn, transcript, times, of_turn)
        # A transcript does not tell when these were: they stand before all else that the agent did.
        if unplaced and turn == min(turns, default=0) and not times.measured:
            at = next((place for place, step in enumerate(steps) if step.kind != "asked"), len(steps))
            steps[at:at] = [attrs.evolve(each, turn=turn) for each in unplaced]
    if times.measured:
        # In a recording, these are requests after which no reply came.
        steps += [attrs.evolve(each, turn=last) for each in unplaced]
    return steps


def _turn(turn: int, transcript: Transcript, times: Times, numbers: Sequence[int]) -> Iterator[Step]:
    messages = [(index, each) for index, each in enumerate(transcript.messages) if each.turn == turn]
    calls = [(index, each) for index, each in enumerate(transcript.tool_calls) if each.turn == turn]
    said = _said_with(messages, calls, numbers)
    span = times.turns.get(turn, _UNKNOWN)
    for index, message in messages:
        if message.role == "user":
            yield _step("asked", (USER, AGENT), "question", turn, Span.at(span.start), message=index)
    final = messages[-1][0] if messages and messages[-1][1].role == "assistant" else None
    for number in (*numbers, None):
        if number is not None:
            yield from (attrs.evolve(each, turn=turn) for before, each in times.refused if before == number)
            told, took = f"model call {number}", times.models.get(number, _UNKNOWN)
            usage = times.usages.get(number)
            yield _step("model", (AGENT, MODEL), told, turn, took, usage=usage, model_call=number)
        moment = times.models.get(number, _UNKNOWN).end if number is not None else None
        for index in said.get(number, ()):
            if index != final:
                yield _step("said", (AGENT, USER), "text", turn, Span.at(moment), message=index)
        for index, call in calls:
            if call.model_call == number or (number is None and call.model_call not in numbers):
                yield _call(index, call, times)
    if final is not None:
        yield _step("said", (AGENT, USER), "answer", turn, Span.at(span.end), message=final)


def _step(kind: StepKind, sides: tuple[Lane, Lane], label: str, turn: int, span: Span, **more: Any) -> Step:
    return Step(kind, *sides, label, turn, span.start, span.duration, span.is_bound, **more)


def _call(index: int, call: ToolCall, times: Times) -> Step:
    server = AGENT if call.executions == 0 else Lane("server", call.server or "")
    about = {"error": call.error, "model_call": call.model_call, "call": index}
    return _step("tool", (AGENT, server), call.name, call.turn, times.calls.get(index, _UNKNOWN), **about)


def _exchanges(transcript: Transcript, times: Times) -> Iterator[Step]:
    for index, each in enumerate(transcript.exchanges):
        server = Lane("server", each.server)
        sides = (server, AGENT) if each.sender == "server" else (AGENT, server)
        span = times.exchanges.get(index, _UNKNOWN)
        yield _step("exchange", sides, each.method, 0, span, error=each.error, exchange=index)


def _in_time(steps: list[Step], others: Iterator[Step]) -> list[Step]:
    """Put other steps where their time is; those without a time come last."""
    for step in others:
        later = (
            place
            for place, each in enumerate(steps)
            if step.start is not None and each.start is not None and each.start > step.start
        )
        at = next(later, len(steps))
        steps.insert(at, attrs.evolve(step, turn=steps[at - 1].turn if steps and at else 0))
    return steps


def _said_with(
    messages: Sequence[tuple[int, Message]], calls: Sequence[tuple[int, ToolCall]], numbers: Sequence[int]
) -> dict[int | None, list[int]]:
    """Return what the agent said by the number of the model's reply that it came with; `None` if it is unknown.

    A transcript has a message for each result, in the order in which they came: a text after them is of the reply
    that follows. A tool that the model's vendor ran, which has no time, answered within its reply.
    """
    answered = sorted((call.model_call or 0) - (call.own and call.at is None) for _, call in calls)
    found: dict[int | None, list[int]] = {}
    results = 0
    for index, message in messages:
        if message.role == "tool":
            results += 1
        elif message.role == "assistant":
            before = answered[min(results, len(answered)) - 1] if results and answered else 0
            found.setdefault(next((number for number in numbers if number > before), None), []).append(index)
    return found


def _turn_of_replies(transcript: Transcript, times: Times, last: int) -> dict[int, int]:
    """Return the turn of each of the model's replies: by its tool calls, else its time, else as a turn goes.

    A reply that asks for no tool ends its turn, as a rule.
    """
    asked_in = {call.model_call: call.turn for call in transcript.own_calls if call.model_call is not None}
    turn = min(times.turns, default=transcript.carried)
    found: dict[int, int] = {}
    for number in range(1, (transcript.model_calls or 0) + 1):
        end = times.models.get(number, _UNKNOWN).end
        timed = [
            at for at, span in times.turns.items() if end is not None and span.start is not None and span.start < end
        ]
        turn = asked_in.get(number, max(timed, default=turn))
        found[number] = turn
        if number not in asked_in and not timed:
            turn = min(turn + 1, last)
    return found


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
        exchanges = _exchange_spans(transcript, transcript.started)
    usages = {1: transcript.usage} if count == 1 and transcript.usage != Usage() else {}
    refused = tuple((None, _refusal(each.message, each.status, each.waited)) for each in transcript.refusals)
    return Times(turns, models, calls, exchanges, refused, usages)


def _refusal(error: str, status: int | None, waited: float | None, span: Span = _UNKNOWN) -> Step:
    label = "model request refused"
    return _step("refusal", (AGENT, MODEL), label, 0, span, error=error, status=status, waited=waited)


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
    models = [each for each in traffic if isinstance(each, ModelTraffic) and each.asker.role == "agent"]
    asked = [each for each in models if each.request.asks_for_reply]
    # A recording has exchanges in the order in which they ended.
    asked.sort(key=lambda each: each.began)
    replied = [each for each in asked if _is_reply(each)]
    origin = transcript.started
    if origin is None or not asked or transcript.carried or len(replied) != (transcript.model_calls or 0):
        return told
    replied.sort(key=lambda each: each.ended or 0)
    refused = tuple(_refused(asked, replied, origin))
    spans = {number: _span(each, origin) for number, each in enumerate(replied, start=1)}
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
        spans,
        calls,
        _exchange_spans(transcript, origin),
        refused,
        {number: usage for number, usage in found if usage is not None},
        measured=True,
    )


def _is_reply(traffic: ModelTraffic) -> bool:
    return traffic.error is None and traffic.status is not None and 200 <= traffic.status < 300


def _span(traffic: Traffic, origin: float) -> Span:
    return Span(None if traffic.at is None else max(0.0, traffic.at - origin), traffic.seconds)


def _refused(
    asked: Sequence[ModelTraffic], replied: Sequence[ModelTraffic], origin: float
) -> Iterator[tuple[int | None, Step]]:
    """Yield the requests that brought no reply, with how long it took until the next one was sent."""
    for position, each in enumerate(asked):
        if _is_reply(each):
            continue
        span = _span(each, origin)
        following = next((later.at for later in asked[position + 1 :] if later.at is not None), None)
        waited = None if following is None or span.end is None else max(0.0, following - origin - span.end)
        number = next((count for count, reply in enumerate(replied, start=1) if reply.began > each.began), None)
        told = f"HTTP status {each.status}" if each.error is None else each.error.message or each.error.kind
        step = _refusal(told, each.status, waited, span)
        if each.error is not None and each.error.kind == "abandoned":
            step = attrs.evolve(step, kind="model", label="model call without an end")
        yield number, step


def _on_the_wall(moment: float | None, refused: Iterable[tuple[int | None, Step]]) -> float | None:
    """Return when a moment was on the wall: an attempt's own time stands still while it waits after refusals."""
    if moment is None:
        return None
    for _, each in refused:
        if each.waited and each.start is not None and each.start <= moment:
            moment += each.waited
    return moment


def _exchange_spans(transcript: Transcript, origin: float) -> dict[int, Span]:
    return {
        index: Span(None if each.at is None else max(0.0, each.at - origin), each.duration if each.answered_by else 0.0)
        for index, each in enumerate(transcript.exchanges)
    }


def _calls(transcript: Transcript, traffic: Sequence[Traffic], origin: float) -> dict[int, Span]:
    """Return when servers ran calls, each matched with the next exchange of its tool, of its arguments if possible."""
    calls, carried = transcript.tool_calls, transcript.carried
    ran = [each for each in traffic if isinstance(each, ServerTraffic) and each.kind == "call"]
    found: dict[int, ServerTraffic] = {}
    # Calls of one tool may have run in another order: those with the same arguments are matched first.
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
