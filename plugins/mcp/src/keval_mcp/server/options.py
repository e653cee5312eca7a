"""Options of a server that are more than a value: its authentication, and its command."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

import attrs
from attrs.validators import gt, lt, optional

from keval.errors import PreflightError
from keval.processes import search_path
from keval.seams.remedies import remedy
from keval_clients.network import check_key
from keval_mcp.server.start_remedies import command_remedy

Algorithm: TypeAlias = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]  # fmt: skip
"""Signatures of a private-key JWT (RFC 7518, section 3.1, and RFC 8037)."""


Revision: TypeAlias = Literal["2025-11-25", "2026-07-28", "newest"]
"""A revision of MCP, or the newest that a server speaks."""

_PROOFS = ("client_secret", "private_key", "private_key_file")
"""By one of these a client proves that it is the one that it says."""


@attrs.frozen(kw_only=True)
class Auth:
    """One of four: a bearer `token`; a `command` that prints one; OAuth client credentials; or a login in a `browser`.

    What `command` prints is a token, or JSON with `access_token` and perhaps `expires_in`. It runs again before the
    token expires, which `lifetime` says in seconds, or the token itself if it is a JWT; and when the server refuses it.

    Client credentials (RFC 6749, section 4.4) are a `client_id` with its `client_secret`, sent as `method` says, or
    with a `private_key` in PEM, also from a file, that signs a JWT (RFC 7523). They are sent to the authorization
    server `issuer` alone. `scope` is asked for in place of what the server names.

    With `browser: true`, or the command that opens a page, a person logs in (authorization code, RFC 7636), and comes
    back to `port` on loopback. The client is `client_id`, the one that the document at the URL `client_metadata`
    describes, or one that registers itself.
    """

    token: str | None = attrs.field(default=None, repr=False, validator=check_key)
    command: tuple[str, ...] = ()
    lifetime: float | None = attrs.field(default=None, validator=optional(gt(0)))
    client_id: str | None = None
    client_secret: str | None = attrs.field(default=None, repr=False, validator=check_key)
    method: Literal["client_secret_basic", "client_secret_post"] = "client_secret_basic"
    private_key: str | None = attrs.field(default=None, repr=False)
    private_key_file: Path | None = None
    algorithm: Algorithm = "RS256"
    issuer: str | None = None
    scope: str | None = None
    browser: bool | tuple[str, ...] = False
    port: int | None = attrs.field(default=None, validator=optional([gt(0), lt(65536)]))
    client_metadata: str | None = None

    def __attrs_post_init__(self) -> None:
        command, client, browser = bool(self.command), self.client_id is not None, bool(self.browser)
        if [self.token is not None, command, client or browser].count(True) != 1:
            raise ValueError("one of token, command, client_id and browser is needed, and no two ways to a token")
        # An option is given with the one that it is about.
        for names, whole, given in (
            (("lifetime",), "a command", command),
            (_PROOFS, "a client_id", client),
            (("issuer", "scope"), "a client_id or a browser", client or browser),
            (("port", "client_metadata"), "a browser", browser),
            (_PROOFS[1:], "client credentials, not with a browser", not browser),
        ):
            if wrong := [name for name in names if getattr(self, name) is not None and not given]:
                raise ValueError(f"'{wrong[0]}' must go with {whole}")
        proofs = [name for name in _PROOFS if getattr(self, name)]
        if client and not browser and len(proofs) != 1:
            raise ValueError("a client_id goes with one of client_secret, private_key and private_key_file")
        if proofs and not is_url(self.issuer or ""):
            raise ValueError(
                "'issuer' must be the URL of the authorization server that knows the client_id, as nobody else is to"
                " get its secret; a server names it at /.well-known/oauth-protected-resource"
            )
        # Where none is given, a stand-in passes.
        document = urlsplit(self.client_metadata or "https://x/y")
        if document.scheme != "https" or document.path in ("", "/"):
            raise ValueError("'client_metadata' must be the https:// URL of a document, with a path")


def shown_url(url: str) -> str:
    """Return a URL without what may be secret in it: a user, a password, a query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def is_url(text: str) -> bool:
    """Return whether a text is a URL of HTTP."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def find_command(label: str, command: str, env: Mapping[str, str], cwd: Path | None) -> str:
    """Return the absolute path of a server's executable.

    A bare name is searched on the server's PATH, as `keval.plugin.search_path` says. A path starts at `cwd`.

    Raises:
        PreflightError: there is no such executable, or `cwd` is no folder.
    """
    if cwd is not None and not cwd.is_dir():
        told = remedy("file", cwd, FileNotFoundError())
        raise PreflightError(f"server '{label}': cwd '{cwd}' is not a folder; correct it or leave it out{told}")
    if os.path.dirname(command):
        found = shutil.which((cwd or Path()) / command)
    else:
        found = shutil.which(command, path=search_path(env.get("PATH")))
    if found is None:
        told = command_remedy(command, search_path(env.get("PATH")), cwd or Path())
        raise PreflightError(f"server '{label}': command '{command}' not found; {told}")
    return os.path.abspath(found)
