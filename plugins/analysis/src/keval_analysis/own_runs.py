"""Which runs an account made itself: only their manifests may say what keval runs, reads and sends keys to.

The manifest has a signature of what is read of it as of a config, by a secret of the account: KEVAL_RUNS_SECRET, or one
that keval makes.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs
import click
import orjson

from keval.errors import RunError, typed
from keval.plugin import ActiveRun, hookimpl
from keval.records.manifest import Manifest
from keval.records.trial import TrialKey
from keval.redaction import Redactor
from keval.seams.hooks import Hooks
from keval.store.serialization import to_plain

_KEY = "signature"
_BYTES = 32


def own_secret(name: str) -> bytes | None:
    """Return a secret of the account, which is made if it is not there; `None` if there can be none."""
    file = Path(click.get_app_dir("keval")) / f"{name}.secret"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as made:
                made.write(secrets.token_bytes(_BYTES))
        secret = file.read_bytes()
    except OSError:
        return None
    # Another keval that starts at the same moment may not have written it yet.
    return secret if len(secret) == _BYTES else None


def signed(manifest: Manifest) -> Manifest:
    """Return a manifest with the signature of the account, if that can have a secret."""
    return attrs.evolve(manifest, extra={**manifest.extra, _KEY: _signature(manifest)})


def is_own(manifest: Manifest) -> bool:
    """Return whether the account signed what a manifest says."""
    signature = _signature(manifest)
    return signature is not None and hmac.compare_digest(signature.encode(), str(manifest.extra.get(_KEY)).encode())


def check_own(manifest: Manifest, place: str) -> None:
    """Raise RunError unless the account signed what a manifest says; `place` is its file."""
    if _secret() is None:
        raise RunError(f"{place}: {click.get_app_dir('keval')} has no secret to know runs by; set KEVAL_RUNS_SECRET")
    if not is_own(manifest):
        raise RunError(
            f"{place} is not as an account made it that runs keval here, and names what is run, with your rights and"
            f" keys: read its `config`, and then `{typed('trust', Path(place).parent)}`"
        )


def _secret() -> bytes | None:
    return os.environ.get("KEVAL_RUNS_SECRET", "").encode() or own_secret("runs")


def _signature(manifest: Manifest) -> str | None:
    told = [manifest.config, manifest.config_folder, manifest.variables]
    if (secret := _secret()) is None:
        return None
    return hmac.new(secret, orjson.dumps(to_plain(told), option=orjson.OPT_SORT_KEYS), "sha256").hexdigest()


class Signing:
    """A `keval.seams.hooks.RunWatcher` that signs the manifest of each run that this account makes or goes on with."""

    @hookimpl(trylast=True)
    def keval_run_described(self, run: ActiveRun) -> None:
        run.manifest = signed(run.manifest)

    @asynccontextmanager
    async def publishing(self, folder: Path, hooks: Hooks, redact: Redactor) -> AsyncIterator[None]:
        """Do nothing."""
        yield

    def begins(self, key: TrialKey) -> None:
        """Do nothing."""

    def ends(self) -> None:
        """Do nothing."""
