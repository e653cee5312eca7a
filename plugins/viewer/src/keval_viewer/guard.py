"""Who is let in: this machine's user, in a browser that was opened by the printed URL, and no page of others."""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import attrs
import click
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keval_loopback.loopback import refusal

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""The content security policy of every page."""
_HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",  # with none at all, a browser says of a form of ours that it is of nobody's
    "x-content-type-options": "nosniff",
}
_REFUSED = {
    403: "This server answers its own pages only.",
    421: "This server answers on loopback only, on its own port. Open the URL that keval printed.",
}
_STRANGER = "Open the URL with the token that keval printed; this browser was not opened by it."
_BYTES = 32


@attrs.frozen
class Guard:
    """Passes requests of this machine's user on to the application.

    A request with the `token` of the printed URL is given the cookie, which holds `session`, and its URL without the
    token; all others need the cookie.
    """

    app: ASGIApp
    port: int
    token: str = attrs.field(repr=False)
    session: str = attrs.field(repr=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    # A page may have a header of its own, such as another policy.
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        response = self._refused(scope) or self._admitted(scope)
        await (response or self.app)(scope, receive, guarded)

    def _refused(self, scope: Scope) -> Response | None:
        """Refuse what a foreign page may have sent."""
        status = refusal(scope, self.port)
        headers = Headers(scope=scope)
        if status is None and scope["method"] not in ("GET", "HEAD"):
            # A browser sends one of both. Whatever else sends neither is no page.
            is_own = "origin" in headers or headers.get("sec-fetch-site") == "same-origin"
            status = None if is_own else 403
        return None if status is None else PlainTextResponse(f"{_REFUSED[status]}\n", status)

    def _admitted(self, scope: Scope) -> Response | None:
        """Turn a token into the cookie, and refuse a request without either."""
        headers = Headers(scope=scope)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        if scope["method"] in ("GET", "HEAD") and any(_same(value, self.token) for value in given):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            path = scope["raw_path"].decode("latin-1")
            # A path that begins with two slashes would be the name of another server.
            response = _onward(f"/{path.lstrip('/')}{'?' if rest else ''}{rest}", headers)
            # Not `secure`, as there is no TLS on loopback.
            response.set_cookie(self._cookie, self.session, httponly=True, samesite="strict")
            return response
        if _same(HTTPConnection(scope).cookies.get(self._cookie, ""), self.session):
            return None
        return PlainTextResponse(f"{_STRANGER}\n", 403)

    @property
    def _cookie(self) -> str:
        # All ports of a host share their cookies.
        return f"keval-{self.port}"


def _onward(url: str, headers: Headers) -> Response:
    """Lead a browser to a URL of this server."""
    if headers.get("sec-fetch-site") != "cross-site":
        return RedirectResponse(url, 303)
    # The link was in a page of others, such as a terminal in a browser: after a redirect, the cookie would be withheld.
    return HTMLResponse("<!doctype html><title>keval</title>", headers={"refresh": f"0; url={url}"})


def _same(given: str, expected: str) -> bool:
    # In a time that does not depend on where the two differ.
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def session_of(served: Path) -> str:
    """Return what lets a browser in that was let in before, of all that serve this folder for this user.

    It is derived from a secret in the user's folder for keval, which only the user can read. If that cannot be kept,
    it is another one each time.
    """
    secret = _secret(Path(click.get_app_dir("keval")) / "viewer.secret") or secrets.token_bytes(_BYTES)
    return hmac.new(secret, os.fsencode(served.resolve()), "sha256").hexdigest()


def _secret(file: Path) -> bytes | None:
    """Return the secret in a file, which is made if it is not there; `None` if there can be none."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as made:
                made.write(secrets.token_bytes(_BYTES))
        secret = file.read_bytes()
    except OSError:
        return None
    # A viewer that starts at the same moment may not have written it yet.
    return secret if len(secret) == _BYTES else None
