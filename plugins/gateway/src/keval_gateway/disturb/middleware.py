"""The middleware `disturb`: faults on purpose between agents or judges and their models, in any run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import orjson

from keval.plugin import ConfigError, ModelError, ModelRequest, ModelResponse, Next
from keval_gateway.chat import ModelFault
from keval_gateway.disturb.damage import PAGE, first_half, refusal
from keval_gateway.disturb.draw import Draw
from keval_gateway.disturb.faults import Fault, Faults, read_faults
from keval_gateway.protocols import PROTOCOLS

__all__ = ["Disturb"]


@attrs.define(eq=False)
class Disturb:
    """Hits requests with `faults`, as the gateway does with `--disturb`; `path` names a file that has them."""

    faults: tuple[Fault, ...] = ()
    seed: int = 0
    path: Path | None = None
    _draw: Draw = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if (self.path is None) != bool(self.faults):
            raise ValueError("give `path:` of a file of faults, or `faults:` themselves, one of the two")
        self._draw = Draw(self._read())

    def _read(self) -> Faults:
        if self.path is None:
            return Faults(self.faults, self.seed)
        try:
            found = read_faults(self.path)
        except ConfigError as error:
            raise ValueError("; ".join(map(str, error.problems))) from error
        return attrs.evolve(found, seed=self.seed) if self.seed else found

    async def handle(self, request: ModelRequest, next: Next) -> ModelResponse:
        """Send a request on, unless a fault hits it."""
        fault = self._draw.fault(_identity(request)) if request.method == "POST" else None
        return await next(request) if fault is None else await _disturbed(fault, request, next)


def _identity(request: ModelRequest) -> bytes:
    asker = request.asker
    about = (asker.role, asker.label, asker.trial, asker.repetition, request.path)
    return f"{about!r}\0".encode() + request.body


async def _disturbed(fault: Fault, request: ModelRequest, next: Next) -> ModelResponse:
    if fault.status is not None:
        return _refused(fault, request, refusal(fault.status))
    if fault.content_type is not None:
        return ModelResponse.of(200, {"content-type": fault.content_type}, PAGE)
    if fault.drop == "before":
        # What a middleware raises is its own failure; a body that breaks off is the endpoint's.
        return ModelResponse(200, {}, _broken_off(b""))
    if fault.stall_seconds is not None:
        await asyncio.sleep(fault.stall_seconds)
        return await next(request)
    response = await next(request)
    half = first_half(await response.read())
    if fault.truncate:
        return ModelResponse.of(response.status, response.headers, half)
    return ModelResponse(response.status, response.headers, _broken_off(half))


def _refused(fault: Fault, request: ModelRequest, refusal: ModelFault) -> ModelResponse:
    headers = {"content-type": "application/json"}
    if fault.retry_after_header is not None:
        headers["retry-after"] = fault.retry_after_header
    return ModelResponse.of(refusal.status, headers, orjson.dumps(PROTOCOLS[request.wire].fault(refusal)))


async def _broken_off(body: bytes) -> AsyncIterator[bytes]:
    if body:
        yield body
    raise ModelError(f"the connection was closed {'midway' if body else 'before the response'} (disturb)")
