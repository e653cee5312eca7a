"""Running `keval gateway` in a process of its own, for as long as a model provider needs it."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import tempfile
import warnings
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import IO, cast

import attrs
import orjson

from keval.errors import PluginWarning, PreflightError
from keval.processes import supervised
from keval.records.models import Wire
from keval_gateway.chat import KEY_VARIABLE, wire_urls

_MOST_TOLD = 2_000
"""Bytes of what the process wrote to stderr that are shown, from its end."""


@attrs.frozen
class RunningGateway:
    """Where a running gateway is reached: a base URL per wire protocol, and the API key that it admits."""

    urls: Mapping[Wire, str]
    key: str = attrs.field(repr=False)


@asynccontextmanager
async def run_gateway(*options: str, startup: float = 30.0, shutdown: float = 5.0) -> AsyncIterator[RunningGateway]:
    """Start `keval gateway` with options on a free port with a key of its own, yield where it is reached, and end it.

    `startup` and `shutdown` are how long the process may take for each, in seconds. It ends with this process, too. If
    it ends before, a warning says so at the end.

    Raises:
        PreflightError: it does not come up; the message has what it wrote to stderr.
    """
    key = secrets.token_urlsafe(24)
    with tempfile.TemporaryFile() as errors:
        process = await asyncio.create_subprocess_exec(
            # -P, as no module in the working directory may stand in for ours
            *supervised((sys.executable, "-P", "-m", "keval_gateway", *options, "--port=0", "--child")),
            # Nothing is written to it. When it closes, the process knows that keval has ended, even by SIGKILL.
            stdin=PIPE,
            stdout=PIPE,
            stderr=errors,
            env={**os.environ, KEY_VARIABLE: key},
            # Ctrl-C is for keval, which finishes what is under way; the gateway must live until then.
            start_new_session=True,
        )
        try:
            try:
                async with asyncio.timeout(startup):
                    port = orjson.loads(await cast(asyncio.StreamReader, process.stdout).readline())["port"]
            except (TimeoutError, ValueError, KeyError, TypeError) as error:
                how = f"within {startup:g} s" if isinstance(error, TimeoutError) else "as it should"
                by_hand = " ".join(("keval gateway", *options, "--port=0"))
                raise PreflightError(
                    f"the gateway of the simulated models did not come up {how}; try `{by_hand}` by hand. It said:\n"
                    f"{_said(errors)}"
                ) from error
            yield RunningGateway(wire_urls(f"http://127.0.0.1:{port}"), key)
        finally:
            code = await _end(process, shutdown)
        if code:
            told = f"the gateway of the simulated models ended (exit code {code}), and none could be asked any more"
            warnings.warn(f"{told}. It said:\n{_said(errors)}", PluginWarning, stacklevel=2)


async def _end(process: Process, seconds: float) -> int | None:
    """Close the process's stdin, on which it exits, and return its code; kill it if it does not within `seconds`."""
    cast(asyncio.StreamWriter, process.stdin).close()
    for further in (process.terminate, process.kill):
        try:
            async with asyncio.timeout(seconds):
                return await process.wait()
        except TimeoutError:
            further()
    await process.wait()
    return None


def _said(errors: IO[bytes]) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - _MOST_TOLD))
    return errors.read().decode(errors="replace").strip() or "it wrote nothing to stderr"
