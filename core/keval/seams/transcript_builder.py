"""The transcript builder: adapters report to one while they work, and keval makes a record of what they reported."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import attrs

from keval.errors import ModelError, TrialError
from keval.records.end_state import GivenText
from keval.records.servers import CallLog, McpServer
from keval.records.transcript import (
    Blob,
    Content,
    ContentKind,
    DeniedRequest,
    Message,
    ModelUsage,
    Refusal,
    ToolCall,
    Transcript,
)
from keval.records.usage import ModelUse, Usage
from keval.seams.blank_text import is_blank
from keval.seams.finish_reason import SILENCE, FinishReason
from keval.seams.live_events import EmitEvent, EventKind
from keval.seams.model_text import split_reasoning
from keval.seams.use_meter import UseMeter

_LONGEST = 10_000
"""Characters that are kept of a refusal."""
_LONGEST_WRITTEN = 2_000
_MOST_DENIED = 20
"""Kinds of denied requests that a transcript lists; any others are counted together."""
_LONGEST_DENIED = 200
_OTHERS_DENIED = ("others", "not listed, as there are many")


class TextLog(Protocol):
    """Follows the texts that a context gave in one attempt, through the model requests of that."""

    def saw(self, request: bytes, number: int, at: float | None) -> None:
        """Be told a model request by its number, from 1; `at` is in seconds after the first turn began."""
        ...

    def texts(self) -> tuple[GivenText, ...]:
        """Return the texts, and what became of each."""
        ...


@attrs.define
class TranscriptBuilder:
    """Collects the transcript of one attempt at a trial.

    An adapter opens `turn` for each message of the user and reports inside it. What was reported is kept when the trial
    fails or is cancelled. `clock` returns seconds; only differences between its values are used. `emit` is called with
    the kind and data of each live event, `keep` with each blob, and `keep_request` with the first model request; each
    may be `None`. `now` returns Unix time. `meter` counts replies and calls, if trials have limits.
    """

    _clock: Callable[[], float] = time.perf_counter
    _emit: EmitEvent | None = None
    _keep: Callable[[Blob], object] | None = None
    _keep_request: Callable[[Blob], object] | None = None
    _now: Callable[[], float] = time.time
    _meter: UseMeter | None = None
    _messages: list[Message] = attrs.field(factory=list, init=False)
    _calls: list[ToolCall] = attrs.field(factory=list, init=False)
    _started: dict[int, float] = attrs.field(factory=dict, init=False)
    _told: ModelUse = attrs.field(factory=ModelUse, init=False)
    _seen: ModelUse = attrs.field(factory=ModelUse, init=False)
    _durations: list[float] = attrs.field(factory=list, init=False)
    _tools: tuple[str, ...] | None = attrs.field(default=None, init=False)
    _refusals: list[Refusal] = attrs.field(factory=list, init=False)
    _turn: int = attrs.field(default=-1, init=False)
    _began: float | None = attrs.field(default=None, init=False)
    _wall: float | None = attrs.field(default=None, init=False)
    _request: Blob | None = attrs.field(default=None, init=False)
    _is_relayed: bool = attrs.field(default=False, init=False)
    _carried: int = attrs.field(default=0, init=False)
    _truncated: bool = attrs.field(default=False, init=False)
    _denied: dict[tuple[str, str], int] = attrs.field(factory=dict, init=False)
    _denial: TrialError | None = attrs.field(default=None, init=False)
    _model_fault: TrialError | None = attrs.field(default=None, init=False)
    _finish: FinishReason | None = attrs.field(default=None, init=False)
    _passed: int = attrs.field(default=0, init=False)
    _logs: list[tuple[CallLog, int]] | None = attrs.field(default=None, init=False)
    _all_tapped: bool = attrs.field(default=True, init=False)
    _writes: bool = attrs.field(default=False, init=False)
    _requests_seen: int = attrs.field(default=0, init=False)
    text_logs: list[TextLog] = attrs.field(factory=list, init=False)
    written: str = attrs.field(default="", init=False)

    @contextmanager
    def turn(self, text: str) -> Iterator[None]:
        """Time one turn of the conversation, which begins with the user's `text`.

        Raises:
            TrialError: of kind `no_answer`; the turn ended, and after its last tool call the agent said nothing. An
                adapter that knows why raises that itself, with `keval.plugin.FinishReason`. Where a proxy saw the
                agent's last model request fail, that is raised, whatever a program made of it.
        """
        self._turn += 1
        self._truncated, self._finish = False, None
        self._messages.append(Message("user", text, self._turn))
        self._tell("turn_started", turn=self._turn, text=text)
        began = self._clock()
        if self._began is None:
            self._began, self._wall = began, self._now()
        try:
            yield
        except Exception as error:
            fault = self._model_fault or self._refusal or (self._finish and self._finish.no_answer())
            known = isinstance(error, TrialError) and error.stage != "agent"
            if self._model_fault and not isinstance(self._model_fault, ModelError):
                known = False  # an SDK makes a refusal, or a broken connection, of what keval did not read on
            if fault and not known:
                raise fault from error
            raise
        finally:
            self._durations.append(self._clock() - began)
            if self._logs:
                self._take_tapped()
        if self._model_fault is not None:
            raise self._model_fault
        answer = itertools.takewhile(lambda message: message.role == "assistant", reversed(self._messages))
        if all(is_blank(message.text) for message in answer):
            raise self._refusal or self._silence.no_answer()

    def said(self, text: str, *, truncated: bool = False) -> None:
        """Report that the agent wrote `text`; the last text of a turn is its answer. Empty text is ignored.

        Reasoning that the text begins with is kept apart from the answer; see `split_reasoning`. `truncated` says that
        a limit of length ended the text before the model did.
        """
        if text:
            self._truncated = truncated or (self._finish is not None and self._finish.truncates)
            if self._logs and not self._writes:
                self._messages += self._take_tapped()
            self._writes = False
            reasoning, answer = split_reasoning(text)
            self._messages.append(Message("assistant", answer, max(self._turn, 0), reasoning))
            self._tell("said", turn=max(self._turn, 0), text=answer)

    def writes(self) -> None:
        """Report that the agent begins to write a text: calls that a tap records before it is `said` come after it."""
        self._messages += self._take_tapped()
        self._writes = True

    def streamed(self, text: str) -> None:
        """Report a piece of text as the agent writes it, if `Context.streams`; the whole is reported with `said`."""
        if text:
            self._tell("text_streamed", turn=max(self._turn, 0), text=text)

    def called(
        self, name: str, arguments: Mapping[str, Any], id: str | None = None, *, own: bool = False, ago: float = 0.0
    ) -> None:
        """Report that the model's latest reply asked for a tool call; report the reply with `model_called` first.

        `own` says that the tool is the agent's own, and no server of the context has it. `ago` is how many seconds ago
        the call began, if that is not now.
        """
        self._started[len(self._calls)] = self._clock() - ago
        turn, elapsed = max(self._turn, 0), self._elapsed()
        at = None if elapsed is None else max(0.0, elapsed - ago)
        call = ToolCall(name, arguments, id=id, turn=turn, model_call=self._told.calls or None, own=own, at=at)
        self._calls.append(call)
        self._tell("tool_called", name=name, arguments=arguments, id=id)
        if self._meter is not None:
            self._meter.called(own=own)

    def returned(
        self,
        result: str | None = None,
        *,
        error: str | None = None,
        id: str | None = None,
        name: str | None = None,
        sent: bool = True,
        content: Iterable[Content] = (),
        dropped: Iterable[ContentKind] = (),
    ) -> None:
        """Report the result or error of a tool call. The call is found by `id`, else by `name`, oldest first.

        With `sent=False` the framework answered the call itself, and no server executed it. `content` is what the
        result holds beside text, for servers that no tap watches, and `dropped` has the kind of each piece of it that
        could not be passed to the model.
        """
        for index, call in enumerate(self._calls):
            if index in self._started and (call.id == id if id is not None else name in (None, call.name)):
                took = self._clock() - self._started.pop(index)
                executions = None if sent else 0
                done = attrs.evolve(
                    call,
                    result=result,
                    error=error,
                    duration=took,
                    executions=executions,
                    content=tuple(content),
                    dropped=tuple(dropped),
                )
                self._calls[index] = done
                self._messages.append(Message("tool", (error if result is None else result) or "", call.turn))
                self._tell("tool_returned", name=call.name, id=call.id, result=result, error=error, duration=took)
                return
        raise ValueError(f"no open tool call has id {id!r} or name {name!r}")

    def model_called(self, usage: Usage | None = None) -> None:
        """Report that the model answered one request; without `usage`, the trial's usage is unknown."""
        self._model_fault = None
        spent = self._told.add(usage, self._elapsed())
        self._tell("model_called", usage=attrs.asdict(spent, recurse=False))
        if self._meter is not None:
            self._meter.replied(spent)

    def metered(self, usage: Usage, finish: FinishReason | None = None, model: str = "") -> None:
        """Count a model call that the proxy saw answered; as many that the adapter reports replace it.

        `finish` is what ended the reply before its time: the last one says whether the answer is truncated, or why
        there is none. `model` is `provider/name`.
        """
        self._model_fault, self._finish = None, finish
        spent = self._seen.add(usage, self._elapsed() or 0.0, model)
        if self._meter is not None:
            self._meter.replied(spent, model, to_proxy=True)

    def passed(self, tokens: int) -> None:
        """Be told about how many tokens a request and its reply had, before the reply is reported."""
        self._passed += tokens
        if self._meter is not None:
            self._meter.passed(tokens)

    def denied(self, request: str, reason: str) -> None:
        """Note a request of the agent's program that the proxy did not pass on.

        If there is no answer, and none of the model's, it says why.
        """
        what = (request[:_LONGEST_DENIED], reason)
        full = what not in self._denied and len(self._denied) >= _MOST_DENIED
        listed = _OTHERS_DENIED if full else what
        self._denied[listed] = self._denied.get(listed, 0) + 1
        self._denial = TrialError(f"{what[0]} was refused: {reason}", stage="model", kind="denied")

    def model_failed(self, error: TrialError) -> None:
        """Note that the proxy saw a model request fail for good; the next one that is answered makes up for it."""
        self._model_fault = error

    def leave_calls_to_tap(self, servers: Iterable[McpServer]) -> None:
        """Say that the agent does not report its calls to these servers, so that those that their taps record count.

        Call it before the first turn. Calls of a server without a tap are unknown.
        """
        logs = [server.log for server in servers]
        self._logs = [(log, 0) for log in logs if log is not None]
        self._all_tapped = None not in logs

    def wrote(self, text: str) -> None:
        """Report what a program wrote beside its answer, by which a timeout is explained; its end is kept."""
        self.written = text.strip()[-_LONGEST_WRITTEN:]

    def refused(self, refusal: Refusal) -> None:
        """Report that a model request was refused and is sent again."""
        kept = attrs.evolve(refusal, message=refusal.message[:_LONGEST])
        self._refusals.append(kept)
        self._tell("model_refused", **attrs.asdict(kept))

    def requested(self, body: bytes) -> None:
        """Report a model request as it is sent, as JSON; the first of the trial counts: what the model saw.

        Raises:
            TrialError: of kind `limit`; the trial may ask no model any more.
        """
        if self._meter is not None:
            self._meter.asks(counted=False)
        if self._request is None:
            self._request = Blob.of(body, "application/json")
        if not self._is_relayed:
            self._show(body)

    def relayed(self, body: bytes) -> None:
        """Report a model request as keval passes it on, past all middleware; the first replaces what was reported."""
        if not self._is_relayed:
            self._request, self._is_relayed = Blob.of(body, "application/json"), True
            self._requests_seen = 0  # the adapter may have told of this one
        self._show(body)

    def _show(self, body: bytes) -> None:
        self._requests_seen += 1
        for log in self.text_logs:
            log.saw(body, self._requests_seen, self._elapsed())

    def offered(self, tools: Iterable[str]) -> None:
        """Report the names of the tools that a model request offers; the latest report counts."""
        self._tools = tuple(sorted(tools))

    def attach(self, content: bytes, media_type: str) -> str:
        """Keep content in the run's `blobs/` and return its SHA-256, by which records refer to it."""
        blob = Blob.of(content, media_type)
        if self._keep is not None:
            self._keep(blob)
        return blob.sha256

    def carry(self) -> None:
        """Begin another trial of the same conversation: from now on, tokens, model calls and time are counted anew."""
        self._carried = self._turn + 1
        self._calls = [attrs.evolve(call, model_call=None) for call in self._calls]
        self._told, self._seen, self._passed = ModelUse(), ModelUse(), 0
        self._request, self._is_relayed = None, False
        self._denied, self._denial, self._refusals = {}, None, []

    def transcript(self) -> Transcript:
        """Return what was reported so far, and hand the first model request over."""
        if self._request is not None and self._keep_request is not None:
            self._keep_request(self._request)
        if self._logs:
            self._take_tapped()
        told = Transcript(
            messages=tuple(self._messages),
            tool_calls=tuple(self._calls),
            usage=self._told.usage or Usage(),
            model_calls=self._told.calls or None,
            duration=sum(self._durations[self._carried :]) if len(self._durations) > self._carried else None,
            turn_durations=tuple(self._durations),
            tools=self._tools,
            refusals=tuple(self._refusals),
            request=self._request.sha256 if self._request else None,
            started=self._wall,
            replies=tuple(self._told.replies),
            unlisted_calls=0 if self._all_tapped else None,
            carried=self._carried,
            truncated=self._truncated,
            tool_calls_by="agent" if self._logs is None else "tap",
            texts=tuple(text for log in self.text_logs for text in log.texts()),
        )
        return self.settled(told)

    def settled(self, transcript: Transcript) -> Transcript:
        """Return an agent's transcript with what is known beyond it.

        The proxy knows denied requests, and model calls that the agent does not tell: of programs that it started, and
        after its last turn. Where nobody tells the tokens, they are estimated.
        """
        settled = self._completed(transcript)
        usage = settled.usage.estimated(self._passed)
        return settled if usage is settled.usage else attrs.evolve(settled, usage=usage)

    def _completed(self, transcript: Transcript) -> Transcript:
        if self._denied:
            listed = tuple(DeniedRequest(*what, count) for what, count in self._denied.items())
            transcript = attrs.evolve(transcript, denied=listed)
        seen = self._seen
        if seen.usage is None:
            return transcript
        if seen.calls <= (transcript.model_calls or 0):
            # A vendor's SDK may have made a count of what is none.
            return attrs.evolve(transcript, usage=seen.usage) if seen.usage.impossible else transcript
        by_model = tuple(itertools.starmap(ModelUsage, seen.by_model.items())) if len(seen.by_model) > 1 else ()
        return attrs.evolve(
            transcript,
            usage=seen.usage,
            model_calls=seen.calls,
            replies=tuple(seen.replies),
            model_calls_by="proxy",
            usage_by_model=by_model,
        )

    @property
    def _refusal(self) -> TrialError | None:
        return None if self._seen.calls else self._denial

    @property
    def _silence(self) -> FinishReason:
        return self._finish or SILENCE

    def _take_tapped(self) -> list[Message]:
        """Take over the calls that taps have recorded meanwhile, which are left to them; returns their results."""
        taken: list[ToolCall] = []
        logs = self._logs or []
        for index, (log, seen) in enumerate(logs):
            for call in log.calls[seen:]:
                at = None if call.at is None or self._wall is None else max(0.0, call.at - self._wall)
                before = 0 if at is None else sum(reply <= at for reply in self._seen.replies)
                taken.append(attrs.evolve(call, turn=max(self._turn, 0), model_call=before or None, at=at))
            logs[index] = log, len(log.calls)
        taken.sort(key=lambda call: call.at or 0.0)
        self._calls += taken
        return [Message("tool", call.result or call.error or "", call.turn) for call in taken]

    def _elapsed(self) -> float | None:
        """Return the seconds since the first turn began; `None` before one did."""
        return None if self._began is None else self._clock() - self._began

    def _tell(self, kind: EventKind, **data: Any) -> None:
        if self._emit is not None:
            self._emit(kind, data)


_builder: ContextVar[TranscriptBuilder | None] = ContextVar("keval_recorder", default=None)


class _Request(Protocol):
    async def aread(self) -> bytes: ...


@contextmanager
def reporting_requests(builder: TranscriptBuilder) -> Iterator[None]:
    """Let `report_request` report what is sent in the block, and by tasks started there, to `builder`."""
    token = _builder.set(builder)
    try:
        yield
    finally:
        _builder.reset(token)


async def report_request(request: _Request) -> None:
    """Report a model request to the builder of the trial that sends it; an event hook for a client of httpx."""
    if (builder := _builder.get()) is not None:
        builder.requested(await request.aread())
