"""The model provider `simulated`: a gateway in a process of its own, which answers by rules for the length of a run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import attrs

from keval.plugin import Endpoint, PluginError, PreflightError
from keval_gateway import find_responder


@attrs.frozen
class SimulatedProvider:
    """Serves every name after `simulated/`: the responder of that name, or the simulated model if there is none.

    `startup` and `shutdown` are how long the gateway's process may take for each, in seconds.
    """

    startup: float = 30.0
    shutdown: float = 5.0

    @asynccontextmanager
    async def open(self, names: Sequence[str], seed: int) -> AsyncIterator[Mapping[str, Endpoint]]:
        """Start the gateway, yield an endpoint per name, and end it.

        Raises:
            PreflightError: two packages ship a responder of one of the names, or the gateway does not come up.
        """
        # asyncio's subprocesses take as long to import as all the rest of this package.
        from keval_gateway import run_gateway

        _check(names)
        options = ("--simulate", f"--seed={seed}")
        async with run_gateway(*options, startup=self.startup, shutdown=self.shutdown) as gateway:
            yield {name: Endpoint(name, gateway.urls, gateway.key, simulated=True, wants_trial=True) for name in names}


def _check(names: Sequence[str]) -> None:
    problems = []
    for name in names:
        try:
            find_responder(name)
        except PluginError as error:
            problems.append(str(error))
    if problems:
        raise PreflightError(problems)
