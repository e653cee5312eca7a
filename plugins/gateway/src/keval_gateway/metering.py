"""Reading what ended a reply, and how many tokens it took, from what passes: whole or as events, in every protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import orjson

from keval import Usage
from keval.execute.models.reply_usage import usage_in
from keval.records.models import Wire
from keval.seams.finish_reason import CONTEXT_WINDOW, MAX_OUTPUT_TOKENS, REFUSAL, FinishReason


def read_reply(wire: Wire, body: bytes, *, whole: bool = True) -> tuple[Usage, FinishReason | None]:
    """Return the tokens that a reply says it took, and what ended it before its time, if anything did.

    `body` is the whole body of a successful response: a JSON object, or server-sent events. What it does not tell of
    its tokens is unknown. If it is not the `whole` body, what it tells before its end is not all of its output.
    """
    events, unread = _objects(body)
    finished: FinishReason | None = None
    ended = whole or wire in ("openai-chat", "openai-responses")  # which tell all tokens at the end
    for data in events:
        reason = _ENDED[wire](data)
        finished = _FINISHED.get(reason, finished)
        ended = ended or bool(reason)
    usage = usage_in(wire, events) or Usage(impossible="no JSON" if whole and unread else None)
    return usage if ended else attrs.evolve(usage, output_tokens=None), finished


def _objects(body: bytes) -> tuple[list[dict[str, Any]], bool]:
    """Return the objects in a body, and whether any of it could not be read."""
    lines = [line.removeprefix(b"data:") for line in body.splitlines() if line.startswith(b"data:")]
    found, unread = [], False
    for text in lines or [body]:
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:  # as for a count that no number can hold
            unread = unread or text.strip() != b"[DONE]"  # which ends OpenAI's streams
            continue
        # Gemini's API streams a list of replies where nobody asks for events.
        found += [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
    return found, unread


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


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
