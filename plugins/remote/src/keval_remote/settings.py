"""What the environment says of mirroring, and where folders of results that lie elsewhere are on this machine."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

import attrs

from keval.errors import ConfigError


@attrs.frozen
class Settings:
    """How results are mirrored: times in seconds, sizes in bytes."""

    part_seconds: float = 10.0
    part_bytes: int = 8 << 20
    lease_seconds: float = 60.0
    end_seconds: float = 60.0

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Settings:
        """Read `KEVAL_REMOTE_…` of an environment. Raises ConfigError."""
        usual = cls()
        return cls(
            part_seconds=_number(environ, "KEVAL_REMOTE_PART_SECONDS", usual.part_seconds),
            part_bytes=int(_number(environ, "KEVAL_REMOTE_PART_MB", usual.part_bytes / (1 << 20)) * (1 << 20)),
            lease_seconds=_number(environ, "KEVAL_REMOTE_LEASE_SECONDS", usual.lease_seconds),
            end_seconds=_number(environ, "KEVAL_REMOTE_END_SECONDS", usual.end_seconds),
        )


def _number(environ: Mapping[str, str], name: str, usual: float) -> float:
    try:
        found = float(environ.get(name) or usual)
    except ValueError:
        found = 0.0
    if not 0 < found < 1e9:
        raise ConfigError(f"{name} is {environ[name]!r}; give a number greater than 0")
    return found


def cache_folder(url: str) -> Path:
    """Return the folder for the results at a URL, under `KEVAL_CACHE`, else under the user's folder for caches."""
    cache = os.environ.get("KEVAL_CACHE")
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "keval"
    slug = re.sub(r"[^\w.]+", "-", url)[:60].strip("-")
    return (Path(cache) if cache else usual) / f"{slug}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"
