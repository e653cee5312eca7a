"""Secrets for tests, and every form in which one may turn up in what keval leaves and prints."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote, quote_plus

from keval_replay.frames import Frames

__all__ = ["forms", "leaks"]


def forms(secret: str) -> Mapping[str, str]:
    """Return a secret in every form, by name; some stand within more base64."""

    def encoded(before: str) -> str:
        return base64.b64encode(f"{before}{secret} and what follows".encode()).decode()

    return {
        "plain": secret,
        "json": json.dumps(secret)[1:-1],
        "json as UTF-8": json.dumps(secret, ensure_ascii=False)[1:-1],
        "json in json": json.dumps(json.dumps(secret))[3:-3],
        "repr": repr(secret)[1:-1],
        "repr of bytes": repr(secret.encode())[2:-1],
        "url": quote(secret, safe=""),
        "url path": quote(secret),
        "url in lower case": re.sub("%..", lambda found: found[0].lower(), quote(secret, safe="")),
        "form": quote_plus(secret),
        "base64": base64.b64encode(secret.encode()).decode(),
        "base64 for URLs": base64.urlsafe_b64encode(secret.encode()).decode().rstrip("="),
        "base64, first position": encoded("us:"),
        "base64, second position": encoded("user:"),
        "base64, third position": encoded("use:"),
    }


def leaks(secrets: Mapping[str, str], told: Iterable[str], folder: Path, given: Iterable[str] = ()) -> list[str]:
    """Name each secret and form that a text or a file holds; the files `given` by the user are not looked at.

    Of a recording, what its frames hold is looked at, too.
    """
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in given]
    written = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    for path in files:
        if path.suffix == ".zst":
            frames = Frames(path)
            written |= {f"{path.name} {key}": b"\n".join(frames.read(key, bytes)) for key in frames.keys}
    texts = {f"text {index}": text.encode("utf-8", "surrogateescape") for index, text in enumerate(told)}
    return [
        f"{name}: {form} in {place}"
        for name, secret in secrets.items()
        for form, text in forms(secret).items()
        for place, content in {**written, **texts}.items()
        # Part of base64 is secret where only the middle of it is: the ends hold bits of the neighbours.
        if (text[8:-24] if "position" in form else text).encode() in content
    ]
