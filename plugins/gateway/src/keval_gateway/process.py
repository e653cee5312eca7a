"""Running `keval gateway` in a process of its own, for as long as a model provider needs it."""

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

from keval.plugin import PreflightError, Wire, supervised
from keval_gateway.address import KEY_VARIABLE, wire_urls

__all__ = ["RunningGateway", "run_gateway"]


@attrs.frozen
class RunningGateway:
    """Where a running gateway is reached: a base URL per wire protocol, and the API key that it admits."""

    urls: Mapping[Wire, str]
    key: str = attrs.field(repr=False)


@asynccontextmanager
async def run_gateway(*options: str, startup: float = 30.0, shutdown: float = 5.0) -> AsyncIterator[RunningGateway]:
    """Start `keval gateway OPTIONS` on a free port with a key of its own, yield where it is reached, and end it.

    `startup` and `shutdown` are how long the process may take for each, in seconds. It ends with this process, too.

    Raises:
        PreflightError: it does not come up; the message has what it wrote to stderr.
    """
    key = secrets.token_urlsafe(24)
    with tempfile.TemporaryFile() as errors:
        child = await _spawn(options, key, errors)
        try:
            port = await _port(child, options, errors, startup)
            yield RunningGateway(wire_urls(f"http://127.0.0.1:{port}"), key)
        finally:
            await _end(child, shutdown)


async def _spawn(options: Sequence[str], key: str, errors: IO[bytes]) -> Process:
    return await asyncio.create_subprocess_exec(
        # -P, as no module in the working directory may stand in for ours
        *supervised((sys.executable, "-P", "-m", "keval_gateway", *options, "--port=0", "--child")),
        stdin=PIPE,
        stdout=PIPE,
        stderr=errors,
        env={**os.environ, KEY_VARIABLE: key},
        # Ctrl-C is for keval, which finishes what is under way; the gateway must live until then.
        start_new_session=True,
    )


async def _port(child: Process, options: Sequence[str], errors: IO[bytes], startup: float) -> int:
    output = cast(asyncio.StreamReader, child.stdout)  # it is a pipe
    try:
        async with asyncio.timeout(startup):
            return int(orjson.loads(await output.readline())["port"])
    except (TimeoutError, ValueError, KeyError, TypeError) as error:
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip() or "it wrote nothing to stderr"
        how = f"within {startup:g} s" if isinstance(error, TimeoutError) else "as it should"
        command = " ".join(("keval gateway", *options, "--port=0"))
        raise PreflightError(f"the gateway did not come up {how}; try `{command}` by hand. It said:\n{said}") from error


async def _end(child: Process, shutdown: float) -> None:
    """Close the process's stdin, on which it exits; kill it if it does not."""
    cast(asyncio.StreamWriter, child.stdin).close()  # it is a pipe
    for further in (child.terminate, child.kill):
        try:
            async with asyncio.timeout(shutdown):
                await child.wait()
            return
        except TimeoutError:
            further()
    await child.wait()
