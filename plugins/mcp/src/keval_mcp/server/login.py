"""Logging in to a server over HTTP: every request carries a token, which is renewed in time, and when it is refused.

The MCP SDK's own OAuth providers let one request pass at a time, so that the calls of concurrent trials would wait for
each other. Here they are asked for tokens only.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
import webbrowser
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing, closing, suppress
from typing import TypeAlias
from urllib.parse import parse_qs, urlsplit

import attrs
import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.utils import extract_field_from_www_auth, union_scopes
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from keval.errors import PreflightError
from keval_clients.network import check_variables
from keval_clients.printed_token import PrintedTokenError, printed_token
from keval_mcp.server.options import Auth, find_command, shown_url
from keval_mcp.server.streams import bound
from keval_mcp.server.transports import RENEWABLE

SECONDS = 30.0
"""How long a command, or a request to an authorization server, may take."""
EARLY = 0.9
"""The part of a token's life in which it is used: one that expires on the way to the server would be refused."""


_LARGEST = 2**20
"""Bytes of a reply of an authorization server."""


async def _keep_small(response: httpx2.Response) -> None:
    bound(response, _LARGEST, lambda error: None)


class TokenError(httpx2.HTTPError):
    """There is no token to send, and why."""


def refuses(response: httpx2.Response) -> bool:
    """Return whether a server refuses a request for its token (RFC 6750, section 3.1)."""
    if response.status_code == 403:
        return extract_field_from_www_auth(response, "error") == "insufficient_scope"
    return response.status_code == 401


@attrs.frozen
class FixedToken:
    """A token that the config gives."""

    token: str = attrs.field(repr=False)

    def current(self) -> str | None:
        """Return the token, if there is one that has not expired, as this one never does."""
        return self.token

    async def renew(self, refused: httpx2.Response | None) -> str:
        """Return a new token; `refused` is how the server refused the one before, if it did.

        Raises:
            TokenError: there is none, as here.
        """
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
        # Counted from before the command runs, as its token may be as old as that.
        began = time.time()
        try:
            found = await printed_token(self.command, SECONDS)
        except PrintedTokenError as error:
            told = f"'{os.path.basename(self.command[0])}' of auth.command gave no token: {error}"
            raise TokenError(f"{told}; run it in a terminal to see what it says") from error
        lifetime = self.lifetime
        if lifetime is None and found.expires is not None:
            lifetime = found.expires - began
        self._token, self._until = found.value, None if lifetime is None else began + EARLY * lifetime
        return found.value


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


@attrs.define
class IssuedToken:
    """A token for the server at `url`, by one of the SDK's providers: for client credentials, or for a person."""

    url: str
    _provider: _Scoped

    @classmethod
    def by_secret(cls, auth: Auth, url: str) -> IssuedToken:
        """Authenticate the client by its secret."""
        client, secret = auth.client_id or "", auth.client_secret or ""
        provider = _BySecret(url, _Memory(), client, secret, auth.method, auth.scope, auth.issuer)
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
            # A key that does not fit would otherwise show only when the first token is asked for.
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
        provider = _Scoped(url, described, _Memory(None, known), browser.open, browser.returned, auth.client_metadata)
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
        # The client reads proxies and certificates from the environment, where a mistake would be a traceback.
        check_variables()
        async with httpx2.AsyncClient(event_hooks={"response": [_keep_small]}, timeout=SECONDS) as client:
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
        if token.expires_in is not None:
            self._provider.context.token_expiry_time = time.time() + EARLY * token.expires_in
        return token.access_token

    async def _challenge(self, client: httpx2.AsyncClient) -> httpx2.Response:
        """Return how the server refuses a request without a token, which may say where to get one."""
        accepted = {"accept": "application/json, text/event-stream"}
        ping = {"jsonrpc": "2.0", "id": "login", "method": "ping"}
        for method, body in (("POST", ping), ("GET", None)):  # the latter for SSE
            async with (
                asyncio.timeout(SECONDS),
                client.stream(method, self.url, headers=accepted, json=body) as response,
            ):
                if response.status_code == 401:
                    return response
        # The SDK's flow begins with a refusal, also where the server answers without a token.
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


Token: TypeAlias = FixedToken | CommandToken | IssuedToken
"""A token for one server that may have to be renewed."""


async def _answer(client: httpx2.AsyncClient, asked: httpx2.Request) -> httpx2.Response:
    try:
        async with asyncio.timeout(SECONDS):  # httpx's own bounds the time between two bytes
            return await client.send(asked)
    except (TimeoutError, httpx2.HTTPError) as error:
        said = str(error) or f"it takes more than {SECONDS:g} s"
        raise TokenError(f"{shown_url(str(asked.url))} cannot be asked: {said}") from error


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


_log = logging.getLogger("keval_mcp")

_PATH = "/callback"
_DONE = b"keval is logged in; this page can be closed."
_REFUSED = b"This is not the page that keval has opened."
_HEAD = b"HTTP/1.1 %s\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@attrs.define(eq=False)
class Browser:
    """Opens the login page for the server `label`, by `command` or else by the person's own browser.

    Whoever logs in comes back to `port` on loopback (RFC 8252, section 7.3). Nobody else is let in: it takes the
    `state` of the page, which the authorization server gives back.
    """

    label: str
    command: Sequence[str] = ()
    # Chosen before anybody listens, because the client is registered with the redirect URI.
    port: int = attrs.field(factory=_free_port)
    _state: str | None = attrs.field(default=None, init=False)
    _back: asyncio.Future[AuthorizationCodeResult] | None = attrs.field(default=None, init=False)
    _server: asyncio.Server | None = attrs.field(default=None, init=False)

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
            await self._show(url)
        except BaseException:
            self._server.close()
            raise

    async def returned(self) -> AuthorizationCodeResult:
        """Wait for who was sent back, and return what the authorization server gave them."""
        assert self._back is not None  # noqa: S101 - the SDK opens the page first
        assert self._server is not None  # noqa: S101
        try:
            return await self._back
        finally:
            self._server.close()

    async def _show(self, url: str) -> None:
        if not self.command:
            # It starts a program, and may wait for it.
            await asyncio.to_thread(webbrowser.open, url)
            return
        process = await asyncio.create_subprocess_exec(
            *self.command, url, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL
        )
        await process.wait()

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
            if known and self._back is not None and not self._back.done():
                self._back.set_result(
                    AuthorizationCodeResult(code=given.get("code", ""), state=given.get("state"), iss=given.get("iss"))
                )


def _parameters(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


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
        # A refusal that is answered with a new token is not noted as an error of the server.
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
            # Another request may have renewed it while this one waited for the lock.
            if token is None or token == used:
                token = await self.token.renew(refused)
                # Before the first use, so that no error or record can show it.
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
