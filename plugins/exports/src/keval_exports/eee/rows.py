"""A row of the instance file: one score of one trial, with what the trial was asked and answered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from keval import Message, Sample, ScoreLine, ToolCall, Trial, Usage
from keval.plugin import ScorerEntry
from keval_exports.eee.results import SCHEMA_VERSION, Record, as_text, as_texts, is_correct, result_id


def trial_part(record: Record, trial: Trial) -> dict[str, Any]:
    """What the rows of a trial have in common."""
    sample = trial.sample
    asked, reference = _asked(sample), [*sample.answers]
    # As other writers of the format hash a sample, so that the same one is found in their files.
    hashed = json.dumps({"raw": asked, "reference": reference}, sort_keys=True, separators=(",", ":"))
    kind, messages = _kind(trial), conversation(trial)
    single = kind == "single_turn"
    prompt = trial.transcript.instructions if trial.transcript else None
    duration = trial.transcript.duration if trial.transcript else None
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": record.evaluation_id,
        "model_id": record.model_id,
        "evaluation_name": record.evaluation_name(trial.condition),
        "sample_id": sample.id,
        "sample_hash": hashlib.sha256(hashed.encode()).hexdigest(),
        "interaction_type": kind,
        "input": {"raw": asked, "reference": reference},
        "output": {"raw": [trial.output]} if single else None,
        "messages": None if single else messages,
        "answer_attribution": _attribution(trial.output, None if single else messages),
        "evaluation": {"num_turns": 1 if single else len(messages), "tool_calls_count": _tool_calls(trial)},
        "token_usage": _tokens(trial.transcript.usage) if trial.transcript else None,
        "performance": None if duration is None else {"latency_ms": round(duration * 1000, 3)},
        "metadata": {
            **as_texts(sample.metadata),
            **as_texts(
                {
                    "keval.trial": trial.id,
                    "keval.agent": trial.agent,
                    "keval.condition": trial.condition,
                    "keval.repetition": trial.repetition,
                    "keval.model_simulated": record.simulated or None,
                    "keval.discarded_attempts": len(trial.attempts) or None,
                    "keval.complied": trial.complied,
                    "keval.truncated": trial.truncated or None,
                    # Other conversations have it among their messages.
                    "keval.instructions": (prompt or None) if single else None,
                }
            ),
        },
    }


def row(
    part: Mapping[str, Any], line: ScoreLine, value: float, scorer: ScorerEntry, threshold: float, *, simulated: bool
) -> dict[str, Any]:
    """Complete a trial's part with one of its scores; `simulated` is the judge, if there is one."""
    judgement = line.judgement
    about = {
        "keval.judge": line.judge,
        "keval.judge_simulated": simulated or None,
        "keval.judge_repetition": judgement and judgement.repetition,
        "keval.unverified_claims": (judgement and judgement.unverified_claims) or None,
        "keval.neutral": line.score.neutral or None,
        "keval.reason": line.score.reason or None,
        "keval.details": line.score.details or None,
    }
    return {
        **part,
        "evaluation_result_id": result_id(line.condition, line.metric, line.judge),
        "evaluation": {"score": value, "is_correct": is_correct(scorer.scale, value, threshold), **part["evaluation"]},
        "metadata": {**part["metadata"], **as_texts(about)},
    }


def _kind(trial: Trial) -> str:
    transcript = trial.transcript
    if transcript and (transcript.tools or transcript.tool_calls or transcript.unlisted_calls):
        return "agentic"
    return "multi_turn" if trial.sample.history or trial.sample.turns else "single_turn"


def _asked(sample: Sample) -> str:
    """The question as it is, or a conversation as lines of who says what, up to the user's last words."""
    if not sample.history and not sample.turns:
        return sample.question
    said = [*((message.role, message.text) for message in sample.history), *(("user", text) for text in sample.asked)]
    return "\n".join(f"{role}: {text}" for role, text in said)


def _attribution(output: str, messages: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Say where the final answer stands; without one there is nothing to say."""
    if not output:
        return []
    turn, source = 0, "output.raw"
    if messages is not None:
        turn = max(m["turn_idx"] for m in messages if m["role"] == "assistant" and m["content"] == output)
        source = f"messages[{turn}].content"
    return [
        {
            "turn_idx": turn,
            "source": source,
            "extracted_value": output,
            "extraction_method": "last_assistant_message",
            "is_terminal": True,
        }
    ]


def _tool_calls(trial: Trial) -> int | None:
    """How many there were; `None` when that is not known."""
    if trial.transcript is None or trial.transcript.unlisted_calls is None:
        return None
    return len(trial.transcript.tool_calls) + trial.transcript.unlisted_calls


def _tokens(usage: Usage) -> dict[str, Any] | None:
    """The tokens, where both input and output are known: the format takes all or nothing."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "input_tokens_cache_read": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }


def conversation(trial: Trial) -> list[dict[str, Any]]:
    """Return everything that was said and asked of tools: the system prompt first, then the sample's history."""
    prompt = trial.transcript.instructions if trial.transcript else None
    said = [{"role": "system", "content": prompt}] if prompt else []
    said += [_message(message) for message in trial.sample.history]
    if trial.transcript is not None:
        messages = trial.transcript.messages
        calls = [_Call(call.id or f"call-{n}", call) for n, call in enumerate(trial.transcript.tool_calls, start=1)]
        for turn in sorted({*(message.turn for message in messages), *(item.call.turn for item in calls)}):
            spoken = [message for message in messages if message.turn == turn]
            said += _Turn([item for item in calls if item.call.turn == turn]).said(spoken)
    return [{"turn_idx": index, **message} for index, message in enumerate(said)]


@attrs.frozen(eq=False)
class _Call:
    id: str
    call: ToolCall

    @property
    def came_back(self) -> bool:
        return self.call.result is not None or self.call.error is not None

    @property
    def content(self) -> str | None:
        return self.call.error if self.call.result is None else self.call.result


@attrs.define
class _Turn:
    """Puts the calls of a turn among its messages.

    A transcript has a message where a call came back, which does not say which call it was. It marks the place; the
    content is that of the next call, as it came back where it ran.
    """

    _open: list[_Call]
    _said: list[dict[str, Any]] = attrs.field(factory=list, init=False)
    _asked: list[_Call] = attrs.field(factory=list, init=False)

    def said(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        for message in messages:
            if message.role == "tool" and self._open:
                self._answer(next((item for item in self._open if item.came_back), self._open[0]))
                continue
            if message is messages[-1]:  # what the turn ends on was said after all its calls
                self._close()
            self._said.append(_message(message))
        self._close()
        return self._said

    def _answer(self, item: _Call) -> None:
        self._ask(item)
        self._open.remove(item)
        self._said.append({"role": "tool", "content": item.content, "tool_call_id": [item.id]})

    def _ask(self, item: _Call) -> None:
        """Let the model ask for a call, and in the same breath for all that it asked for with it."""
        if item in self._asked:
            return
        with_it = [
            other
            for other in self._open
            if other is item or (item.call.model_call is not None and other.call.model_call == item.call.model_call)
        ]
        self._asked += with_it
        self._said.append({"role": "assistant", "content": None, "tool_calls": [*map(_asked_for, with_it)]})

    def _close(self) -> None:
        """Tell of the calls that no message marks: they never came back, or the adapter did not say when."""
        for item in [*self._open]:
            if item.came_back:
                self._answer(item)
            else:
                self._ask(item)
                self._open.remove(item)


def _asked_for(item: _Call) -> dict[str, Any]:
    arguments = {str(name): as_text(value) for name, value in item.call.arguments.items()}
    return {"id": item.id, "name": item.call.name, "arguments": arguments}


def _message(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": message.text}
