"""What is installed on a node: sent by value, so that it runs where keval is missing, and imports what it needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def installed(names: Iterable[str]) -> dict[str, str | None]:
    """Return the versions of Python (`python`), of keval's core (`keval`) and of distributions, or `None`."""
    import importlib.metadata
    import platform

    found: dict[str, str | None] = {}
    for name in names:
        try:
            distribution = "keval-core" if name == "keval" else name
            found[name] = platform.python_version() if name == "python" else importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def differences(here: Mapping[str, str | None], there: Mapping[str, str | None]) -> list[str]:
    """Return in which versions a node differs, one text each."""
    return [
        f"{name} is {there[name] or 'missing'} there, and {wanted or 'missing'} here"
        for name, wanted in here.items()
        if there[name] != wanted
    ]
