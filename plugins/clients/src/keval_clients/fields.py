"""Fields of requests that an endpoint refuses: they are left out, or sent by the name that it takes.

Here are only fields that keval or a framework adds by itself, and other names for the same. What a user sets, and what
changes the answer, is sent as it is, and its refusal is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import attrs

from keval.execute.models.denials import read_refusal
from keval.records.models import ModelRequest
from keval_clients.replies import read_json, write_json

Fields: TypeAlias = Mapping[str, str | None]
"""Fields by place and name, such as `tools.strict`, with the name that the endpoint takes; `None` if it takes none."""

_OPTIONAL = (
    *("seed", "stream_options", "parallel_tool_calls", "store", "include", "metadata", "client_metadata", "user"),
    *("prompt_cache_key", "prompt_cache_retention", "safety_identifier", "generationConfig.seed", "tools.strict"),
    *("messages.name", "messages.refusal", "messages.annotations", "messages.audio", "messages.function_call"),
    *("messages.reasoning", "messages.reasoning_content", "messages.reasoning_details"),
)
"""Without these a request asks for the same."""
_SAID = {"include": r"\bencrypted[_ ]content\b"}
"""Patterns of what endpoints call a field, where that is not its name."""
_RENAMED = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_UNKNOWN = re.compile(
    r"\b(not (be )?(support|permit|allow|recogni[sz]e)|unsupported|instead|unknown|unrecogni[sz]ed|unexpected|extra)",
    re.IGNORECASE,
)
"""What an endpoint says of a name that it does not know, and not of a value that it does not take."""


def without(request: ModelRequest, refused: Fields) -> ModelRequest:
    """Return a request without the refused fields, or with their other names."""
    body, changed = _read(request.body), False
    for field, other in refused.items():
        name = _name(field)
        for part in _parts(body, field):
            if other is not None:
                part.setdefault(other, part[name])
            elif field not in _OPTIONAL and part[name] is not None:
                continue  # it was refused where it said nothing
            del part[name]
            changed = True
    return attrs.evolve(request, body=write_json(body)) if changed else request


def newly_refused(request: ModelRequest, status: int, reply: bytes) -> Fields:
    """Return what an endpoint refused of a request, as far as the request can be sent without it."""
    told, body = read_refusal(status, reply).text, _read(request.body)
    if not isinstance(body, dict):
        return {}
    fields = dict.fromkeys((*_OPTIONAL, *(name for name, value in body.items() if value is None)))
    renamed = _RENAMED if request.wire == "openai-chat" and _UNKNOWN.search(told) else {}
    there = {field: other for field, other in {**fields, **renamed}.items() if any(_parts(body, field))}
    pointed = {*_pointed_at(_read(reply))}
    named = {field: other for field, other in there.items() if _name(field) in pointed}
    if named or pointed & body.keys():
        return named
    # The first alone: a message may go on to fields that are taken, or that are to be used instead.
    places = {field: at for field in {**body, **there} if (at := _named_at(_name(field), told)) is not None}
    first = min(places, key=places.__getitem__, default=None)
    return {} if first is None or first not in there else {first: there[first]}


def consequences(refused: Fields) -> Iterator[str]:
    """Yield what a user should know of an endpoint that refuses fields."""
    for field, other in refused.items():
        if other is not None:
            yield f"takes `{field}` as `{other}` alone"
        elif field == "seed":
            yield "takes no `seed`: its replies repeat less"
        elif field in _OPTIONAL and field != "include":  # which most models refuse that do not reason
            yield f"takes no `{field}`: requests go without"


def _read(content: bytes) -> Any:
    try:
        return read_json(content)
    except ValueError:
        return None


def _name(field: str) -> str:
    return field.rpartition(".")[2]


def _parts(body: Any, field: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a body that have a field; a tool of Chat Completions has its own in `function`."""
    place, _, name = field.rpartition(".")
    found = body.get(place) if place else body
    for item in found if isinstance(found, list) else [found]:
        for part in (item, item.get("function")) if isinstance(item, dict) else ():
            if isinstance(part, dict) and name in part:
                yield part


def _pointed_at(told: Any) -> Iterator[str]:
    """Yield the fields that an error names in a place of its own: OpenAI's `param`, FastAPI's `loc`."""
    if isinstance(told, list):
        for item in told:
            yield from _pointed_at(item)
    elif isinstance(told, dict):
        for name, value in told.items():
            if name == "param" and isinstance(value, str):
                yield _name(re.sub(r"\[\d*\]", "", value))
            elif name == "loc" and isinstance(value, list):
                yield from [part for part in value if isinstance(part, str)][-1:]
            elif name != "input":  # what FastAPI quotes of the request
                yield from _pointed_at(value)


def _named_at(name: str, told: str) -> int | None:
    """Return where a message names a field; a word that may stand in any sentence has to be marked as a name."""
    marked = rf"(?:[\"'`.\[]|: ){name}(?:[\"'`\]]|\W*$| \()"
    plain = "_" in name or name in {"seed", "temperature"}
    pattern = _SAID.get(name, rf"\b{name}\b" if plain else marked)
    found = re.search(pattern, told, re.IGNORECASE)
    return None if found is None else found.start()
