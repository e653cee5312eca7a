"""Reading what ended a reply, and how many tokens it took, from what passes: whole or as events, in every protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import orjson

from keval import Usage
from keval.plugin import CONTEXT_WINDOW, MAX_OUTPUT_TOKENS, REFUSAL, FinishReason, Wire
from keval_clients import completions_usage, messages_usage, responses_usage


def read_reply(wire: Wire, body: bytes, *, whole: bool = True) -> tuple[Usage, FinishReason | None]:
    """Return the tokens that a reply says it took, and what ended it before its time, if anything did.

    `body` is the whole body of a successful response: a JSON object, or server-sent events. What it does not tell of
    its tokens is unknown. If it is not the `whole` body, what it tells before its end is not all of its output.
    """
    told: dict[str, Any] = {}
    finished: FinishReason | None = None
    ended = whole or wire in ("openai-chat", "openai-responses")  # which tell all tokens at the end
    # Later events of a stream replace what earlier ones said, key by key: Anthropic's API tells the input at the
    # beginning and the output at the end.
    for data in _objects(body):
        told.update(_TOLD[wire](data))
        reason = _ENDED[wire](data)
        finished = _FINISHED.get(reason, finished)
        ended = ended or bool(reason)
    usage = _READ[wire](told)
    return usage if ended else attrs.evolve(usage, output_tokens=None), finished


def _objects(body: bytes) -> list[dict[str, Any]]:
    lines = [line.removeprefix(b"data:") for line in body.splitlines() if line.startswith(b"data:")]
    found = []
    for text in lines or [body]:
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:  # the `[DONE]` of OpenAI's streams, or a reply that no agent can read either
            continue
        # Gemini's API streams a list of replies where nobody asks for events.
        found += [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
    return found


def _plain(data: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(data.get("usage"))


def _of_response(data: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(_mapping(data.get("response")).get("usage")) or _plain(data)


def _of_message(data: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(_mapping(data.get("message")).get("usage")) or _plain(data)


def _of_candidates(data: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(data.get("usageMetadata"))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _gemini_usage(usage: Mapping[str, Any]) -> Usage:
    """Read Gemini's `usageMetadata`, which counts the tokens of thoughts beside those of the answer."""
    answer, thoughts = _count(usage, "candidatesTokenCount"), _count(usage, "thoughtsTokenCount")
    tools = _count(usage, "toolUsePromptTokenCount") or 0
    prompt = _count(usage, "promptTokenCount")
    return Usage(
        None if prompt is None else prompt + tools,
        None if answer is None and thoughts is None else (answer or 0) + (thoughts or 0),
        _count(usage, "cachedContentTokenCount") or (0 if prompt is not None else None),
        thoughts or (0 if prompt is not None else None),
    )


def _count(usage: Mapping[str, Any], key: str) -> int | None:
    value = usage.get(key)
    return value if type(value) is int and value >= 0 else None


def _first(value: object) -> Mapping[str, Any]:
    return _mapping(value[0]) if isinstance(value, list) and value else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


_FINISHED: Mapping[str, FinishReason] = {
    **dict.fromkeys(("length", "max_output_tokens", "max_tokens", "MAX_TOKENS"), MAX_OUTPUT_TOKENS),
    **dict.fromkeys(("content_filter", "refusal"), REFUSAL),
    **dict.fromkeys(("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"), REFUSAL),
    "model_context_window_exceeded": CONTEXT_WINDOW,
}
"""The words of all protocols for an end before the time; none means another thing in another protocol."""
_ENDED: Mapping[Wire, Callable[[Mapping[str, Any]], str]] = {
    "openai-chat": lambda data: _text(_first(data.get("choices")).get("finish_reason")),
    "openai-responses": lambda data: _text(
        _mapping((_mapping(data.get("response")) or data).get("incomplete_details")).get("reason")
    ),
    "anthropic": lambda data: _text((_mapping(data.get("delta")) or data).get("stop_reason")),
    "gemini": lambda data: _text(_first(data.get("candidates")).get("finishReason")),
}
_TOLD: Mapping[Wire, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
    "openai-chat": _plain,
    "openai-responses": _of_response,
    "anthropic": _of_message,
    "gemini": _of_candidates,
}
_READ: Mapping[Wire, Callable[[Mapping[str, Any]], Usage]] = {
    "openai-chat": completions_usage,
    "openai-responses": responses_usage,
    "anthropic": messages_usage,
    "gemini": _gemini_usage,
}
