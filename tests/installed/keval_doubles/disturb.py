"""Faults of a model's endpoint, made on purpose by the middleware `double/disturb`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from hashlib import blake2b
from typing import Literal

import attrs
import orjson

from keval.errors import ModelError
from keval.records.models import ModelRequest, ModelResponse, Next
from keval_gateway.chat import ModelFault
from keval_gateway.protocols import PROTOCOLS

_MOST_REMEMBERED = 200_000
"""Requests whose number is known, some 30 MB. The one that was made longest ago is forgotten first."""


@attrs.frozen
class Fault:
    """A fault and the share of requests that it hits. It is one of these.

    `status`: the request is refused with it, with the header `retry_after` if there is one: seconds, a date, any text.
    `drop`: the connection is closed before the response, or midway. `stall_seconds`: the request waits before it is
    answered. `content_type`: an HTML page comes in place of the answer, called so. `truncate`: the answer ends after
    its first half, as if that were all.
    """

    share: float
    status: int | None = None
    retry_after: float | str | None = None
    drop: Literal["before", "midway"] | None = None
    stall_seconds: float | None = None
    content_type: str | None = None
    truncate: bool = False

    @property
    def retry_after_header(self) -> str | None:
        """The header `Retry-After`."""
        return None if self.retry_after is None else str(self.retry_after).removesuffix(".0")


@attrs.define(eq=False)
class Disturb:
    """Hits requests with `faults`, at most one each.

    Which fault it is depends on the `seed`, on the request, and on how often that request has been made. So a request
    that is repeated meets a fault of its own, and which request comes first makes no difference.
    """

    faults: tuple[Fault, ...]
    seed: int = 0
    _times: dict[bytes, int] = attrs.field(factory=dict, init=False, repr=False)

    async def handle(self, request: ModelRequest, next: Next) -> ModelResponse:
        """Send a request on, unless a fault hits it."""
        fault = self.fault(_identity(request)) if request.method == "POST" else None
        return await next(request) if fault is None else await _disturbed(fault, request, next)

    def fault(self, request: bytes) -> Fault | None:
        """Return the fault that hits a request, which is known by these bytes, or `None`."""
        identity = blake2b(request, digest_size=16).digest()
        # Taken out and put in again, so that it is the last one to be forgotten.
        times = self._times[identity] = self._times.pop(identity, 0) + 1
        if len(self._times) > _MOST_REMEMBERED:
            del self._times[next(iter(self._times))]
        drawn = blake2b(identity + f"{self.seed}/{times}".encode(), digest_size=8).digest()
        point = int.from_bytes(drawn) / 2**64
        for fault in self.faults:
            point -= fault.share
            if point < 0:
                return fault
        return None


def _identity(request: ModelRequest) -> bytes:
    asker = request.asker
    # So that two trials that ask the same meet faults of their own.
    about = (asker.role, asker.label, asker.trial, asker.repetition, request.path)
    return f"{about!r}\0".encode() + request.body


async def _disturbed(fault: Fault, request: ModelRequest, next: Next) -> ModelResponse:
    if fault.status is not None:
        told = fault.retry_after_header
        headers = {"content-type": "application/json", **({} if told is None else {"retry-after": told})}
        refusal = ModelFault(fault.status, f"refused on purpose with HTTP {fault.status} (disturb)")
        return ModelResponse.of(fault.status, headers, orjson.dumps(PROTOCOLS[request.wire].fault(refusal)))
    if fault.content_type is not None:
        return ModelResponse.of(200, {"content-type": fault.content_type}, PAGE)
    if fault.drop == "before":
        # What a middleware raises is its own failure; a body that breaks off is the endpoint's.
        return ModelResponse(200, {}, _broken_off(b""))
    if fault.stall_seconds is not None:
        await asyncio.sleep(fault.stall_seconds)
        return await next(request)
    response = await next(request)
    body = await response.read()
    half = body[: len(body) // 2]
    if fault.truncate:
        return ModelResponse.of(response.status, response.headers, half)
    return ModelResponse(response.status, response.headers, _broken_off(half))


async def _broken_off(body: bytes) -> AsyncIterator[bytes]:
    if body:
        yield body
    raise ModelError(f"the connection was closed {'midway' if body else 'before the response'} (disturb)")


PAGE = b"<!doctype html><title>Bad gateway</title><p>An HTML page in place of an answer (disturb)."
