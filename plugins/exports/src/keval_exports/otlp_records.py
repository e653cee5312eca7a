"""The records of a trial in OTLP's JSON: spans of the agent, its model calls and tool calls, and a log record a score.

Names and attributes are those of the semantic conventions for generative AI of OpenTelemetry, as of November 2026
(github.com/open-telemetry/semantic-conventions-genai: agent spans, spans, Model Context Protocol).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import accumulate
from typing import Any

import attrs

from keval import Manifest, Message, Scale, Score, ScoreLine, ToolCall, Transcript, Trial
from keval.plugin import dump, named_band

# In OTLP's JSON, kinds of spans, codes of status and severities are numbers.
_INTERNAL, _CLIENT = 1, 3
_ERROR = {"code": 2}
_PROVIDERS = {"gemini": "gcp.gemini", "google": "gcp.gemini"}
"""Providers that the conventions know by another name."""
_EVENT = "gen_ai.evaluation.result"
_SEVERITY_INFO, _SEVERITY_ERROR = 9, 17


@attrs.frozen
class Trace:
    """A trial as a trace; its ids are the same whenever the run is exported.

    `content` says whether what was said is told, and not only that something was.
    """

    manifest: Manifest
    trial: Trial
    content: bool

    @property
    def id(self) -> str:
        return hex_id(16, self.manifest.run, self.trial.id)

    @property
    def root(self) -> str:
        """The id of the agent's span."""
        return self._span_id("agent")

    @property
    def start(self) -> float:
        """When the trial began, in seconds of Unix time; when the run did, where that is unknown."""
        transcript = self.trial.transcript
        if transcript is not None and transcript.started is not None:
            return transcript.started
        return datetime.fromisoformat(self.manifest.started or "1970-01-01T00:00:00+00:00").timestamp()

    @property
    def end(self) -> float:
        """When the agent had answered, as far as durations tell, in seconds of Unix time."""
        transcript = self.trial.transcript
        if transcript is None:
            return self.start
        return self.start + max(transcript.duration or 0.0, 0.0, *transcript.replies, *_call_ends(transcript))

    def spans(self) -> Iterator[dict[str, Any]]:
        """Yield the spans, the agent's first and the others as they began."""
        yield self._agent()
        transcript = self.trial.transcript
        if transcript is not None:
            calls = [*self._model_calls(transcript), *self._tool_calls(transcript)]
            yield from sorted(calls, key=lambda span: int(span["startTimeUnixNano"]))

    def untold(self) -> int:
        """Return how many calls of models and tools have no span, as their time is unknown."""
        transcript = self.trial.transcript
        if transcript is None:
            return 0
        timeless = sum(call.at is None for call in transcript.tool_calls) + (transcript.unlisted_calls or 0)
        return timeless + max(0, (transcript.model_calls or 0) - len(transcript.replies))

    def _agent(self) -> dict[str, Any]:
        trial, transcript = self.trial, self.trial.transcript
        usage = transcript and transcript.usage
        replay = self.manifest.replay
        told = {
            **self._common("invoke_agent"),
            "gen_ai.agent.name": trial.agent,
            "gen_ai.usage.input_tokens": usage and usage.input_tokens,
            "gen_ai.usage.output_tokens": usage and usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage and usage.cached_tokens,
            "gen_ai.usage.reasoning.output_tokens": usage and usage.reasoning_tokens,
            "error.type": trial.failure and trial.failure.kind,
            "keval.trial": trial.id,
            "keval.sample": trial.sample.id,
            **_own(trial, "condition", "repetition", "complied"),
            "keval.truncated": trial.truncated or None,
            "keval.discarded_attempts": len(trial.attempts) or None,
            "keval.simulated": (trial.model in self.manifest.simulated) or None,
            "keval.replay.run": replay and replay.run,
            "keval.replay.recorded": replay and replay.recorded,
            "keval.model_calls": transcript and transcript.model_calls,
        }
        if self.content:
            if transcript is not None and transcript.instructions:
                told["gen_ai.system_instructions"] = dump([_part(transcript.instructions)]).decode()
            told["gen_ai.input.messages"] = _messages([*trial.history, Message("user", trial.question)])
            if trial.output:
                told["gen_ai.output.messages"] = _messages([Message("assistant", trial.output)])
        status = {} if trial.failure is None else {**_ERROR, "message": trial.failure.message}
        span = self._span("agent", f"invoke_agent {trial.agent}", (self.start, self.end), told, status=status)
        return {**span, "parentSpanId": ""}

    def _model_calls(self, transcript: Transcript) -> Iterator[dict[str, Any]]:
        """Yield a span for each reply. It begins where its turn did, or where what came before it ended.

        keval is told when a model has answered, and not when it was asked.
        """
        turns = [0.0, *accumulate(transcript.turn_durations)]
        ended = [*turns, *_call_ends(transcript)]
        _, _, model = (self.trial.model or "").partition("/")
        for number, reply in enumerate(transcript.replies, start=1):
            before = [*ended, *transcript.replies[: number - 1]]
            start = max((moment for moment in before if moment <= reply), default=reply)
            times = self.start + start, self.start + reply
            yield self._span(f"model {number}", f"chat {model}".strip(), times, self._common("chat"), kind=_CLIENT)

    def _tool_calls(self, transcript: Transcript) -> Iterator[dict[str, Any]]:
        for number, call in enumerate(transcript.tool_calls, start=1):
            if call.at is None:
                continue
            start = self.start + call.at
            status = {} if call.error is None else {**_ERROR, **({"message": call.error} if self.content else {})}
            times = start, start + (call.duration or 0.0)
            yield self._span(f"tool {number}", f"execute_tool {call.name}", times, self._called(call), status=status)

    def _called(self, call: ToolCall) -> dict[str, Any]:
        told = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": call.id,
            "gen_ai.tool.type": "function",
            "mcp.method.name": None if call.server is None else "tools/call",
            "error.type": None if call.error is None else "tool_error",
            **_own(call, "server", "executions", "turn"),
        }
        if self.content:
            told["gen_ai.tool.call.arguments"] = dump(call.arguments).decode()
            told["gen_ai.tool.call.result"] = call.result
        return told

    def _common(self, operation: str) -> dict[str, Any]:
        provider, _, model = (self.trial.model or "").partition("/")
        return {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": _PROVIDERS.get(provider, provider) or "unknown",
            "gen_ai.request.model": model or None,
        }

    def _span(
        self,
        part: str,
        name: str,
        times: tuple[float, float],
        told: Mapping[str, Any],
        *,
        kind: int = _INTERNAL,
        status: object = None,
    ) -> dict[str, Any]:
        """Return a span; `part` is its own within the trace, and `times` are its start and its end."""
        start, end = map(nanoseconds, times)
        return {
            "traceId": self.id,
            "spanId": self._span_id(part),
            "parentSpanId": self.root,
            "name": name,
            "kind": kind,
            "startTimeUnixNano": start,
            "endTimeUnixNano": end,
            "attributes": attributes(told),
            "status": status or {},
        }

    def _span_id(self, part: str) -> str:
        return hex_id(8, self.manifest.run, self.trial.id, part)


def _call_ends(transcript: Transcript) -> Iterator[float]:
    yield from (call.at + (call.duration or 0.0) for call in transcript.tool_calls if call.at is not None)


def score_record(manifest: Manifest, trace: Trace, line: ScoreLine) -> dict[str, Any]:
    """Return the record of a score. Its time is that of the answer, as a run does not say when it was scored."""
    score, judgement = line.score, line.judgement
    entry = manifest.scorer(line.scorer)
    scale = entry.scale if entry is not None else None
    judge = manifest.judges.get(line.judge) if line.judge else None
    told: dict[str, Any] = {
        "gen_ai.evaluation.name": line.metric,
        "gen_ai.evaluation.score.value": None if score.value is None else float(score.value),
        "gen_ai.evaluation.score.label": _label(score, scale),
        "error.type": line.failure and line.failure.kind,
        **_own(line, "trial", "sample", "agent", "condition", "repetition", "judge"),
        "keval.judge.model": judge and judge.model,
        "keval.judge.repetition": judgement and judgement.repetition,
        "keval.scale.low": scale and float(scale.low),
        "keval.scale.high": scale and (float(scale.high) if math.isfinite(scale.high) else None),
        "keval.scale.better": scale and scale.better,
    }
    if trace.content:
        told["gen_ai.evaluation.explanation"] = score.reason or None
        told["keval.unverified_claims"] = (judgement and judgement.unverified_claims) or None
    return {
        "timeUnixNano": nanoseconds(trace.end),
        "severityNumber": _SEVERITY_INFO if line.failure is None else _SEVERITY_ERROR,
        "eventName": _EVENT,
        "attributes": attributes(told),
        "traceId": trace.id,
        "spanId": trace.root,
    }


def _label(score: Score, scale: Scale | None) -> str | None:
    """Return the name of a value's band, or what stands in place of a value; `None` on a scale without bands."""
    if score.value is None:
        return "unscored"
    if score.neutral:
        return "neutral"
    return named_band(scale.bands, score.value) if scale is not None else None


def _own(record: object, *names: str) -> dict[str, Any]:
    """Return fields of a record as attributes that the conventions do not know: `keval.` and the field's name."""
    return {f"keval.{name}": getattr(record, name) for name in names}


def _messages(messages: Iterable[Message]) -> str:
    return dump([{"role": message.role, "parts": [_part(message.text)]} for message in messages]).decode()


def _part(text: str) -> dict[str, str]:
    return {"type": "text", "content": text}


def attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return attributes, without those that are `None`."""
    return [{"key": key, "value": _any_value(value)} for key, value in values.items() if value is not None]


def nanoseconds(seconds: float) -> str:
    """Return a Unix time in nanoseconds; 64-bit numbers are texts in JSON."""
    return str(round(seconds * 1_000_000_000))


def hex_id(size: int, *parts: str) -> str:
    """Return an id of so many bytes, the same for the same parts."""
    # A length before each part, as the parts may hold any separator.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[: 2 * size]


def _any_value(value: Any) -> dict[str, Any]:
    # Before `int`, of which `bool` is a subclass.
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value if math.isfinite(value) else str(value).replace("inf", "Infinity")}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": attributes(value)}}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": [_any_value(item) for item in value]}}
    return {"stringValue": str(value)}
