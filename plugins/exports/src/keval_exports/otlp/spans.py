"""The spans of a trial: the agent's, and below it one for each model call and each tool call whose time is known.

Names and attributes are those of the semantic conventions for generative AI of OpenTelemetry, as of November 2026
(github.com/open-telemetry/semantic-conventions-genai: agent spans, spans, Model Context Protocol).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import accumulate
from typing import Any

import attrs

from keval import Manifest, ToolCall, Transcript, Trial
from keval.plugin import dump
from keval_exports.otlp.encoding import attributes, hex_id, nanoseconds
from keval_exports.otlp.messages import asked_messages, instructions, said_messages

__all__ = ["Trace"]

_INTERNAL, _CLIENT = 1, 3
_ERROR = {"code": 2}
_PROVIDERS = {"gemini": "gcp.gemini", "google": "gcp.gemini"}
"""Providers that the conventions know by another name."""


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
        return self.start + (0.0 if transcript is None else max(transcript.duration or 0.0, *_ends(transcript)))

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
            "keval.condition": trial.condition,
            "keval.repetition": trial.repetition,
            "keval.complied": trial.complied,
            "keval.discarded_attempts": len(trial.attempts) or None,
            "keval.simulated": (trial.model in self.manifest.simulated) or None,
            "keval.replay.run": replay and replay.run,
            "keval.replay.recorded": replay and replay.recorded,
            "keval.model_calls": transcript and transcript.model_calls,
        }
        if self.content:
            told["gen_ai.system_instructions"] = instructions(transcript)
            told["gen_ai.input.messages"] = asked_messages(trial)
            told["gen_ai.output.messages"] = said_messages(trial)
        status = {} if trial.failure is None else {**_ERROR, "message": trial.failure.message}
        span = self._span(
            part="agent",
            name=f"invoke_agent {trial.agent}",
            kind=_INTERNAL,
            start=self.start,
            end=self.end,
            told=told,
            status=status,
        )
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
            yield self._span(
                part=f"model {number}",
                name=f"chat {model}".strip(),
                kind=_CLIENT,
                start=self.start + start,
                end=self.start + reply,
                told=self._common("chat"),
            )

    def _tool_calls(self, transcript: Transcript) -> Iterator[dict[str, Any]]:
        for number, call in enumerate(transcript.tool_calls, start=1):
            if call.at is None:
                continue
            start = self.start + call.at
            status = {} if call.error is None else {**_ERROR, **({"message": call.error} if self.content else {})}
            yield self._span(
                part=f"tool {number}",
                name=f"execute_tool {call.name}",
                kind=_INTERNAL,
                start=start,
                end=start + (call.duration or 0.0),
                told=self._called(call),
                status=status,
            )

    def _called(self, call: ToolCall) -> dict[str, Any]:
        told = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": call.id,
            "gen_ai.tool.type": "function",
            "mcp.method.name": None if call.server is None else "tools/call",
            "error.type": None if call.error is None else "tool_error",
            "keval.server": call.server,
            "keval.executions": call.executions,
            "keval.turn": call.turn,
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
        *,
        part: str,
        name: str,
        kind: int,
        start: float,
        end: float,
        told: Mapping[str, Any],
        status: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        return {
            "traceId": self.id,
            "spanId": self._span_id(part),
            "parentSpanId": self.root,
            "name": name,
            "kind": kind,
            "startTimeUnixNano": nanoseconds(start),
            "endTimeUnixNano": nanoseconds(end),
            "attributes": attributes(told),
            "status": dict(status or {}),
        }

    def _span_id(self, part: str) -> str:
        return hex_id(8, self.manifest.run, self.trial.id, part)


def _ends(transcript: Transcript) -> Iterator[float]:
    """Yield when calls of models and tools had ended, in seconds after the start."""
    yield 0.0
    yield from transcript.replies
    yield from _call_ends(transcript)


def _call_ends(transcript: Transcript) -> Iterator[float]:
    yield from (call.at + (call.duration or 0.0) for call in transcript.tool_calls if call.at is not None)
