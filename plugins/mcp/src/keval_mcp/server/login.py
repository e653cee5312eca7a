"""Logging in to a server over HTTP: every request carries a token, which is renewed in time, and when it is refused.

The MCP SDK's own OAuth providers let one request pass at a time, so that the calls of concurrent trials would wait for
each other. Here they are asked for tokens only.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import random
import sys
import time
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing, closing, suppress
from typing import TypeAlias
from urllib.parse import parse_qsl, urlsplit
from weakref import WeakKeyDictionary

import attrs
import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.utils import extract_field_from_www_auth
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from keval.errors import PreflightError
from keval_clients.network import SYSTEM, Network, Tls
from keval_clients.printed_token import PrintedTokenError, Token, printed_token
from keval_loopback.loopback import listen
from keval_mcp.server.bodies import bound
from keval_mcp.server.options import Auth, shown_url
from keval_mcp.server.transports import RENEWABLE, tls_remedy

SECONDS = 30.0
"""How long a command, or a request to an authorization server, may take."""
EARLY = 0.9
"""The part of a token's life in which it is used: one that expires on the way to the server would be refused."""
_EXPIRED = 1.0
"""A time in the past, as Unix time."""
_LARGEST = 2**20
"""Bytes of a reply of an authorization server."""

_log = logging.getLogger("keval_mcp")


class TokenError(httpx2.HTTPError):
    """There is no token to send, and why."""


def refuses(response: httpx2.Response) -> bool:
    """Return whether a server refuses a request for its token (RFC 6750, section 3.1)."""
    if response.status_code == 403:
        return extract_field_from_www_auth(response, "error") == "insufficient_scope"
    return response.status_code == 401


@attrs.define
class _Memory:
    """Holds what the SDK's provider would store, for as long as the run lasts."""

    client: OAuthClientInformationFull | None = None
    tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class _ByPerson(OAuthClientProvider):
    """Leads to the `issuer` of the config alone, if there is one, as the SDK's providers for client credentials do."""

    issuer: str | None = None

    def _select_authorization_server(self, advertised: list[str]) -> str:
        return next((each for each in advertised if each.rstrip("/") == (self.issuer or "").rstrip("/")), advertised[0])

    def _expected_issuer(self) -> str:
        return self.issuer or super()._expected_issuer()


async def _provider(label: str, auth: Auth, url: str) -> OAuthClientProvider:
    """Return what asks an authorization server. Raises PreflightError: the key cannot be read, or does not sign."""
    memory, client, secret = _Memory(), auth.client_id or "", auth.client_secret
    if auth.browser:
        # A client that is known, has a metadata document, or registers itself.
        command = {"command": auth.browser} if isinstance(auth.browser, tuple) else {}
        browser = Browser(label, port=auth.port or _free_port(), **command)
        about = OAuthClientMetadata.model_validate({"client_name": "keval", "redirect_uris": [browser.redirect_uri]})
        if client:
            memory.client = OAuthClientInformationFull(client_id=client, client_secret=secret, issuer=auth.issuer)
            memory.client.token_endpoint_auth_method = "none" if secret is None else auth.method
        provider = _ByPerson(url, about, memory, browser.open, browser.returned, auth.client_metadata)
        provider.issuer = auth.issuer
        return provider
    if secret is not None:
        return ClientCredentialsOAuthProvider(url, memory, client, secret, auth.method, issuer=auth.issuer)
    file = auth.private_key_file
    try:
        key = file.read_text(encoding="utf-8") if file is not None else auth.private_key or ""
        signing = SignedJWTParameters(
            issuer=client, subject=client, signing_key=key, signing_algorithm=auth.algorithm
        ).create_assertion_provider()
        # A key that does not fit would otherwise show only when the first token is asked for.
        await signing(auth.issuer or "")
    except Exception as error:  # the signing library raises errors of many kinds for a key that is none
        told = f"the private key does not sign with {auth.algorithm}: {error}; give a key in PEM"
        raise PreflightError(f"{told}, and the algorithm that goes with it as auth.algorithm") from error
    return PrivateKeyJWTOAuthProvider(url, memory, client, signing, issuer=auth.issuer)


_PATH = "/callback"
_DONE = b"keval goes on; this page can be closed."
_REFUSED = b"This is not the page that keval has opened."
_HEAD = b"HTTP/1.1 %s\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"


def _free_port() -> int:
    """Return a free port below those that systems give to whoever asks for any (32768 and more)."""
    for port in random.sample(range(20_000, 32_768), 100):
        with suppress(OSError), listen(port):
            return port
    raise PreflightError("no free port of loopback was found for a login; give one as auth.port")


@attrs.define(eq=False)
class Browser:
    """Opens the login page for the server `label` by a `command`, which is that of the person's own browser.

    Whoever logs in comes back to `port` on loopback (RFC 8252, section 7.3). Nobody else is let in: it takes the
    `state` of the page, which the authorization server gives back.
    """

    label: str
    command: Sequence[str] = (sys.executable, "-m", "webbrowser")
    # Chosen before anybody listens, because the client is registered with the redirect URI.
    port: int = attrs.field(factory=_free_port)
    _state: str | None = attrs.field(default=None, init=False)
    _back: asyncio.Future[AuthorizationCodeResult] = attrs.field(init=False)
    _server: asyncio.Server = attrs.field(init=False)

    @property
    def redirect_uri(self) -> str:
        """Where the authorization server sends whoever has logged in."""
        return f"http://127.0.0.1:{self.port}{_PATH}"

    async def open(self, url: str) -> None:
        """Open the login page, and begin to wait for who comes back. Raises OSError: that is not possible."""
        self._state = _parameters(url).get("state")
        self._back = asyncio.get_running_loop().create_future()
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", self.port)
        _log.warning("server '%s' wants a login: %s", self.label, url)
        try:
            shown = await asyncio.create_subprocess_exec(*self.command, url, stdin=DEVNULL, stdout=DEVNULL)
            await shown.wait()
        except BaseException:
            self._server.close()
            raise

    async def returned(self) -> AuthorizationCodeResult:
        """Wait for who was sent back, and return what the authorization server gave them."""
        try:
            return await self._back
        finally:
            self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Any program on this machine may come: one that says nothing, writes no line or no URL, or hangs up.
        with closing(writer), suppress(OSError, ValueError):
            async with asyncio.timeout(SECONDS):
                target = (await reader.readline()).decode("latin-1").split(" ")[1:2]
            url = target[0] if target else ""
            given = _parameters(url)
            known = urlsplit(url).path == _PATH and given.get("state") == self._state
            status, said = (b"200 OK", _DONE) if known else (b"403 Forbidden", _REFUSED)
            writer.write(_HEAD % (status, len(said)) + said)
            await writer.drain()
            if known and not self._back.done():
                if "error" in given:  # (RFC 6749, section 4.1.2.1)
                    why = ": ".join(given[name] for name in ("error", "error_description") if name in given)
                    self._back.set_exception(OAuthFlowError(f"the authorization server sent the person back: {why}"))
                    return
                self._back.set_result(
                    AuthorizationCodeResult(code=given.get("code", ""), state=given.get("state"), iss=given.get("iss"))
                )


def _parameters(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


Learn: TypeAlias = Callable[[Iterable[tuple[str, str]]], None]
_LOGINS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[Auth | None, str, Tls], Login]] = WeakKeyDictionary()


@attrs.define(eq=False)
class Login(httpx2.Auth):
    """Adds a token to every request of all sessions with the server `label`; see `keval.records.servers.ServerLogin`.

    Without `auth`, it is known by its certificate in `tls` at most. `prepare` is awaited before the first session.
    All conditions of a run, and all contexts with the same options, have one, so that a person logs in once.
    """

    label: str
    auth: Auth | None
    url: str
    tls: Tls = SYSTEM
    _provider: OAuthClientProvider | None = attrs.field(default=None, init=False)
    _token: str | None = attrs.field(default=None, init=False, repr=False)
    _until: float = attrs.field(default=math.inf, init=False)
    _learners: list[Learn] = attrs.field(factory=list, init=False)
    _renewing: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    @classmethod
    def shared(cls, label: str, auth: Auth | None, url: str, tls: Tls) -> Login:
        """Return the login of these options in the running event loop, which is made if there is none."""
        logins = _LOGINS.setdefault(asyncio.get_running_loop(), {})
        return logins.setdefault((auth, url, tls), cls(label, auth, url, tls))

    def learn_with(self, learn: Learn) -> None:
        """Tell `learn` the token that there is, and every new one before it is used."""
        self._learners.append(learn)
        if self._token is not None:
            learn([(f"the token of {self.label}", self._token)])

    async def prepare(self) -> None:
        """Find what makes tokens.

        Raises:
            PreflightError: a key or a certificate cannot be read, or a key does not fit.
        """
        if self.tls.verify is False:
            _log.warning("server '%s' may be anybody, and its traffic be read, as 'verify' is false", self.label)
        auth = self.auth
        try:
            Network.to("https://", self.tls)
            if auth is not None and auth.token is not None:
                self._token = self._token or auth.token
            elif auth is not None and not auth.command and self._provider is None:
                self._provider = await _provider(self.label, auth, self.url)
        except PreflightError as error:
            raise PreflightError(f"server '{self.label}': {error}") from error

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send the request with a token, and once more with a new one if the server refuses it.

        Raises:
            TokenError: there is no token, or the server refuses the new one, too.
        """
        used = await self._valid()
        request.headers["authorization"] = f"Bearer {used}"
        # A refusal that is answered with a new token is not noted as an error of the server.
        request.extensions = {**request.extensions, RENEWABLE: refuses}
        response = yield request
        if not refuses(response):
            return
        request.headers["authorization"] = f"Bearer {await self._valid(used, response)}"
        response = yield request
        if refuses(response):
            said = response.headers.get("www-authenticate", "")
            raise TokenError(
                f"the server refuses a new token with HTTP {response.status_code}{f' ({said})' if said else ''};"
                " see whether it is for this server and has the scopes that it asks for"
            )

    async def _valid(self, used: str | None = None, refused: httpx2.Response | None = None) -> str:
        """Return a token that is not the one that was `used`; concurrent requests get one together."""
        async with self._renewing:
            # Another request may have renewed it while this one waited for the lock.
            if self._token is None or self._token == used or time.time() >= self._until:
                began, found = time.time(), await self._new(refused)
                self._until = math.inf if found.expires is None else began + EARLY * (found.expires - began)
                self._token = found.value
                for learn in self._learners:  # before the first use, so that no error or record can show it
                    learn([(f"the token of {self.label}", found.value)])
            return self._token

    async def _new(self, refused: httpx2.Response | None) -> Token:
        """Get a new token; `refused` is how the server refused the one before, if it did. Raises TokenError."""
        auth, began = self.auth, time.time()  # what a command prints may be as old as that
        if self._provider is not None:
            return await self._issued(self._provider, refused)
        if auth is None or not auth.command:
            raise TokenError("the server refuses the token of auth.token; put a new one into its variable")
        try:
            found = await printed_token(auth.command, SECONDS)
        except PrintedTokenError as error:
            told = f"'{os.path.basename(auth.command[0])}' of auth.command gave no token: {error}"
            raise TokenError(f"{told}; run it in a terminal to see what it says") from error
        return found if auth.lifetime is None else attrs.evolve(found, expires=began + auth.lifetime)

    async def _issued(self, provider: OAuthClientProvider, refused: httpx2.Response | None) -> Token:
        """Ask the authorization server, which the MCP server names and the config confirms."""
        context, request = provider.context, httpx2.Request("POST", self.url)
        before = context.current_tokens
        if refused is None or refused.status_code == 401:
            context.token_expiry_time = _EXPIRED  # what may be refreshed is, before all else
        try:
            async with aclosing(provider.async_auth_flow(request)) as flow:
                asked = await anext(flow)
                # Until the provider would send the request with a new token.
                while asked is not request or (context.current_tokens or before) is before:
                    answer = await (self._challenge(refused) if asked is request else self._send(asked))
                    if answer.status_code in (400, 403) and b'"redirect_uris"' in asked.content:
                        # Who registers clients may not know the server's scopes; these are optional (RFC 7591, 2).
                        known = {key: value for key, value in json.loads(asked.content).items() if key != "scope"}
                        answer = await self._send(httpx2.Request("POST", asked.url, json=known))
                    asked = await flow.asend(answer)
        except OAuthFlowError as error:
            raise TokenError(f"{error}; see whether auth.issuer and the credentials are right") from error
        except OSError as error:
            told = f"no page for a login can be opened: {error}; correct auth.browser or auth.port"
            raise TokenError(told) from error
        token = context.current_tokens
        assert token is not None  # noqa: S101 - for mypy
        return Token(token.access_token, None if token.expires_in is None else time.time() + token.expires_in)

    async def _challenge(self, refused: httpx2.Response | None) -> httpx2.Response:
        """Return how the server refuses a request, which may say where to get a token, and for which scope."""
        accepted = {"accept": "application/json, text/event-stream"}
        ping = {"jsonrpc": "2.0", "id": "login", "method": "ping"}
        for method, body in (("POST", ping), ("GET", None)):  # the latter for SSE
            if refused is None:
                found = await self._send(httpx2.Request(method, self.url, headers=accepted, json=body), whole=False)
                refused = found if found.status_code == 401 else None
        # The SDK's flow begins with a refusal, also where the server answers without a token.
        refused = refused or httpx2.Response(401)
        if self.auth is None or self.auth.scope is None or refused.status_code == 403:
            return refused
        told = refused.headers.get("www-authenticate", "Bearer")
        return httpx2.Response(401, headers={"www-authenticate": f'Bearer scope="{self.auth.scope}", {told}'})

    async def _send(self, request: httpx2.Request, *, whole: bool = True) -> httpx2.Response:
        """Send a request; what is not read as a `whole` has its head alone. Raises TokenError."""
        try:
            # httpx's own timeout bounds the time between two bytes.
            async with (
                asyncio.timeout(SECONDS),
                httpx2.AsyncClient(**Network.to(str(request.url), self.tls).client, timeout=SECONDS) as client,
            ):
                response = await client.send(request, stream=True)
                bound(response, _LARGEST, lambda error: None)
                if whole:
                    await response.aread()
                await response.aclose()
                return response
        except (TimeoutError, httpx2.HTTPError) as error:
            late = isinstance(error, TimeoutError | httpx2.TimeoutException)
            said = f"it takes more than {SECONDS:g} s" if late else str(error) or type(error).__name__
            place = shown_url(str(request.url))
            raise TokenError(f"{place} cannot be asked: {said}{tls_remedy(error, request)}") from error
