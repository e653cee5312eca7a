"""How keval authenticates to a server over HTTP, as a config says it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

import attrs
from attrs.validators import gt, optional

__all__ = ["Algorithm", "Auth", "expiry"]

Algorithm: TypeAlias = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]  # fmt: skip
"""Signatures of a private-key JWT (RFC 7518, section 3.1, and RFC 8037)."""


@attrs.frozen(kw_only=True)
class Auth:
    """One of three: a bearer `token`; a `command` that prints one; or OAuth client credentials.

    What `command` prints is a token, or JSON with `access_token` and perhaps `expires_in`. It runs again before the
    token expires, which `lifetime` says in seconds, or the token itself if it is a JWT; and when the server refuses it.

    Client credentials (RFC 6749, section 4.4) are a `client_id` with its `client_secret`, sent as `method` says, or
    with a `private_key` in PEM, also from a file, that signs a JWT (RFC 7523). They are sent to the authorization
    server `issuer` alone. `scope` is asked for in place of what the server names.
    """

    token: str | None = attrs.field(default=None, repr=False)
    command: tuple[str, ...] = ()
    lifetime: float | None = attrs.field(default=None, validator=optional(gt(0)))
    client_id: str | None = None
    client_secret: str | None = attrs.field(default=None, repr=False)
    method: Literal["client_secret_basic", "client_secret_post"] = "client_secret_basic"
    private_key: str | None = attrs.field(default=None, repr=False)
    private_key_file: Path | None = None
    algorithm: Algorithm = "RS256"
    issuer: str | None = None
    scope: str | None = None

    def __attrs_post_init__(self) -> None:
        ways = [self.token is not None, bool(self.command), self.client_id is not None]
        if sum(ways) != 1:
            raise ValueError("one of token, command and client_id is needed, and no two of them")
        if self.lifetime is not None and not self.command:
            raise ValueError("'lifetime' must go with a command; a server says how long its own tokens last")
        proofs = {"client_secret": self.client_secret, "private_key": self.private_key}
        given = [name for name, value in {**proofs, "private_key_file": self.private_key_file}.items() if value]
        if self.client_id is None:
            for name in [*given, *(name for name in ("issuer", "scope") if getattr(self, name) is not None)]:
                raise ValueError(f"'{name}' must go with a client_id")
            return
        if len(given) != 1:
            raise ValueError("a client_id goes with one of client_secret, private_key and private_key_file")
        if not _is_url(self.issuer or ""):
            raise ValueError(
                "'issuer' must be the URL of the authorization server that knows the client_id, as nobody else is to"
                " get its secret; a server names it at /.well-known/oauth-protected-resource"
            )


def expiry(token: str) -> float | None:
    """Return when a token expires, as Unix time, if it is a JWT that says so (RFC 7519, section 4.1.4)."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return None
    until = claims.get("exp") if isinstance(claims, dict) else None
    return float(until) if isinstance(until, int | float) and not isinstance(until, bool) else None


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)
