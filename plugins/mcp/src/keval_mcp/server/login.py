"""Logging in to a server over HTTP: every request carries a token, which is renewed in time, and when it is refused.

The MCP SDK's own OAuth providers let one request pass at a time, so that the calls of concurrent trials would wait for
each other. Here they are asked for tokens only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable

import attrs
import httpx2

from keval.errors import PreflightError
from keval_mcp.server.options import Auth, find_command
from keval_mcp.server.tokens import CommandToken, FixedToken, IssuedToken, Token, TokenError, refuses
from keval_mcp.server.transports import RENEWABLE


@attrs.define(eq=False)
class Login(httpx2.Auth):
    """Adds a token to every request of all sessions with the server `label`; see `keval.records.servers.ServerLogin`.

    `prepare` is awaited before the first session.
    """

    label: str
    auth: Auth
    url: str
    token: Token = attrs.field(init=False)
    _learn: Callable[[Iterable[tuple[str, str]]], None] | None = attrs.field(default=None, init=False)
    _renewing: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    def learn_with(self, learn: Callable[[Iterable[tuple[str, str]]], None]) -> None:
        """Tell `learn` every token before it is used."""
        self._learn = learn

    async def prepare(self) -> None:
        """Find what makes tokens.

        Raises:
            PreflightError: the command is not found, or the key cannot be read or does not sign.
        """
        auth, label = self.auth, self.label
        if auth.token is not None:
            self.token = FixedToken(auth.token)
        elif auth.command:
            program = find_command(label, auth.command[0], {}, None)
            self.token = CommandToken((program, *auth.command[1:]), auth.lifetime)
        elif auth.browser:
            self.token = IssuedToken.by_browser(auth, self.url, label)
        elif auth.client_secret is not None:
            self.token = IssuedToken.by_secret(auth, self.url)
        else:
            try:
                self.token = await IssuedToken.by_key(auth, self.url, _key(auth, label))
            except TokenError as error:
                raise PreflightError(f"server '{label}': {error}") from error

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send the request with a token, and once more with a new one if the server refuses it.

        Raises:
            TokenError: there is no token, or the server refuses the new one, too.
        """
        used = self.token.current()
        if used is None:
            used = await self._renew(None, None)
        request.headers["authorization"] = f"Bearer {used}"
        request.extensions = {**request.extensions, RENEWABLE: refuses}
        response = yield request
        if not refuses(response):
            return
        request.headers["authorization"] = f"Bearer {await self._renew(used, response)}"
        response = yield request
        if refuses(response):
            said = response.headers.get("www-authenticate", "")
            raise TokenError(
                f"the server refuses a new token with HTTP {response.status_code}{f' ({said})' if said else ''};"
                " see whether it is for this server and has the scopes that it asks for"
            )

    async def _renew(self, used: str | None, refused: httpx2.Response | None) -> str:
        """Return a token that is not the one that was `used`; concurrent requests get one together."""
        async with self._renewing:
            token = self.token.current()
            if token is None or token == used:
                token = await self.token.renew(refused)
                if self._learn is not None:
                    self._learn([(f"the token of {self.label}", token)])
            return token


def _key(auth: Auth, label: str) -> str:
    if auth.private_key_file is None:
        return auth.private_key or ""
    try:
        return auth.private_key_file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PreflightError(
            f"server '{label}': the private key {auth.private_key_file} cannot be read: {error};"
            " correct auth.private_key_file"
        ) from error
