"""Tokens that a command of the user's prints: those of `az`, `gcloud`, `kubectl` and OAuth clients, or plain ones."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from datetime import UTC, datetime
from errno import ENOENT
from shutil import which
from typing import Any

import attrs

from keval.errors import KevalError
from keval.processes import search_path, supervised
from keval_clients.network import key_problem
from keval_clients.replies import quoted

_SHAPES = (
    ("accessToken", "expires_on"),  # az account get-access-token
    ("credential.access_token", "credential.token_expiry"),  # gcloud config config-helper --format=json
    ("status.token", "status.expirationTimestamp"),  # kubectl's ExecCredential
    ("access_token", "expires_in"),  # OAuth 2.0 (RFC 6749, section 5.1)
    ("token", "expires_at"),
)
"""Where a token and its end stand in what commands print as JSON."""


class PrintedTokenError(KevalError):
    """A command printed no token, and why."""


@attrs.frozen
class Token:
    """A token, or the parts of one with blanks between; `expires` is in Unix seconds, `None` if its end is unknown."""

    value: str = attrs.field(repr=False)
    expires: float | None = None


async def printed_token(command: Sequence[str], seconds: float) -> Token:
    """Run a command, without a shell and for so long at most, and read what it prints. Raises PrintedTokenError."""
    path = search_path()
    if (program := which(command[0], path=path)) is None:
        raise PrintedTokenError(f"it cannot be started: {os.strerror(ENOENT)}")
    process = await asyncio.create_subprocess_exec(
        *supervised((program, *command[1:])),
        env={**os.environ, "PATH": path},
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            printed, said = await process.communicate()
    except TimeoutError:
        raise PrintedTokenError(f"it did not end within {seconds:g} s") from None
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    if process.returncode != 0:
        ending = said.decode("utf-8", "replace").strip()
        raise PrintedTokenError(f"it ended with code {process.returncode}" + (f": {quoted(ending)}" if ending else ""))
    return read_token(printed.decode("utf-8", "replace").strip())


def read_token(text: str) -> Token:
    """Read what a command printed, which is in no error. Raises PrintedTokenError: it is no token."""
    if not text:
        raise PrintedTokenError("it printed nothing")
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        value, end = text, _end_of_jwt(text)
    else:
        for at, until in _SHAPES:
            value, end = _at(data, at), _at(data, until)
            if isinstance(value, str):
                break
        else:
            raise PrintedTokenError(f"it printed JSON without a token; its keys are {', '.join(map(repr, data))}")
    if problem := key_problem("what it printed", value):
        raise PrintedTokenError(problem)
    return Token(value, _end(end, relative="expires_in" in (data or {})) if end is not None else _end_of_jwt(value))


def _at(data: Any, path: str) -> Any:
    for step in path.split("."):
        data = data.get(step) if isinstance(data, dict) else None
    return data


def _end(end: Any, *, relative: bool) -> float:
    """Read when a token ends: Unix seconds, seconds from now, or a date, which is UTC if it does not say."""
    try:
        seconds = float(end)
    except (TypeError, ValueError):
        pass
    else:
        return seconds + time.time() if relative else seconds
    try:
        date = datetime.fromisoformat(end)
    except (TypeError, ValueError) as error:
        raise PrintedTokenError("what it printed says no date of the token's end that can be read") from error
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def _end_of_jwt(token: str) -> float | None:
    """Return the end that a token says itself, if it is a JSON Web Token (RFC 7519, section 4.1.4)."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
        return float(claims["exp"])
    except (ValueError, TypeError, KeyError):
        return None
