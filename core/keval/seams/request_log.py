"""The request log: what keval sees of the model requests of an attempt, beside what an adapter reports of them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Protocol

import attrs

from keval.errors import ModelError, TrialError
from keval.records.end_state import GivenText
from keval.records.transcript import DeniedRequest, ModelUsage, Refusal, Transcript
from keval.records.usage import ModelUse, Usage
from keval.seams.finish_reason import SILENCE, FinishReason
from keval.seams.live_events import EmitEvent
from keval.seams.use_meter import UseMeter

_LONGEST = 10_000
"""Characters that are kept of a refusal."""
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
class RequestLog:
    """Collects what is seen of the model requests of one attempt: by the gate that passes them on, and by a proxy.

    `clock` returns seconds, and `began` is its value when the first turn began. `emit` takes live events, and `meter`
    counts replies, if trials have limits. `first` is the first request. `refusals` are requests that were sent again,
    `tokens` about how many all requests and replies had, and `use` what a proxy counted. `finish` is what ended the
    last reply of a turn before its time, and `fault` why the last request was not answered.
    """

    _clock: Callable[[], float] = time.perf_counter
    _emit: EmitEvent | None = None
    _meter: UseMeter | None = None
    began: float | None = attrs.field(default=None, init=False)
    first: bytes | None = attrs.field(default=None, init=False)
    refusals: list[Refusal] = attrs.field(factory=list, init=False)
    tokens: int = attrs.field(default=0, init=False)
    use: ModelUse = attrs.field(factory=ModelUse, init=False)
    finish: FinishReason | None = attrs.field(default=None, init=False)
    fault: TrialError | None = attrs.field(default=None, init=False)
    text_logs: list[TextLog] = attrs.field(factory=list, init=False)
    costs: list[float | None] = attrs.field(factory=list, init=False)
    _is_relayed: bool = attrs.field(default=False, init=False)
    _shown: int = attrs.field(default=0, init=False)
    _denied: dict[tuple[str, str], int] = attrs.field(factory=dict, init=False)
    _denial: TrialError | None = attrs.field(default=None, init=False)

    def elapsed(self) -> float | None:
        """Return the seconds since the first turn began; `None` before one did."""
        return None if self.began is None else self._clock() - self.began

    def requested(self, body: bytes) -> None:
        """Be told by the adapter of a request as it is sent; the first of the trial counts: what the model saw."""
        if self.first is None:
            self.first = body
        if not self._is_relayed:
            self._show(body)

    def relayed(self, body: bytes) -> None:
        """Be told of a request as keval passes it on, past all middleware; the first replaces what was reported."""
        if not self._is_relayed:
            self.first, self._is_relayed = body, True
            self._shown = 0  # the adapter may have told of this one
        self._show(body)

    def _show(self, body: bytes) -> None:
        self._shown += 1
        for log in self.text_logs:
            log.saw(body, self._shown, self.elapsed())

    def refused(self, refusal: Refusal) -> None:
        """Be told of a request that was refused and is sent again."""
        kept = attrs.evolve(refusal, message=refusal.message[:_LONGEST])
        self.refusals.append(kept)
        if self._emit is not None:
            self._emit("model_refused", attrs.asdict(kept))

    def failed(self, error: TrialError) -> None:
        """Be told why a request was not answered in the end; the next one that is answered makes up for it."""
        self.fault = error

    def passed(self, tokens: int) -> None:
        """Be told about how many tokens a request and its reply had, before the reply is reported."""
        self.tokens += tokens
        if self._meter is not None:
            self._meter.passed(tokens)

    def metered(self, usage: Usage, finish: FinishReason | None = None, model: str = "") -> None:
        """Count a model call that the proxy saw answered; as many that the adapter reports replace it.

        `finish` is what ended the reply before its time: the last one says whether the answer is truncated, or why
        there is none. `model` is `provider/name`.
        """
        self.fault, self.finish = None, finish
        spent = self.use.add(usage, self.elapsed() or 0.0, model)
        if self._meter is not None:
            self._meter.replied(spent, model, to_proxy=True)

    def denied(self, request: str, reason: str) -> None:
        """Note a request of the agent's program that the proxy did not pass on.

        If there is no answer, and none of the model's, it says why.
        """
        what = (request[:_LONGEST_DENIED], reason)
        full = what not in self._denied and len(self._denied) >= _MOST_DENIED
        listed = _OTHERS_DENIED if full else what
        self._denied[listed] = self._denied.get(listed, 0) + 1
        self._denial = TrialError(f"{what[0]} was refused: {reason}", stage="model", kind="denied")

    def reason_for(self, error: Exception) -> TrialError | None:
        """Return why a turn really failed, if an adapter, or its program, made something else of it."""
        if self.fault is not None and not isinstance(self.fault, ModelError):
            return self.fault  # an SDK makes a refusal, or a broken connection, of what keval did not read on
        # The adapter knows better: it names a stage, such as the model or a server.
        if isinstance(error, TrialError) and error.stage != "agent":
            return None
        return self.fault or self._refusal or (self.finish.no_answer() if self.finish else None)

    def no_answer(self) -> TrialError:
        """Return why a turn has no answer."""
        return self._refusal or (self.finish or SILENCE).no_answer()

    @property
    def _refusal(self) -> TrialError | None:
        return None if self.use.calls else self._denial

    def begin_again(self) -> None:
        """Begin another trial of the same conversation: requests are counted anew."""
        self.use, self.tokens, self.refusals = ModelUse(), 0, []
        self.costs.clear()
        self.first, self._is_relayed = None, False
        self._denied, self._denial = {}, None

    def settled(self, transcript: Transcript) -> Transcript:
        """Return an agent's transcript with what is known beyond it.

        The proxy knows denied requests, and model calls that the agent does not tell: of programs that it started, and
        after its last turn. Where nobody tells the tokens, they are estimated.
        """
        settled = self._completed(transcript)
        usage = settled.usage.estimated(self.tokens)
        told = [cost for cost in self.costs if cost is not None]
        if usage.cost is None and told and len(told) == settled.model_calls:  # of each call
            usage = attrs.evolve(usage, cost=sum(told))
        return settled if usage is settled.usage else attrs.evolve(settled, usage=usage)

    def _completed(self, transcript: Transcript) -> Transcript:
        if self._denied:
            listed = tuple(DeniedRequest(*what, count) for what, count in self._denied.items())
            transcript = attrs.evolve(transcript, denied=listed)
        seen = self.use
        if seen.usage is None:
            return transcript
        # What an agent tells is by its vendor's own figures, and is kept while it tells of as many calls.
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
