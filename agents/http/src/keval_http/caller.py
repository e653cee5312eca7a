"""The HTTP of the agent: sends a message to an endpoint, refuses what is no reply, and looks whether it is there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import attrs
from aiohttp import ClientTimeout, ConnectionTimeoutError
from yarl import URL

from keval.plugin import PreflightError, TrialError, retry_after_seconds
from keval_clients import HttpClient, Reply
from keval_http.replies import bad_reply, shown

_PROBE = ClientTimeout(total=10.0, sock_connect=5.0)


@attrs.frozen(eq=False)
class Caller:
    """Sends requests to an agent's endpoint at `url`, which may be a template. Keeps no cookies."""

    url: str
    _headers: Mapping[str, str] = attrs.field(repr=False)
    _http: HttpClient

    @classmethod
    def to(cls, url: str, headers: Mapping[str, str]) -> Caller:
        """Return a caller. Raises PreflightError: the environment's variables for the network cannot be used."""
        http = HttpClient(f"the endpoint {url}", "agent", partial(TrialError, kind="connection", retryable=True))
        http.reach(url)
        return cls(url, headers, http)

    async def send(self, method: str, url: str, body: bytes | None, most: int) -> Reply:
        """Send a request and return the reply, of at most so many bytes, which is no refusal and no web page.

        Raises, also while the reply is read:
            TrialError: kind `connection`, the endpoint cannot be reached or broke off; `rate_limit` or `http_…`, it
                refused; `redirected`, it leads elsewhere; `reply_too_large`; `bad_reply`, it answered with a web page.
        """
        reply = await self._http.ask(method, str(URL(url)), self._headers, body, most=most)
        if reply.status >= 300:
            raise _refused(reply, await reply.text())
        if reply.content_type == "text/html":
            raise bad_reply("a web page", await reply.text())
        return reply

    async def probe(self) -> None:
        """Ask for the endpoint with GET, which changes nothing. If the URL is a template, only its host is asked for.

        Raises PreflightError: nothing answers there, or a web page does.
        """
        templated = "{" in self.url
        url = str(URL(self.url.partition("{")[0]).origin()) if templated else str(URL(self.url))
        try:
            reply = await self._http.ask("GET", url, self._headers, timeout=_PROBE)
            is_page = reply.content_type == "text/html" and (reply.status < 400 or reply.status == 404)
            # Of a template only the host was asked, which may well have a page.
            if is_page and not templated:
                raise PreflightError(
                    f"{self.url} answers GET with a web page (status {reply.status}): "
                    f"{shown(await reply.beginning())}; correct `url`, or set `probe: false`"
                )
            reply.close()
        except TrialError as error:
            cause = error.__cause__
            if isinstance(cause, TimeoutError) and not isinstance(cause, ConnectionTimeoutError):
                return  # something is there, and how long it takes is the trials' matter
            raise PreflightError(
                f"nothing answers at {self.url}: {cause or error}; start the agent, or correct `url`"
            ) from error

    async def aclose(self) -> None:
        """Close every connection."""
        await self._http.aclose()


def _refused(reply: Reply, text: str) -> TrialError:
    status = reply.status
    return TrialError(
        f"the endpoint refused with status {status}" + (f": {shown(text)}" if text.strip() else ""),
        kind="rate_limit" if status == 429 else f"http_{status}",
        retryable=status in {408, 409, 425, 429} or status >= 500,
        retry_after=retry_after_seconds(reply.headers.get("retry-after")),
    )
