"""Models: the `provider/name` of a config, the endpoint that serves it, the requests that are sent there, and prices.

A provider resolves a model once per run, before the first trial. Adapters and judges call the endpoint they are
handed and never build one of their own, so that middleware can stand between any framework and its model.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, Literal, Protocol, TypeAlias

import attrs

from keval.errors import PreflightError
from keval.records.usage import Usage

Wire: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]
"""A wire protocol: OpenAI Chat Completions, OpenAI Responses, Anthropic Messages, Gemini generateContent."""

Api: TypeAlias = Literal["chat", "responses", "anthropic", "gemini"]
"""The protocol that an agent's program speaks, as a config names it."""
API_WIRES: Mapping[Api, Wire] = {
    "chat": "openai-chat",
    "responses": "openai-responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
}

_REPLY_PATHS: Mapping[Wire, tuple[str, ...]] = {
    "openai-chat": ("/chat/completions",),
    "openai-responses": ("/responses",),
    "anthropic": ("/v1/messages",),
    "gemini": (":generateContent", ":streamGenerateContent"),
}
"""The last part of the paths at which a model is asked for a reply."""

_HOP_BY_HOP = {
    *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"),
    *("transfer-encoding", "upgrade"),
}
"""Headers that concern one connection (RFC 9110, section 7.6.1)."""
# Keys, and what the client that sends the request on has to write itself.
_NOT_IN_REQUESTS = {
    *_HOP_BY_HOP,
    *("authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "host", "content-length", "accept-encoding"),
}
# `location` and `alt-svc` would lead a client past the middleware.
_NOT_IN_RESPONSES = {
    *_HOP_BY_HOP,
    *("content-length", "content-encoding", "set-cookie", "location", "date", "server", "alt-svc"),
}


@attrs.frozen
class Asker:
    """Who sends a model request: an agent or judge by its label, and the trial it works on, where that is known.

    A context asks for its server.

    `repetition` is the trial's, or the judge's own; it and `attempt` count from 1.
    """

    role: Literal["agent", "judge", "context"]
    label: str
    trial: str | None = None
    repetition: int | None = None
    attempt: int | None = None


@attrs.frozen
class ModelRequest:
    """One HTTP request to a model, without the key.

    `path` begins with a slash and is relative to the endpoint's base URL of this `wire`; it may have a query. `headers`
    are those of `request_headers`. keval sets `asker` before the first middleware sees the request.
    """

    model: str
    wire: Wire
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = attrs.field(repr=False)
    asker: Asker = Asker("agent", "")

    @property
    def asks_for_reply(self) -> bool:
        """Whether the request asks for a reply of the model; others count tokens or list models, for example."""
        path = self.path.partition("?")[0] if "?" in self.path else self.path
        return self.method == "POST" and path.endswith(_REPLY_PATHS[self.wire])


@attrs.define(eq=False)
class ModelResponse:
    """The response to a model request, with the headers of `response_headers`.

    `chunks` is its body as it arrives, decoded; it can be read once.
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes] = attrs.field(repr=False)

    @classmethod
    def of(cls, status: int, headers: Mapping[str, str], body: bytes) -> ModelResponse:
        """Return a response whose whole body is known."""
        return cls(status, headers, _WholeBody(body))

    @property
    def size(self) -> int | None:
        """The bytes of the body; `None` if it is still to come."""
        return len(self.chunks.body) if isinstance(self.chunks, _WholeBody) else None

    async def read(self) -> bytes:
        """Read the whole body. It can be read again afterwards, here and through `chunks`."""
        if not isinstance(self.chunks, _WholeBody) or self.chunks.is_read:
            self.chunks = _WholeBody(b"".join([chunk async for chunk in self.chunks]))
        return self.chunks.body


@attrs.define(eq=False)
class _WholeBody:
    """A body in one chunk, which is there already."""

    body: bytes
    is_read: bool = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self.is_read:
            raise StopAsyncIteration
        self.is_read = True
        return self.body


Next: TypeAlias = Callable[[ModelRequest], Awaitable[ModelResponse]]
"""Sends a request on its way to the model; may be called more than once, or not at all.

Raises ModelError when the endpoint cannot be reached. A refusal is a response like any other, by its status.
"""

Exchange: TypeAlias = Callable[[ModelRequest, Next], Awaitable[ModelResponse]]
"""Passes a request through the middleware of a run; the `Next` sends it to the endpoint, with the key.

Raises MiddlewareError when a middleware fails, which the agent or judge gets as HTTP status 502, and what that `Next`
raises.
"""


class Platform(Protocol):
    """What a provider wants of a request beside its protocol, at the moment at which it is sent.

    It stands below all middleware: what a run sees, keeps and plays is the protocol's own request, without a key.
    """

    def adapt(self, request: ModelRequest) -> ModelRequest:
        """Return a request as the provider takes it, by another path or with other fields; or the same."""
        ...

    async def sign(self, request: ModelRequest, url: str) -> Mapping[str, str]:
        """Return the headers that sign a request in, which is sent to this URL.

        Raises ModelError: nothing can be signed with, as a token cannot be had.
        """
        ...

    def tell_secrets(self, learn: Callable[[Iterable[tuple[str, str]]], None]) -> None:
        """Tell `learn` each secret, by a name and its value, before a request is signed with it."""
        ...


ASKER_HEADER = "x-keval-asker"
"""Has the key of the attempt that a request is of. Code in keval's process sends it; of programs the proxy sets it."""


_NO_ATTEMPT = "keval-no-attempt"


@attrs.frozen
class ModelAccess:
    """How a program, or a function of the user's, reaches the agent's model in one trial.

    `name` is the model's at its endpoint, and `base_url` is in the form that the SDK of the `wire` takes. Behind
    keval's proxy the key is that of the attempt: it alone tells whose the requests are, and ends with the attempt.
    """

    name: str
    wire: Wire
    base_url: str
    api_key: str = attrs.field(repr=False)
    headers: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class Endpoint:
    """Where a model is reached.

    `urls` has a base URL for each wire protocol that it speaks, in the form that the vendor's own SDK takes. With
    `wants_trial`, requests carry the headers of `Context.model_headers`. `exchange` is there for a plugin that passes
    its requests through the middleware itself (see `keval.seams.interfaces.Flag`). A reply of more than
    `max_reply_bytes`, decoded, is an error of kind `reply_too_large`; keval's clients and its proxy read no further.
    With `attempt_keys` it is keval's proxy: `api_key` is for code in keval's own process, and a program is given the
    key of its attempt by `Model.access`. Where there is a `platform`, it signs requests in, and not `api_key`.
    `login` says how, without a secret. `refused` has the fields that requests of a protocol are sent without, or with
    another name; senders add what the endpoint turns out to refuse.
    """

    model: str
    urls: Mapping[Wire, str]
    api_key: str = attrs.field(repr=False)
    simulated: bool = False
    wants_trial: bool = False
    exchange: Exchange | None = attrs.field(default=None, eq=False, repr=False)
    max_reply_bytes: int | None = None
    attempt_keys: bool = False
    platform: Platform | None = attrs.field(default=None, eq=False, repr=False)
    login: str = attrs.field(default="", eq=False)
    refused: dict[Wire, dict[str, str | None]] = attrs.field(factory=dict, eq=False, repr=False)

    @property
    def place(self) -> tuple[str, ...]:
        """Which endpoint it is: the model, and where it is reached."""
        return (self.model, *sorted(self.urls.values()))


@attrs.frozen
class Model:
    """A model by name; a plugin's field annotated `Model` is structured from `provider/name`.

    A plugin that knows the endpoint itself sets it when it is constructed, and no provider is asked.

    Where the field's metadata has a `provider`, as in `attrs.field(metadata={"provider": "openai"})`, a name without a
    provider is accepted.
    """

    provider: str
    name: str
    endpoint: Endpoint | None = attrs.field(default=None, eq=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> Model:
        """Split `provider/name`; the name may itself hold slashes. Raises ValueError."""
        provider, slash, name = text.partition("/")
        if not (slash and provider and name):
            raise ValueError(f"a model is provider/name, such as openai/gpt-4o-mini; got {text!r}")
        return cls(provider, name)

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}"

    def reach(self, *wires: Wire) -> tuple[Wire, str, Endpoint]:
        """Return the first of `wires` that the endpoint speaks, its base URL and the endpoint.

        Raises PreflightError when it speaks none of them.
        """
        if self.endpoint is None:
            raise PreflightError(f"the model {self} was not resolved before use; run it through keval")
        for wire in wires:
            if wire in self.endpoint.urls:
                return wire, self.endpoint.urls[wire], self.endpoint
        raise PreflightError(
            f"the model {self} speaks {', '.join(self.endpoint.urls)}, and {' or '.join(wires)} is needed here;"
            " choose a model of another provider, or another agent or judge"
        )

    def access(self, wire: Wire, headers: Mapping[str, str]) -> ModelAccess:
        """Return how a program of the agent's reaches the model; `headers` are those of `Context.model_headers`.

        Without an attempt, as where a program is tried out, the key opens nothing.

        Raises PreflightError when the endpoint does not speak the wire.
        """
        _, url, endpoint = self.reach(wire)
        key = headers.get(ASKER_HEADER, _NO_ATTEMPT) if endpoint.attempt_keys else endpoint.api_key
        told = {name: value for name, value in headers.items() if name != ASKER_HEADER}
        return ModelAccess(endpoint.model, wire, url, key, told)


def request_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the headers of a request as middleware sees them: in lower case, no keys, none of the connection's own."""
    return _joined(headers, _NOT_IN_REQUESTS)


def response_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the headers of a response as middleware sees them: in lower case, of a body that is decoded."""
    return _joined(headers, _NOT_IN_RESPONSES)


def _joined(headers: Iterable[tuple[str, str]], left_out: Collection[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        if key not in left_out:
            found[key] = f"{found[key]}, {value}" if key in found else value
    return found


def retry_after_seconds(header: str | None) -> float | None:
    """Read a Retry-After header, which holds seconds or a date (RFC 9110, section 10.2.3).

    Returns seconds from now, never negative; `None` where there is no header or it cannot be read.
    """
    text = (header or "").strip()
    if not text:
        return None
    try:
        # float() alone also reads `nan`, `inf` and numbers below 0.
        return float(text) if text[0].isdecimal() else _until(text)
    except (ValueError, OverflowError):
        return None


def _until(date: str) -> float:
    from email.utils import parsedate_to_datetime  # takes longer to import than all of this module

    return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())


def _is_amount(price: Price, attribute: attrs.Attribute[Any], value: float | None) -> None:
    if value is not None and not 0 <= value < math.inf:
        raise ValueError(f"'{attribute.name}' must be US dollars per million tokens, 0 or more: {value}")


@attrs.frozen
class Price:
    """The price of a model in US dollars per million tokens, and where and when it was found.

    `cached` is the price of input tokens that the vendor had cached; `None` if it is that of all input. `source` names
    the price table with its version, or `config`; `date` is the ISO date on which the price was valid.
    """

    input: float = attrs.field(validator=_is_amount)
    output: float = attrs.field(validator=_is_amount)
    cached: float | None = attrs.field(default=None, validator=_is_amount)
    source: str | None = None
    date: str | None = None

    def at_least(self, usage: Usage) -> float:
        """Return what the tokens cost that there were at least, if the total is unknown."""
        return usage.least * min(self.input, self.output) / 1e6

    def of(self, usage: Usage) -> float | None:
        """Return what these tokens cost in US dollars; `None` if it is unknown how many there were.

        A free model costs 0, however many tokens there were.
        """
        if not (self.input or self.output or self.cached):
            return 0.0
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached = min(usage.cached_tokens or 0, usage.input_tokens) if self.cached is not None else 0
        fresh = usage.input_tokens - cached
        return (fresh * self.input + cached * (self.cached or 0.0) + usage.output_tokens * self.output) / 1e6


def cost_of(price: Price | None, usage: Usage) -> float | None:
    """Return what model calls cost in US dollars, as the provider tells or by the price; `None` if it is unknown."""
    return usage.cost if usage.cost is not None or price is None else price.of(usage)


FREE = Price(0.0, 0.0)
"""The price of a simulated model."""


def dollars(usd: float) -> str:
    """Return an amount for people: `$1,234`, `$12.30`, `$0.41`, and two digits of what is less than ten cents."""
    if usd >= 1000 or usd == 0:
        return f"${usd:,.0f}"
    # It rounds to $0.10, so that two decimals have two digits from here on.
    if usd >= 0.095:
        return f"${usd:.2f}"
    digits = 1 - math.floor(math.log10(usd))
    return f"${usd:.{digits}f}"
