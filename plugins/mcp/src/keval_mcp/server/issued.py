"""Tokens that an authorization server issues, by the MCP SDK's own OAuth."""

from __future__ import annotations

import time
from contextlib import aclosing
from urllib.parse import urlsplit

import attrs
import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.utils import union_scopes
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from keval_mcp.server.auth import Auth
from keval_mcp.server.browser import Browser
from keval_mcp.server.tokens import EARLY, SECONDS, TokenError
from keval_mcp.server.transports import certificates

__all__ = ["IssuedToken"]

_EXPIRED = 1.0
"""A time in the past, as Unix time."""


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


class _ByPerson(_Scoped):
    pass


@attrs.define
class IssuedToken:
    """A token for the server at `url`, by one of the SDK's providers: for client credentials, or for a person."""

    url: str
    _provider: _BySecret | _ByKey | _ByPerson

    @classmethod
    def by_secret(cls, auth: Auth, url: str) -> IssuedToken:
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
    async def by_key(cls, auth: Auth, url: str, key: str) -> IssuedToken:
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

    @classmethod
    def by_browser(cls, auth: Auth, url: str, label: str) -> IssuedToken:
        """Let a person log in, as a client that is known, has a metadata document, or registers itself."""
        port = {} if auth.port is None else {"port": auth.port}
        browser = Browser(label, auth.browser if isinstance(auth.browser, tuple) else (), **port)
        about = {
            "redirect_uris": [browser.redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "scope": auth.scope,
        }
        known: OAuthClientInformationFull | None = None
        if auth.client_id is not None:
            method = "none" if auth.client_secret is None else auth.method
            credentials = {"client_id": auth.client_id, "client_secret": auth.client_secret, "issuer": auth.issuer}
            known = OAuthClientInformationFull.model_validate(
                {**about, **credentials, "token_endpoint_auth_method": method}
            )
        described = OAuthClientMetadata.model_validate({**about, "client_name": "keval", "response_types": ["code"]})
        provider = _ByPerson(url, described, _Memory(None, known), browser.open, browser.returned, auth.client_metadata)
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
            self._provider.context.token_expiry_time = _EXPIRED  # what may be refreshed is, before all else
        async with httpx2.AsyncClient(verify=certificates(), timeout=SECONDS) as client:
            challenge = refused or await self._challenge(client)
            try:
                await self._obtain(client, challenge)
            except OAuthFlowError as error:
                raise TokenError(f"{error}; see whether auth.issuer and the credentials are right") from error
            except OSError as error:
                raise TokenError(
                    f"no page for a login can be opened: {error}; correct auth.browser or auth.port"
                ) from error
        token = self._provider.context.current_tokens
        if token is None:
            raise TokenError("the authorization server issued no token")
        _expire_early(self._provider, token)
        return token.access_token

    async def _challenge(self, client: httpx2.AsyncClient) -> httpx2.Response:
        """Return how the server refuses a request without a token, which may say where to get one."""
        accepted = {"accept": "application/json, text/event-stream"}
        ping = {"jsonrpc": "2.0", "id": "login", "method": "ping"}
        for method, body in (("POST", ping), ("GET", None)):  # the latter for SSE
            async with client.stream(method, self.url, headers=accepted, json=body) as response:
                if response.status_code == 401:
                    return response
        return httpx2.Response(401)

    async def _obtain(self, client: httpx2.AsyncClient, challenge: httpx2.Response) -> None:
        """Take the provider through its flow until it would send its request again, with a token."""
        request = httpx2.Request("POST", self.url)
        async with aclosing(self._provider.async_auth_flow(request)) as flow:
            asked = await anext(flow)
            if asked is not request:  # it refreshes; tokens that cannot be are dropped
                asked = await flow.asend(await _answer(client, asked))
                if self._provider.context.current_tokens is not None:
                    return
            asked = await flow.asend(challenge)
            while asked is not request:
                asked = await flow.asend(await _answer(client, asked))


async def _answer(client: httpx2.AsyncClient, asked: httpx2.Request) -> httpx2.Response:
    try:
        return await client.send(asked)
    except httpx2.HTTPError as error:
        said = str(error) or type(error).__name__
        raise TokenError(f"{_shown(asked.url)} cannot be asked: {said}") from error


def _expire_early(provider: OAuthClientProvider, token: OAuthToken) -> None:
    if token.expires_in is not None:
        provider.context.token_expiry_time = time.time() + EARLY * token.expires_in


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
