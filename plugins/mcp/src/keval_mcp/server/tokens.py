"""Where the token for a server comes from: it is given, a command prints it, or an authorization server issues it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from contextlib import aclosing
from typing import Protocol
from urllib.parse import urlsplit

import attrs
import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.utils import extract_field_from_www_auth, union_scopes
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from keval.plugin import supervised
from keval_mcp.server.auth import Auth, expiry
from keval_mcp.server.transports import certificates

__all__ = ["CommandToken", "CredentialsToken", "FixedToken", "Token", "TokenError", "refuses"]

_SECONDS = 30.0
"""How long a command, or a request to an authorization server, may take."""
_USED = 0.9
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
        self._token, self._until = token, None if lifetime is None else began + _USED * lifetime
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
            async with asyncio.timeout(_SECONDS):
                printed, said = await process.communicate()
        except TimeoutError:
            raise TokenError(f"'{name}' of auth.command printed no token within {_SECONDS:g} s") from None
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


class _Scoped(OAuthClientProvider):
    """Asks for the scope of the config, where the SDK asks for what the server names."""

    scope: str | None = None
    step_up = False

    async def _perform_authorization(self) -> httpx2.Request:
        named = self.context.client_metadata
        if self.scope is not None:
            named.scope = union_scopes(self.scope, named.scope) if self.step_up else self.scope
        return await super()._perform_authorization()


class _BySecret(_Scoped, ClientCredentialsOAuthProvider):
    pass


class _ByKey(_Scoped, PrivateKeyJWTOAuthProvider):
    pass


@attrs.define
class CredentialsToken:
    """A token that an authorization server issues for client credentials, by one of the SDK's providers."""

    url: str
    _provider: _BySecret | _ByKey

    @classmethod
    def by_secret(cls, auth: Auth, url: str) -> CredentialsToken:
        """Authenticate the client by its secret."""
        provider = _BySecret(
            url,
            _Memory(),
            auth.client_id or "",
            auth.client_secret or "",
            auth.method,
            auth.scope,
            auth.issuer,
        )
        provider.scope = auth.scope
        return cls(url, provider)

    @classmethod
    async def by_key(cls, auth: Auth, url: str, key: str) -> CredentialsToken:
        """Authenticate the client by a JWT that its private key signs. Raises TokenError if it cannot sign."""
        client = auth.client_id or ""
        signing = SignedJWTParameters(
            issuer=client, subject=client, signing_key=key, signing_algorithm=auth.algorithm
        ).create_assertion_provider()
        try:
            await signing(auth.issuer or "")
        except Exception as error:  # the signing library raises errors of many kinds for a key that is none
            raise TokenError(
                f"the private key does not sign with {auth.algorithm}: {error}; give a key in PEM, and the algorithm"
                " that goes with it as auth.algorithm"
            ) from error
        provider = _ByKey(url, _Memory(), client, signing, auth.scope, auth.issuer)
        provider.scope = auth.scope
        return cls(url, provider)

    def current(self) -> str | None:
        """Return the token issued last, until it expires."""
        context = self._provider.context
        return context.current_tokens.access_token if context.current_tokens and context.is_token_valid() else None

    async def renew(self, refused: httpx2.Response | None) -> str:
        """Ask the authorization server, which the MCP server names and the config confirms."""
        self._provider.step_up = refused is not None and refused.status_code == 403
        if not self._provider.step_up:
            self._provider.context.clear_tokens()
        async with httpx2.AsyncClient(verify=certificates(), timeout=_SECONDS) as client:
            challenge = refused or await self._challenge(client)
            try:
                await self._obtain(client, challenge)
            except OAuthFlowError as error:
                raise TokenError(f"{error}; see whether auth.issuer and the credentials are right") from error
        token = self._provider.context.current_tokens
        if token is None:
            raise TokenError("the authorization server issued no token")
        _expire_early(self._provider, token)
        return token.access_token

    async def _challenge(self, client: httpx2.AsyncClient) -> httpx2.Response:
        """Return how the server refuses a request without a token, which may say where to get one."""
        accepted = {"accept": "application/json, text/event-stream"}
        async with client.stream("GET", self.url, headers=accepted) as response:
            return response if response.status_code == 401 else httpx2.Response(401)

    async def _obtain(self, client: httpx2.AsyncClient, challenge: httpx2.Response) -> None:
        """Take the provider through its flow until it would send its request again, with a token."""
        request = httpx2.Request("POST", self.url)
        async with aclosing(self._provider.async_auth_flow(request)) as flow:
            await anext(flow)
            asked = await flow.asend(challenge)
            while asked is not request:
                try:
                    answered = await client.send(asked)
                except httpx2.HTTPError as error:
                    said = str(error) or type(error).__name__
                    raise TokenError(f"{_shown(asked.url)} cannot be asked: {said}") from error
                asked = await flow.asend(answered)


def _expire_early(provider: OAuthClientProvider, token: OAuthToken) -> None:
    if token.expires_in is not None:
        provider.context.token_expiry_time = time.time() + _USED * token.expires_in


def _shown(url: httpx2.URL) -> str:
    parts = urlsplit(str(url))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


@attrs.define
class _Memory:
    """Holds what the SDK's provider would store, for as long as the run lasts."""

    _tokens: OAuthToken | None = None
    _client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info
