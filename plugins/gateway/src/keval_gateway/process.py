"""Running `keval gateway` in a process of its own, for as long as a model provider needs it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import attrs

from keval.records.models import Wire
from keval_gateway.chat import KEY_VARIABLE, wire_urls
from keval_loopback.process import ServerProgram, run_server


@attrs.frozen
class RunningGateway:
    """Where a running gateway is reached: a base URL per wire protocol, and the API key that it admits."""

    urls: Mapping[Wire, str]
    key: str = attrs.field(repr=False)


@asynccontextmanager
async def run_gateway(*options: str, startup: float = 30.0, shutdown: float = 5.0) -> AsyncIterator[RunningGateway]:
    """Start `keval gateway OPTIONS` with a key of its own, yield where it is reached, and end it.

    `startup`, `shutdown` and what happens when it ends before are those of `keval_loopback.process.run_server`, and
    so is what it raises.
    """
    key = secrets.token_urlsafe(24)
    program = ServerProgram(
        module="keval_gateway",
        options=options,
        environ={KEY_VARIABLE: key},
        name="the gateway of the simulated models",
        by_hand=" ".join(("keval gateway", *options, "--port=0")),
        lost="no simulated model can be asked any more",
    )
    async with run_server(program, startup=startup, shutdown=shutdown) as base:
        yield RunningGateway(wire_urls(base), key)
