"""Tokens that a command of the user's prints: those of `az`, `gcloud`, `kubectl` and OAuth clients, or plain ones."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shlex
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from keval.errors import ModelError
from keval.processes import search_path
from keval_clients.network import key_problem
from keval_clients.replies import quoted
from keval_providers.tokens import RenewedToken, Token

_TIMEOUT = 60.0
"""Seconds that a command may take: one that asks the user something would never end."""

_SHAPES = (
    ("accessToken", "expires_on"),  # az account get-access-token
    ("credential.access_token", "credential.token_expiry"),  # gcloud config config-helper --format=json
    ("status.token", "status.expirationTimestamp"),  # kubectl's ExecCredential
    ("access_token", "expires_in"),  # OAuth 2.0 (RFC 6749, section 5.1)
    ("token", "expires_at"),
)
"""Where a token and its end stand in what commands print as JSON."""


def command_token(command: Sequence[str]) -> RenewedToken:
    """Return the token that a command prints, which is run again before the token ends."""
    told = shlex.join(command)
    remedy = "run it in a terminal to see what it says"
    return RenewedToken(f"the command `{told}`", remedy, partial(asyncio.to_thread, _run, command))


def _run(command: Sequence[str]) -> Token:
    """Run a command, without a shell, and read what it prints. Raises ModelError."""
    try:
        done = subprocess.run(  # noqa: S603 - a program that the config names
            command,
            env={**os.environ, "PATH": search_path()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ModelError(f"it did not end within {_TIMEOUT:g} s") from error
    except OSError as error:
        raise ModelError(f"it cannot be started: {error.strerror or error}") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise ModelError(f"it ended with code {done.returncode}" + (f": {quoted(said)}" if said else ""))
    return read_token(done.stdout.decode("utf-8", "replace").strip())


def read_token(text: str) -> Token:
    """Read what a command printed, which is in no error. Raises ModelError: it is no token."""
    if not text:
        raise ModelError("it printed nothing")
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
            raise ModelError(f"it printed JSON without a token; its keys are {', '.join(map(repr, data))}")
    if problem := key_problem("what it printed", value):
        raise ModelError(problem)
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
        raise ModelError("what it printed says no date of the token's end that can be read") from error
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
