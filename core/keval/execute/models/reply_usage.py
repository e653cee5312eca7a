"""The usage of a reply: where each API tells the tokens that it took, and what its counts include."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from keval.records.models import Wire
from keval.records.usage import Usage, known_count, sum_of_counts

_Path: TypeAlias = tuple[str, ...]
_FIELDS: Mapping[Wire, tuple[_Path, ...]] = {
    "openai-chat": (("usage",),),
    "openai-responses": (("usage",), ("response", "usage")),
    "anthropic": (("usage",), ("message", "usage")),
    "gemini": (("usageMetadata",),),
}
"""Where a body, or an event of a stream, has its usage."""
_COUNTS: Mapping[Wire, tuple[_Path, _Path, _Path, _Path]] = {
    "openai-chat": (
        ("prompt_tokens",),
        ("completion_tokens",),
        ("prompt_tokens_details", "cached_tokens"),
        ("completion_tokens_details", "reasoning_tokens"),
    ),
    "openai-responses": (
        ("input_tokens",),
        ("output_tokens",),
        ("input_tokens_details", "cached_tokens"),
        ("output_tokens_details", "reasoning_tokens"),
    ),
    "anthropic": (
        ("input_tokens",),
        ("output_tokens",),
        ("cache_read_input_tokens",),
        ("output_tokens_details", "thinking_tokens"),
    ),
    "gemini": (("promptTokenCount",), ("candidatesTokenCount",), ("cachedContentTokenCount",), ("thoughtsTokenCount",)),
}
"""The counts of input, output, cached and reasoning tokens."""
_USUAL_TIERS = (None, "auto", "default", "standard")
"""The words for service at a model's usual price; OpenAI's APIs tell it beside the usage, Anthropic's within."""
_MOST_DOLLARS = 1_000
"""More than any model call costs."""


def usage_in(wire: Wire, bodies: Iterable[Any]) -> Usage | None:
    """Return the tokens that a reply says it took, whole or as the events of a stream; `None` if it does not say.

    Later events replace what earlier ones said, count by count, as they are sums: Anthropic's API tells the input at
    the beginning and the output at the end.
    """
    told: dict[str, Any] = {}
    for body in bodies:
        for field in _FIELDS[wire]:
            if isinstance(usage := _at(body, field), dict):
                # A later event may have null for a count that an earlier one told.
                known = {"service_tier": _at(body, (*field[:-1], "service_tier")), **usage}
                told |= {name: value for name, value in known.items() if value is not None}
    return read_usage(wire, told) if told else None


def read_usage(wire: Wire, told: object) -> Usage:
    """Read what a reply tells of its tokens, as JSON.

    What Anthropic's API counts apart of its cache is added to the input, and what Gemini's counts apart of thoughts to
    the output. Where these tell the input and nothing of a cache, or of thoughts, there were none.
    """
    known = told if isinstance(told, dict) else {}
    served = str(known["service_tier"]) if known.get("service_tier") not in _USUAL_TIERS else None
    cost = _cost(known.get("cost", known.get("estimated_cost")), known)
    given, written, cached, thought = [_at(known, path) if path[0] in known else None for path in _COUNTS[wire]]
    if wire == "anthropic":
        beside = [cached, _at(told, ("cache_creation_input_tokens",))]
        all_given = None if given is None else sum_of_counts(given, *beside)
        return Usage(all_given, written, _or_none(cached, given), thought, service_tier=served, cost=cost)
    if wire == "gemini":
        given = sum_of_counts(given, _at(told, ("toolUsePromptTokenCount",))) if given is not None else None
        return Usage(given, sum_of_counts(written, thought), _or_none(cached, given), _or_none(thought, given))
    return Usage(given, written, cached, thought, service_tier=served, cost=cost)


def _cost(cost: Any, told: Mapping[str, Any]) -> float | None:
    """Return what OpenRouter, Perplexity (an object) or DeepInfra tells that a call cost, in US dollars.

    Where OpenRouter used a key of the user's with another vendor, that is its fee alone.
    """
    cost = cost.get("total_cost") if isinstance(cost, dict) else cost
    known = type(cost) in (int, float) and 0 <= cost <= _MOST_DOLLARS and not told.get("is_byok")
    return float(cost) if known else None


def _or_none(part: Any, whole: Any) -> Any:
    return 0 if part is None and known_count(whole) is not None else part


def _at(value: Any, path: _Path) -> Any:
    for name in path:
        value = value[name] if isinstance(value, dict) and name in value else None
    return value
