"""A login in a browser: a page is opened, and the authorization server sends whoever logs in back to keval."""

from __future__ import annotations

import asyncio
import logging
import socket
import webbrowser
from collections.abc import Sequence
from urllib.parse import parse_qs, urlsplit

import attrs
from mcp.client.auth import AuthorizationCodeResult

__all__ = ["Browser"]

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
            await asyncio.to_thread(webbrowser.open, url)
            return
        process = await asyncio.create_subprocess_exec(
            *self.command, url, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL
        )
        await process.wait()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = (await reader.readline()).decode("latin-1").split(" ")[1:2]
        url = target[0] if target else ""
        given = _parameters(url)
        known = urlsplit(url).path == _PATH and given.get("state") == self._state
        status, said = (b"200 OK", _DONE) if known else (b"403 Forbidden", _REFUSED)
        writer.write(_HEAD % (status, len(said)) + said)
        await writer.drain()
        writer.close()
        if known and self._back is not None and not self._back.done():
            self._back.set_result(
                AuthorizationCodeResult(code=given.get("code", ""), state=given.get("state"), iss=given.get("iss"))
            )


def _parameters(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
