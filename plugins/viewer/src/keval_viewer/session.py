"""What the cookie holds: the same each time that a folder is served, so that pages go on after a restart."""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

import click

__all__ = ["session_of"]

_BYTES = 32


def session_of(served: Path) -> str:
    """Return what lets a browser in that was let in before, of all that serve this folder for this user.

    It is derived from a secret in the user's folder for keval, which only the user can read. If that cannot be kept,
    it is another one each time.
    """
    secret = _kept(Path(click.get_app_dir("keval")) / "viewer.secret") or secrets.token_bytes(_BYTES)
    return hmac.new(secret, os.fsencode(served.resolve()), "sha256").hexdigest()


def _kept(file: Path) -> bytes | None:
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
