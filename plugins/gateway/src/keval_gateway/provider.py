"""The model provider `simulated`: the gateway in a process of its own, for the length of a run."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import IO, cast

import attrs
import orjson

from keval import Endpoint, PreflightError
from keval_gateway.urls import wire_urls

__all__ = ["KEY_VARIABLE", "SimulatedProvider"]

KEY_VARIABLE = "KEVAL_GATEWAY_KEY"
"""The environment variable that carries the token; an argument would show in the process list."""


@attrs.frozen
class SimulatedProvider:
    """Serves every name after `simulated/`: `forgetful` forgets, `careless` ignores tools, all others are the same.

    `startup` and `shutdown` are how long the process may take for each, in seconds.
    """

    startup: float = 30.0
    shutdown: float = 5.0

    @asynccontextmanager
    async def open(self, names: Sequence[str], seed: int) -> AsyncIterator[Mapping[str, Endpoint]]:
        """Start the gateway, yield an endpoint per name, and end it.

        Raises:
            PreflightError: it does not come up; the message shows what it wrote to stderr.
        """
        token = secrets.token_urlsafe(24)
        with tempfile.TemporaryFile() as errors:
            child = await _spawn(seed, token, errors)
            try:
                port = await self._port(child, errors)
                urls = wire_urls(f"http://127.0.0.1:{port}")
                yield {name: Endpoint(name, urls, token, simulated=True, wants_trial=True) for name in names}
            finally:
                await self._end(child)

    async def _port(self, child: Process, errors: IO[bytes]) -> int:
        output = cast(asyncio.StreamReader, child.stdout)  # it is a pipe
        try:
            async with asyncio.timeout(self.startup):
                return int(orjson.loads(await output.readline())["port"])
        except (TimeoutError, ValueError, KeyError, TypeError) as error:
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip() or "it wrote nothing to stderr"
            how = f"within {self.startup:g} s" if isinstance(error, TimeoutError) else "as it should"
            raise PreflightError(
                f"the gateway for simulated models did not come up {how};"
                f" try `keval gateway --simulate --port 0` by hand. It said:\n{said}"
            ) from error

    async def _end(self, child: Process) -> None:
        """Close the child's stdin, on which it exits; kill it if it does not."""
        cast(asyncio.StreamWriter, child.stdin).close()  # it is a pipe
        try:
            async with asyncio.timeout(self.shutdown):
                await child.wait()
        except TimeoutError:
            child.kill()
            await child.wait()


async def _spawn(seed: int, token: str, errors: IO[bytes]) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # no module in the working directory may stand in for ours
        "-m",
        "keval_gateway",
        "--simulate",
        "--port=0",
        f"--seed={seed}",
        "--child",
        stdin=PIPE,
        stdout=PIPE,
        stderr=errors,
        env={**os.environ, KEY_VARIABLE: token},
        # Ctrl-C is for keval, which finishes what is under way; the gateway must live until then.
        start_new_session=True,
    )
