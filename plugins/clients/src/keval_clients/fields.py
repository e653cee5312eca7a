"""Fields of requests that an endpoint refuses: they are left out, or sent by the name that it takes.

Here are only fields that keval or a framework adds by itself, and other names for the same. What a user sets, and what
changes the answer, is sent as it is, and its refusal is told.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import attrs

from keval.errors import PluginWarning
from keval.execute.models.denials import read_refusal
from keval.records.models import ModelRequest, ModelResponse, Next
from keval_clients.replies import read_json, write_json

Fields: TypeAlias = Mapping[str, str | None]
"""Fields by place and name, such as `tools.strict`, with the name that the endpoint takes; `None` if it takes none."""

_REFUSALS = (400, 422)
"""HTTP statuses of a request that is wrong in itself; Mistral and servers made with FastAPI answer 422."""
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


async def send_without(
    known: dict[str, str | None], request: ModelRequest, refusal: ModelResponse | None, send: Next
) -> ModelResponse:
    """Send a request without the fields that are `known` to be refused, and again without those that are refused now.

    `refusal` is the answer to the request as it is, if it was sent. What is refused is known, and told, as soon as the
    request is answered without it, because an error may name a field by chance.
    """
    refused: dict[str, str | None] = {}
    sent, response = request, refusal
    while True:
        if response is None:
            sent = without(request, {**known, **refused})
            response = await send(sent)
        found = newly_refused(sent, response.status, await response.read()) if response.status in _REFUSALS else {}
        # A field and its other name may both be refused.
        more = {field: other for field, other in found.items() if field not in {*refused, *refused.values()}}
        if not more:
            break
        refused |= more
        response = None
    if response.status < 300 and refused.keys() - known.keys():
        known.update(refused)
        for told in _consequences(refused):
            warnings.warn(f"the endpoint of {request.model} {told}", PluginWarning, stacklevel=2)
    return response


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


def _consequences(refused: Fields) -> Iterator[str]:
    for field, other in refused.items():
        if other is not None:
            yield f"takes `{field}` as `{other}` alone; it is sent so"
        elif field == "seed":
            yield "takes no `seed`; its replies repeat less"
        elif field in _OPTIONAL and field != "include":  # which most models refuse that do not reason
            yield f"takes no `{field}`; requests go without"


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
    escaped = re.escape(name)  # a program may send any name
    marked = rf"(?:[\"'`.\[]|: ){escaped}(?:[\"'`\]]|\W*$| \()"
    plain = "_" in name or name in {"seed", "temperature"}
    pattern = _SAID.get(name, rf"\b{escaped}\b" if plain else marked)
    found = re.search(pattern, told, re.IGNORECASE)
    return None if found is None else found.start()
