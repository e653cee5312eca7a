"""Where the token for a server comes from: it is given, or a command prints it; others are in `issued.py`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from typing import Protocol

import attrs
import httpx2
from mcp.client.auth.utils import extract_field_from_www_auth
from mcp.shared.auth import OAuthToken

from keval.plugin import supervised
from keval_mcp.server.auth import expiry

__all__ = ["EARLY", "SECONDS", "CommandToken", "FixedToken", "Token", "TokenError", "refuses"]

SECONDS = 30.0
"""How long a command, or a request to an authorization server, may take."""
EARLY = 0.9
"""The part of a token's life in which it is used: one that expires on the way to the server would be refused."""


class TokenError(httpx2.HTTPError):
    """There is no token to send, and why."""


class Token(Protocol):
    """A token for one server that may have to be renewed."""

    def current(self) -> str | None:
        """Return the token, if there is one that has not expired."""
        ...

    async def renew(self, refused: httpx2.Response | None) -> str:
        """Return a new token; `refused` is how the server refused the one before, if it did.

        Raises:
            TokenError: there is none.
        """
        ...


def refuses(response: httpx2.Response) -> bool:
    """Return whether a server refuses a request for its token (RFC 6750, section 3.1)."""
    if response.status_code == 403:
        return extract_field_from_www_auth(response, "error") == "insufficient_scope"
    return response.status_code == 401


@attrs.frozen
class FixedToken:
    """A token that the config gives."""

    token: str = attrs.field(repr=False)

    def current(self) -> str:
        """Return the token."""
        return self.token

    async def renew(self, refused: httpx2.Response | None) -> str:
        """Raise TokenError: there is no other one."""
        raise TokenError("the server refuses the token of auth.token; put a new one into its variable")


@attrs.define
class CommandToken:
    """A token that a command prints, for `lifetime` seconds if that is given."""

    command: Sequence[str]
    lifetime: float | None = None
    _token: str | None = attrs.field(default=None, init=False, repr=False)
    _until: float | None = attrs.field(default=None, init=False)

    def current(self) -> str | None:
        """Return what the command printed last, until it expires."""
        return self._token if self._until is None or time.time() < self._until else None

    async def renew(self, refused: httpx2.Response | None) -> str:
        """Run the command."""
        began = time.time()
        token, expires_in = self._read(await self._run())
        lifetime = self.lifetime or expires_in
        if lifetime is None and (until := expiry(token)) is not None:
            lifetime = until - began
        self._token, self._until = token, None if lifetime is None else began + EARLY * lifetime
        return token

    async def _run(self) -> str:
        name = os.path.basename(self.command[0])
        process = await asyncio.create_subprocess_exec(
            *supervised(self.command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(SECONDS):
                printed, said = await process.communicate()
        except TimeoutError:
            raise TokenError(f"'{name}' of auth.command printed no token within {SECONDS:g} s") from None
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()
        if process.returncode != 0:
            ending = said.decode("utf-8", "replace").strip()[-500:]
            raise TokenError(f"'{name}' of auth.command ended with {process.returncode}: {ending or 'it said nothing'}")
        return printed.decode("utf-8", "replace").strip()

    def _read(self, printed: str) -> tuple[str, float | None]:
        """Return a token and how long it is good for, from a plain text or a token response in JSON."""
        token, expires_in = printed, None
        if printed.startswith("{"):
            try:
                response = OAuthToken.model_validate_json(printed)
            except ValueError:
                token = ""
            else:
                token, expires_in = response.access_token, response.expires_in
        if not token or len(token.split()) != 1 or not token.isascii():
            raise TokenError(
                f"'{os.path.basename(self.command[0])}' of auth.command printed no token: a single word, or JSON with"
                " access_token, is needed on its standard output"
            )
        return token, expires_in
