"""HTTP by aiohttp, within bounds: everything that keval reads of models and of remote agents comes through here."""

from __future__ import annotations

from codecs import lookup
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Literal
from urllib.parse import urlsplit

import attrs
from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from yarl import URL

from keval.errors import TrialError
from keval_clients.bounds import (
    ENCODINGS,
    MOST_REDIRECTS,
    REDIRECTS,
    EncodingError,
    RedirectError,
    ReplyTooLargeError,
    Unpacker,
    following,
    too_large,
)
from keval_clients.network import Network

MOST_BYTES = 20_000_000
"""What a reply may have where nothing says otherwise; the default of `execution.max_reply_bytes`."""
_TIMEOUT = ClientTimeout(total=None, sock_connect=30.0)
"""A request may take as long as keval lets a trial take."""
_KEEP_ALIVE = 4.0
"""Seconds: less than the 5 after which uvicorn, and many a model server with it, hangs up on an idle connection."""
_MOST_LINE = 8190
_NO_CHARSETS = frozenset({"idna", "punycode", "raw-unicode-escape", "unicode-escape"})
"""Codecs of Python that no page is written in; the first two take the square of a text's length."""
_FAULTS = (ClientError, OSError, ReplyTooLargeError, RedirectError, EncodingError)


@attrs.frozen(eq=False)
class Reply:
    """A reply whose head has been read. What reads its body closes it, and so does `close`."""

    status: int
    headers: Mapping[str, str]
    _response: ClientResponse = attrs.field(repr=False)
    _unpacker: Unpacker = attrs.field(repr=False)
    _client: HttpClient = attrs.field(repr=False)

    @property
    def content_type(self) -> str:
        """The type of the body, in lower case and without parameters."""
        return self._response.content_type

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the body, unpacked, as it arrives.

        Raises:
            TrialError: kind `reply_too_large`; or what the client's `broken` makes, where the body broke off.
        """
        with self:
            while piece := await self._response.content.readany():
                if unpacked := self._unpacker.unpack(piece):
                    yield unpacked
            self._unpacker.end()

    async def read(self) -> bytes:
        """Return the whole body. Raises as `pieces` does."""
        body = bytearray()  # a list of pieces may take 40 times as much, if each has one byte
        with self:
            while piece := await self._response.content.readany():
                body += self._unpacker.unpack(piece)
            self._unpacker.end()
        return bytes(body)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._response.close()
        if isinstance(error, _FAULTS):
            raise self._client.explained(error, self._unpacker.most) from error

    async def text(self) -> str:
        """Return the whole body as text, in which `?` stands for what cannot be decoded. Raises as `pieces` does."""
        return self._decoded(await self.read())

    async def beginning(self) -> str:
        """Return the text that arrives first, and read no more. Raises as `pieces` does."""
        async with aclosing(self.pieces()) as pieces:
            return self._decoded(await anext(pieces, b""))

    def _decoded(self, body: bytes) -> str:
        try:
            name = lookup(self._response.charset or "utf-8").name
            return body.decode("utf-8" if name in _NO_CHARSETS else name, "replace")
        except (LookupError, UnicodeError):
            return body.decode("utf-8", "replace")

    def close(self) -> None:
        """Read no more of it."""
        self._response.close()


@attrs.define(eq=False)
class HttpClient:
    """Sends requests, and reads replies no further than they may reach. Any number at once wait for no connection.

    Messages call the other side `whose`, and failures have its `stage`; `broken` makes the error for one that cannot be
    reached, breaks off, or sends what is no HTTP. Keeps no cookies. Belongs to the event loop of its first request.

    aiohttp bounds the head of a reply: 128 headers of 8 KB.
    """

    whose: str
    stage: Literal["agent", "model"]
    broken: Callable[[str], TrialError]
    _networks: dict[str, Network] = attrs.field(factory=dict, init=False, repr=False)
    _session: ClientSession | None = attrs.field(default=None, init=False)

    def reach(self, url: str) -> Network:
        """Return how the origin of a URL is reached. Raises PreflightError: the environment's variables are wrong."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._networks:
            self._networks[origin] = Network.to(origin)
        return self._networks[origin]

    async def ask(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        most: int | None = None,
        timeout: ClientTimeout | None = None,  # noqa: ASYNC109 - aiohttp's own, of connecting and reading
    ) -> Reply:
        """Send a request and return the reply, of which no more than `most` bytes may be read.

        Redirects are followed to the same origin, as often as five times.

        Raises:
            TrialError: kind `redirected`, it leads elsewhere; or what `broken` makes.
        """
        network, there, most = self.reach(url), url, most or MOST_BYTES
        if self._session is None:
            self._session = self._begin()
        for _ in range(MOST_REDIRECTS + 1):
            response = None
            try:
                response = await self._session.request(
                    method,
                    URL(there, encoded=True),
                    headers={**headers, "accept-encoding": ENCODINGS},
                    data=body,
                    allow_redirects=False,
                    proxy=network.proxy,
                    ssl=network.tls or True,  # of http:, nothing is verified, and messages have no "ssl:False"
                    timeout=timeout or _TIMEOUT,
                )
                status = response.status
                leads = following(method, there, status, response.headers) if status in REDIRECTS else None
                if leads is None:
                    told = response.content_length
                    if told is not None and told > most:
                        raise ReplyTooLargeError
                    unpacker = Unpacker(most, response.headers.get("content-encoding", ""))
                    return Reply(status, response.headers, response, unpacker, self)
            except _FAULTS as error:
                if response is not None:
                    response.close()
                raise self.explained(error, most) from error
            response.close()
            there = leads
        raise self._redirected(f"redirects more than {MOST_REDIRECTS} times; make the last address the URL")

    def explained(self, error: Exception, most: int) -> TrialError:
        """Return the error for a request that failed, or for a reply that cannot be read and may have `most` bytes."""
        if isinstance(error, ReplyTooLargeError):
            return too_large(most, self.stage)
        if isinstance(error, RedirectError):
            return self._redirected(str(error))
        # The message of an error of a library alone may be empty.
        why = str(error) if isinstance(error, EncodingError) else f"{type(error).__name__}: {error}"
        return self.broken(f"{self.whose} gave no answer: {why}")

    def _redirected(self, how: str) -> TrialError:
        return TrialError(f"{self.whose} {how}", stage=self.stage, kind="redirected")

    async def aclose(self) -> None:
        """Close every connection, once or more often."""
        if self._session is not None:
            await self._session.close()

    def _begin(self) -> ClientSession:
        return ClientSession(
            # Without a limit: aiohttp reads 0 so.
            connector=TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE),
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            max_line_size=_MOST_LINE,
            max_field_size=_MOST_LINE,
        )
