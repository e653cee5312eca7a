"""HTTP by aiohttp: sends a message to an agent's endpoint, and reads the reply whole or event by event."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from ssl import SSLContext

import attrs
from aiohttp import (
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
    TCPConnector,
)
from yarl import URL

from keval.plugin import PreflightError, TrialError, retry_after_seconds
from keval_clients.sender import proxy_of, tls_of
from keval_http.replies import bad_reply, shown

_TIMEOUT = ClientTimeout(total=None, sock_connect=30.0)
"""A request may take as long as keval lets a trial take."""
_KEEP_ALIVE = 4.0
"""Seconds: less than the 5 after which uvicorn, and many a server with it, hangs up on an idle connection."""
_PROBE = 10.0


@attrs.define(eq=False)
class Caller:
    """Sends requests to an agent's endpoint at `url`, which may be a template. Keeps no cookies."""

    url: str
    _headers: Mapping[str, str] = attrs.field(repr=False)
    _proxy: str | None = attrs.field(repr=False)
    _tls: SSLContext | bool
    _session: ClientSession | None = attrs.field(default=None, init=False)

    @classmethod
    def to(cls, url: str, headers: Mapping[str, str]) -> Caller:
        """Return a caller. Raises PreflightError: the environment names a proxy that cannot be used."""
        return cls(url, headers, proxy_of(url), tls_of(url))

    @asynccontextmanager
    async def send(self, method: str, url: str, body: bytes | None) -> AsyncIterator[ClientResponse]:
        """Send a request and yield the response, which is no refusal and no web page.

        Raises, also while the response is read:
            TrialError: kind `connection`, the endpoint cannot be reached or broke off; `rate_limit` or `http_…`, it
                refused; `bad_reply`, it answered with a web page.
        """
        try:
            async with self._ready().request(
                method,
                url,
                data=body,
                headers=self._headers,
                allow_redirects=False,
                proxy=self._proxy,
            ) as response:
                if response.status >= 300:
                    raise _refused(response, await response.text(errors="replace"))
                if response.content_type == "text/html":
                    raise bad_reply("a web page", await response.text(errors="replace"))
                yield response
        except (ClientError, OSError) as error:
            problem = f"the endpoint {self.url} gave no answer: {type(error).__name__}: {error}"
            raise TrialError(problem, kind="connection", retryable=True) from error

    async def probe(self) -> None:
        """Ask for the endpoint with GET, which changes nothing. If the URL is a template, only its host is asked for.

        Raises PreflightError: nothing answers there, or a web page does.
        """
        templated = "{" in self.url
        url = URL(self.url.partition("{")[0]).origin() if templated else URL(self.url)
        timeout = ClientTimeout(total=_PROBE, sock_connect=_PROBE / 2)
        try:
            async with self._ready().get(
                url, headers=self._headers, allow_redirects=False, proxy=self._proxy, timeout=timeout
            ) as response:
                is_page = response.content_type == "text/html" and (response.ok or response.status == 404)
                if is_page and not templated:
                    raise PreflightError(
                        f"{self.url} answers GET with a web page (status {response.status}): "
                        f"{shown(await response.text(errors='replace'))}; correct `url`, or set `probe: false`"
                    )
        except (ClientError, OSError) as error:
            if isinstance(error, TimeoutError) and not isinstance(error, ConnectionTimeoutError):
                return  # something is there, and how long it takes is the trials' matter
            raise PreflightError(
                f"nothing answers at {self.url}: {error}; start the agent, or correct `url`"
            ) from error

    async def aclose(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()

    def _ready(self) -> ClientSession:
        if self._session is None:
            self._session = ClientSession(
                # Without a limit: aiohttp reads 0 so.
                connector=TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE, ssl=self._tls),
                cookie_jar=DummyCookieJar(),
                timeout=_TIMEOUT,
            )
        return self._session


def _refused(response: ClientResponse, text: str) -> TrialError:
    status, headers = response.status, response.headers
    leads = f" (it leads to {headers['location']}; correct `url`)" if "location" in headers else ""
    return TrialError(
        f"the endpoint refused with status {status}{leads}" + (f": {shown(text)}" if text.strip() else ""),
        kind="rate_limit" if status == 429 else f"http_{status}",
        retryable=status in {408, 409, 425, 429} or status >= 500,
        retry_after=retry_after_seconds(headers.get("retry-after")),
    )
