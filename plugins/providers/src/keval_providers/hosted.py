"""Models behind a vendor's protocol: keys and base URLs from environment variables."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import attrs

from keval.plugin import Endpoint, PreflightError, Wire
from keval_clients import key_problems, variable_problems

_NO_KEY = "none"
"""What is sent as the key to a server that wants none, as a request has one."""


@attrs.frozen
class HostedProvider:
    """An API that speaks one or more vendors' protocols, with its key and base URL from environment variables.

    `default_url` is the base URL if none of `url_variables` is set; `None` if every user has another one. `wires` has
    each protocol with what follows the base URL, from which `ending` is cut off first, as users write it with or
    without that. `families` are the beginnings of names that belong to the vendor. `key_optional` says that it may
    serve without a key, as servers on one's own machine do.
    """

    vendor: str
    key_variables: tuple[str, ...]
    url_variables: tuple[str, ...]
    default_url: str | None
    wires: Mapping[Wire, str]
    ending: str = ""
    families: tuple[str, ...] = ()
    key_optional: bool = False

    @property
    def urls(self) -> dict[Wire, str]:
        """The base URL of each protocol, as the environment says now; empty if there is none."""
        url = _first(self.url_variables) or self.default_url
        if url is None:
            return {}
        root = url.rstrip("/").removesuffix(self.ending)
        # Where nothing is cut off or added, the URL stays as the user wrote it.
        return {wire: f"{root}{path}" if path or self.ending else url for wire, path in self.wires.items()}

    @asynccontextmanager
    async def open(self, names: Sequence[str], seed: int) -> AsyncIterator[Mapping[str, Endpoint]]:
        """Yield an endpoint per model name; raises PreflightError naming each variable that is wrong or not set."""
        urls, key = self.urls, _first(self.key_variables)
        used = ", ".join(f"{self.vendor}/{name}" for name in names)
        problems = variable_problems() + key_problems(self.key_variables)
        if not urls:
            problems.append(f"{' or '.join(self.url_variables)} is not set; {used} needs the base URL: export it")
        if key is None and not self.key_optional:
            wanted = " or ".join(self.key_variables)
            state = "empty" if any(name in os.environ for name in self.key_variables) else "not set"
            problems.append(f"{wanted} is {state}; {used} needs it: export it, or choose a simulated/ model")
        if problems:
            raise PreflightError(problems)
        yield {name: Endpoint(name, urls, key or _NO_KEY) for name in names}


def _first(variables: Sequence[str]) -> str | None:
    """Return the value of the first variable that is set."""
    return next((os.environ[name] for name in variables if os.environ.get(name)), None)
