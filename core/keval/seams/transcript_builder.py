"""The transcript builder: adapters report to one while they work, and keval makes a record of what they reported."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import attrs

from keval.records.servers import CallLog, McpServer
from keval.records.transcript import Blob, Citation, Content, ContentKind, Message, Refusal, ToolCall, Transcript
from keval.records.usage import ModelUse, Usage
from keval.seams.blank_text import is_blank
from keval.seams.live_events import EmitEvent, EventKind
from keval.seams.model_text import split_reasoning
from keval.seams.request_log import RequestLog
from keval.seams.use_meter import UseMeter

_LONGEST_WRITTEN = 2_000


@attrs.define
class TranscriptBuilder:
    """Collects the transcript of one attempt at a trial.

    An adapter opens `turn` for each message of the user and reports inside it. What was reported is kept when the trial
    fails or is cancelled. `clock` returns seconds; only differences between its values are used. `emit` is called with
    the kind and data of each live event, `keep` with each blob, and `keep_request` with the first model request; each
    may be `None`. `now` returns Unix time. `meter` counts replies and calls, if trials have limits.

    An adapter reports what it knows of its agent. What keval itself sees of the model requests is in `requests`.
    """

    _clock: Callable[[], float] = time.perf_counter
    _emit: EmitEvent | None = None
    _keep: Callable[[Blob], object] | None = None
    _keep_request: Callable[[Blob], object] | None = None
    _now: Callable[[], float] = time.time
    _meter: UseMeter | None = None
    _messages: list[Message] = attrs.field(factory=list, init=False)
    _calls: list[ToolCall] = attrs.field(factory=list, init=False)
    _started: dict[int, float | None] = attrs.field(factory=dict, init=False)
    _told: ModelUse = attrs.field(factory=ModelUse, init=False)
    _durations: list[float] = attrs.field(factory=list, init=False)
    _tools: tuple[str, ...] | None = attrs.field(default=None, init=False)
    _turn: int = attrs.field(default=-1, init=False)
    _wall: float | None = attrs.field(default=None, init=False)
    _carried: int = attrs.field(default=0, init=False)
    _truncated: bool = attrs.field(default=False, init=False)
    _logs: list[tuple[CallLog, int]] | None = attrs.field(default=None, init=False)
    _all_tapped: bool = attrs.field(default=True, init=False)
    _writes: bool = attrs.field(default=False, init=False)
    written: str = attrs.field(default="", init=False)
    requests: RequestLog = attrs.field(init=False)

    @requests.default
    def _requests(self) -> RequestLog:
        return RequestLog(self._clock, self._emit, self._meter)

    @contextmanager
    def turn(self, text: str) -> Iterator[None]:
        """Time one turn of the conversation, which begins with the user's `text`.

        Raises:
            TrialError: of kind `no_answer`; the turn ended, and after its last tool call the agent said nothing. An
                adapter that knows why raises that itself, with `keval.plugin.FinishReason`. Where a proxy saw the
                agent's last model request fail, that is raised, whatever a program made of it.
        """
        self._turn += 1
        self._truncated, self.requests.finish = False, None
        self._messages.append(Message("user", text, self._turn))
        self._tell("turn_started", turn=self._turn, text=text)
        began = self._clock()
        if self.requests.began is None:
            self.requests.began, self._wall = began, self._now()
        try:
            yield
        except Exception as error:
            if reason := self.requests.reason_for(error):
                raise reason from error
            raise
        finally:
            self._durations.append(self._clock() - began)
            if self._logs:
                self._take_tapped()
        # A program may answer something all the same after its model failed: that is no answer of the model.
        if self.requests.fault is not None:
            raise self.requests.fault
        answer = itertools.takewhile(lambda message: message.role == "assistant", reversed(self._messages))
        if all(is_blank(message.text) for message in answer):
            raise self.requests.no_answer()

    def said(
        self, text: str, *, truncated: bool = False, reasoning: str = "", citations: Iterable[Citation] = ()
    ) -> None:
        """Report that the agent wrote `text`; the last text of a turn is its answer.

        `reasoning` is what the model told of its thoughts before it. What the text itself begins with of that is kept
        apart from the answer, too; see `split_reasoning`. A report without text and reasoning is ignored. `truncated`
        says that a limit of length ended the text before the model did.
        """
        if text or reasoning:
            finish = self.requests.finish
            self._truncated = truncated or (finish is not None and finish.truncates)
            if self._logs and not self._writes:
                self._messages += self._take_tapped()
            self._writes = False
            tagged, answer = split_reasoning(text)
            thought = "\n\n".join(filter(None, (reasoning, tagged)))
            self._messages.append(Message("assistant", answer, max(self._turn, 0), thought, tuple(citations)))
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
        self,
        name: str,
        arguments: Mapping[str, Any],
        id: str | None = None,
        *,
        own: bool = False,
        ago: float | None = 0,
    ) -> None:
        """Report that the model's latest reply asked for a tool call; report the reply with `model_called` first.

        `own` says that the tool is the agent's own, and no server of the context has it. `ago` is how many seconds ago
        the call began, if that is not now; `None` if nobody knows, as of a tool that the model's vendor ran.
        """
        self._started[len(self._calls)] = None if ago is None else self._clock() - ago
        turn, elapsed = max(self._turn, 0), self.requests.elapsed()
        at = None if elapsed is None or ago is None else max(0.0, elapsed - ago)
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
                began = self._started.pop(index)
                took = None if began is None else self._clock() - began
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
        self.requests.fault = None
        spent = self._told.add(usage, self.requests.elapsed())
        self._tell("model_called", usage=attrs.asdict(spent, recurse=False))
        if self._meter is not None:
            self._meter.replied(spent)

    def model_used(self, usage: Usage) -> None:
        """Report tokens of the latest model call that were not yet known when it was reported."""
        self._told.usage = (self._told.usage or Usage()) + usage

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
        self.requests.refused(refusal)

    def requested(self, body: bytes) -> None:
        """Report a model request as it is sent, as JSON; the first of the trial counts: what the model saw.

        Raises:
            TrialError: of kind `limit`; the trial may ask no model any more.
        """
        if self._meter is not None:
            self._meter.asks(counted=False)
        self.requests.requested(body)

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
        # Model calls are numbered anew, and these numbers would mean others.
        self._calls = [attrs.evolve(call, model_call=None) for call in self._calls]
        self._told = ModelUse()
        self.requests.begin_again()

    def transcript(self) -> Transcript:
        """Return what was reported so far, and hand the first model request over."""
        request = None if self.requests.first is None else Blob.of(self.requests.first, "application/json")
        if request is not None and self._keep_request is not None:
            self._keep_request(request)
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
            refusals=tuple(self.requests.refusals),
            request=request.sha256 if request else None,
            started=self._wall,
            replies=tuple(self._told.replies),
            unlisted_calls=0 if self._all_tapped else None,
            carried=self._carried,
            truncated=self._truncated,
            tool_calls_by="agent" if self._logs is None else "tap",
            texts=tuple(text for log in self.requests.text_logs for text in log.texts()),
        )
        return self.requests.settled(told)

    def _take_tapped(self) -> list[Message]:
        """Take over the calls that taps have recorded meanwhile, which are left to them; returns their results."""
        taken: list[ToolCall] = []
        logs = self._logs or []
        for index, (log, seen) in enumerate(logs):
            for call in log.calls[seen:]:
                # The tap notes Unix time, which may have been set back since the turn began.
                at = None if call.at is None or self._wall is None else max(0.0, call.at - self._wall)
                # The model call that asked for it is the last one that was answered by then.
                before = 0 if at is None else sum(reply <= at for reply in self.requests.use.replies)
                taken.append(attrs.evolve(call, turn=max(self._turn, 0), model_call=before or None, at=at))
            logs[index] = log, len(log.calls)
        taken.sort(key=lambda call: call.at or 0.0)
        self._calls += taken
        return [Message("tool", call.result or call.error or "", call.turn) for call in taken]

    def _tell(self, kind: EventKind, **data: Any) -> None:
        if self._emit is not None:
            self._emit(kind, data)


# An event hook of httpx is given the request alone, and one client serves all trials.
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
