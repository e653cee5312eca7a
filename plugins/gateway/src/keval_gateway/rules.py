"""What the proxy passes on: requests for a reply of an agent's own models. It answers a few others itself.

A program has the user's key behind its own: it could spend it on other models, or read and change what else the user
has at the vendor. So whatever is not known to be a request for a reply is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, quote, unquote, urlencode

import attrs

from keval.records.models import Wire
from keval_gateway.chat import ModelFault, wire_urls
from keval_gateway.protocols.protocol import count_tokens

Models: TypeAlias = Mapping[str, Collection[Wire]]
"""The models of an agent by name, with the wires that each speaks."""

PASSED_HEADERS = frozenset(
    {
        *("accept", "user-agent", "anthropic-version", "anthropic-beta", "openai-beta", "x-goog-api-client"),
        "anthropic-dangerous-direct-browser-access",
    }
)
"""The headers of a program that are passed on. Others may choose an account, a method or a model."""

_BASES = wire_urls("")
_CALLS: Mapping[str, tuple[Wire, bool]] = {
    f"{_BASES['openai-chat']}/chat/completions": ("openai-chat", True),
    f"{_BASES['openai-responses']}/responses": ("openai-responses", True),
    f"{_BASES['openai-responses']}/responses/input_tokens": ("openai-responses", False),
    f"{_BASES['anthropic']}/v1/messages": ("anthropic", True),
    f"{_BASES['anthropic']}/v1/messages/count_tokens": ("anthropic", False),
}
"""Paths, each with its wire and whether it is for a reply; the others count tokens."""
_GEMINI_CALL = re.compile(rf"{_BASES['gemini']}(/v1(?:beta|alpha)?)/(.+):(\w+)")
_GEMINI_CALLS = {"generateContent": True, "streamGenerateContent": True, "countTokens": False}
_LISTINGS: Mapping[Wire, re.Pattern[str]] = {
    "openai-chat": re.compile(rf"{_BASES['openai-chat']}/models(?:/(.+))?"),
    "anthropic": re.compile(rf"{_BASES['anthropic']}/v1/models(?:/(.+))?"),
    "gemini": re.compile(rf"{_BASES['gemini']}/v1(?:beta|alpha)?/models(?:/([^:]+))?"),
}
_QUERIES: Mapping[str, Collection[str]] = {"alt": ("sse", "json"), "beta": ("true",)}
"""The queries that the vendors' SDKs send, but for a key, which is left out."""
_LEADS_ELSEWHERE = re.compile(
    r"api_?(key|base|version)|base_?url|user_config|extra_(headers|body|query)|custom_llm_provider|litellm_params"
    r"|deployment_?id|(aws|azure|vertex)_.*|organization|preset|.*(model|fallback).*"
)
"""Keys of a body by which gateways such as LiteLLM's and OpenRouter let a client choose where a request goes."""


@attrs.frozen
class ReplyCall:
    """A request for a reply, to be passed on: its wire, the model, and the path below the base URL, with its query.

    If it `streams`, it asks for a stream of events.
    """

    wire: Wire
    model: str
    path: str
    streams: bool = False


def decide(method: str, path: str, query: str, body: bytes, models: Models) -> ReplyCall | Mapping[str, Any]:
    """Return what becomes of a request: it is passed on, or keval answers it with this JSON.

    `path` is as it was sent, below the way of the agent.

    Raises:
        ModelFault: it is refused.
    """
    if method in ("GET", "HEAD"):
        for wire, pattern in _LISTINGS.items():
            if listing := pattern.fullmatch(path):
                return _listing(wire, unquote(listing[1] or ""), models)
    if method == "POST" and (found := _call(path)):
        call, for_reply = found
        if not for_reply:
            return _counted(call.wire, body)
        content = _read(body)
        _check_content(content)
        asked = [call.model or content.get("model")]
        tools = content.get("tools")
        # A tool may name a model of its own, for which the user's key would pay, too.
        places = [content, *(tools if isinstance(tools, list) else ())]
        asked += [place["model"] for place in places if isinstance(place, dict) and "model" in place]
        # The first is the model of the request; those of tools only have to be allowed.
        name, *_ = [_checked_model(model, call.wire, models) for model in asked]
        path = f"{call.path}{_checked_query(query)}"
        streams = bool(content.get("stream")) or ":streamGenerateContent?alt=sse" in path
        return attrs.evolve(call, model=name, path=path, streams=streams)
    raise ModelFault(
        403,
        "only requests for a reply are passed on to the model; keval answers those that list models or count tokens,"
        " and no others",
    )


def model_name(name: str) -> str:
    """Return a model's name without what Gemini's API puts before it."""
    return name.removeprefix("models/")


def wire_of(path: str) -> Wire:
    """Return the wire in whose form a request at this path is refused."""
    wires: tuple[Wire, ...] = ("anthropic", "gemini")
    return next((wire for wire in wires if path.startswith(f"{_BASES[wire]}/")), "openai-chat")


def _call(path: str) -> tuple[ReplyCall, bool] | None:
    """Return what a path asks for, with the model if it names one, and whether that is for a reply."""
    if found := _CALLS.get(path):
        wire, for_reply = found
        return ReplyCall(wire, "", path.removeprefix(_BASES[wire])), for_reply
    if (gemini := _GEMINI_CALL.fullmatch(path)) and gemini[3] in _GEMINI_CALLS:
        # Only the name counts, so that no other way of writing the path reaches the endpoint.
        name = unquote(gemini[2])
        whole = name if name.startswith(("models/", "tunedModels/")) else f"models/{name}"
        return ReplyCall("gemini", name, f"{gemini[1]}/{quote(whole)}:{gemini[3]}"), _GEMINI_CALLS[gemini[3]]
    return None


def _read(body: bytes) -> Mapping[str, Any]:
    """Read a body as every server does: one that has a key twice could be read in two ways."""
    try:
        content = json.loads(body.decode(), object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise ModelFault(400, f"the request's body cannot be read as JSON: {error}") from error
    if not isinstance(content, dict):
        raise ModelFault(400, "the request's body is no JSON object")
    return content


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ModelFault(400, "the request's body has a key twice in one object")
    return content


def _check_content(content: Mapping[str, Any]) -> None:
    """Refuse what leads a request elsewhere, or hides what it takes. Servers may take a key in any case."""
    for key in content:
        if key != "model" and _LEADS_ELSEWHERE.fullmatch(key.casefold()):
            raise ModelFault(403, f"the key {key[:100]!r} of the body may lead it to another model or account")
    if content.get("background"):
        raise ModelFault(403, "a reply in the background is not passed on, as nobody would count its tokens")


def _checked_model(model: object, wire: Wire, models: Models) -> str:
    if not isinstance(model, str) or wire not in models.get(model_name(model), ()):
        known = ", ".join(models)
        raise ModelFault(
            403, f"it asks for the model {model!r:.100}, and the agent has {known}; add it to `models`, if it is right"
        )
    return model_name(model)


def _checked_query(query: str) -> str:
    """Return a query with what a request may have in it, and its question mark."""
    found = {name: value for name, value in parse_qsl(query, keep_blank_values=True) if name != "key"}
    for name, value in found.items():
        if value not in _QUERIES.get(name, ()):
            raise ModelFault(403, f"the query {name[:100]}={value[:100]} is none that a request for a reply has")
    return f"?{urlencode(found)}" if found else ""


def _counted(wire: Wire, body: bytes) -> Mapping[str, Any]:
    count = count_tokens(body)
    if wire == "openai-responses":
        return {"object": "response.input_tokens", "input_tokens": count}
    return {"totalTokens" if wire == "gemini" else "input_tokens": count}


def _listing(wire: Wire, name: str, models: Models) -> Mapping[str, Any]:
    """List the agent's models, or describe the one of this name, as the vendor does."""
    spoken = {each for each in _BASES if _BASES[each] == _BASES[wire]}
    listed = {each: _DESCRIBED[wire](each) for each, wires in models.items() if spoken.intersection(wires)}
    if name:
        if model_name(name) not in listed:
            raise ModelFault(404, f"there is no model {name[:100]!r}; the agent has {', '.join(models)}")
        return listed[model_name(name)]
    if wire == "gemini":
        return {"models": [*listed.values()]}
    if wire == "anthropic":
        ends = {"first_id": next(iter(listed), None), "last_id": next(reversed(listed), None)}
        return {"data": [*listed.values()], "has_more": False, **ends}
    return {"object": "list", "data": [*listed.values()]}


_DESCRIBED = {
    "openai-chat": lambda name: {"id": name, "object": "model", "created": 0, "owned_by": "keval"},
    "anthropic": lambda name: {"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"},
    "gemini": lambda name: {
        "name": f"models/{name}",
        "displayName": name,
        "supportedGenerationMethods": [*_GEMINI_CALLS],
    },
}
