"""Timelines: the steps of each attempt in the order of its conversation, with what is known of their times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import attrs

from keval.records.cassettes import Traffic
from keval.records.transcript import Message, ToolCall, Transcript
from keval.records.trial import Attempt, Failure, Trial
from keval.records.usage import Usage
from keval_analysis.timeline.times import Refused, Span, Times, measured_times, told_times, turns_of

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
    unplaced = [each for each in times.refused if each.number is None]
    steps: list[Step] = []
    for turn in sorted(turns | {*numbers.values()}):
        of_turn = [number for number, of in numbers.items() if of == turn]
        steps += _turn(turn, transcript, times, of_turn)
        if unplaced and turn == min(turns, default=0) and not times.measured:
            at = next((place for place, step in enumerate(steps) if step.kind != "asked"), len(steps))
            steps[at:at] = [_refusal(each, turn) for each in unplaced]
    if times.measured:
        steps += [_refusal(each, last) for each in unplaced]
    return steps


def _turn(turn: int, transcript: Transcript, times: Times, numbers: Sequence[int]) -> Iterator[Step]:
    messages = [(index, each) for index, each in enumerate(transcript.messages) if each.turn == turn]
    calls = [(index, each) for index, each in enumerate(transcript.tool_calls) if each.turn == turn]
    said = _said_with(messages, calls, numbers)
    span = times.turns.get(turn, _UNKNOWN)
    for index, message in messages:
        if message.role == "user":
            yield Step("asked", USER, AGENT, "question", turn, span.start, _instant(span.start), message=index)
    final = messages[-1][0] if messages and messages[-1][1].role == "assistant" else None
    for number in (*numbers, None):
        if number is not None:
            yield from (_refusal(each, turn) for each in times.refused if each.number == number)
            yield _reply(number, turn, times)
        moment = times.models.get(number, _UNKNOWN).end if number is not None else None
        for index in said.get(number, ()):
            if index != final:
                yield _message(index, turn, moment, "text")
        for index, call in calls:
            if call.model_call == number or (number is None and call.model_call not in numbers):
                yield _call(index, call, times)
    if final is not None:
        yield _message(final, turn, span.end, "answer")


def _reply(number: int, turn: int, times: Times) -> Step:
    told = Step("model", AGENT, MODEL, f"model call {number}", turn, usage=times.usages.get(number), model_call=number)
    return _at(told, times.models.get(number, _UNKNOWN))


def _refusal(each: Refused, turn: int) -> Step:
    kind: StepKind = "model" if each.abandoned else "refusal"
    label = "model call without an end" if each.abandoned else "model request refused"
    told = Step(kind, AGENT, MODEL, label, turn, error=each.error, status=each.status, waited=each.waited)
    return _at(told, each.span)


def _message(index: int, turn: int, moment: float | None, label: str) -> Step:
    return Step("said", AGENT, USER, label, turn, moment, _instant(moment), message=index)


def _call(index: int, call: ToolCall, times: Times) -> Step:
    server = AGENT if call.executions == 0 else Lane("server", call.server or "")
    told = Step("tool", AGENT, server, call.name, call.turn, error=call.error, model_call=call.model_call, call=index)
    return _at(told, times.calls.get(index, _UNKNOWN))


def _at(step: Step, span: Span) -> Step:
    return attrs.evolve(step, start=span.start, duration=span.duration, is_bound=span.is_bound)


def _instant(moment: float | None) -> float | None:
    return None if moment is None else 0.0


def _exchanges(transcript: Transcript, times: Times) -> Iterator[Step]:
    for index, each in enumerate(transcript.exchanges):
        server = Lane("server", each.server)
        sides = (server, AGENT) if each.sender == "server" else (AGENT, server)
        told = Step("exchange", *sides, each.method, error=each.error, exchange=index)
        yield _at(told, times.exchanges.get(index, _UNKNOWN))


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
    that follows.
    """
    answered = sorted(call.model_call or 0 for _, call in calls)
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
