"""The proxy in front of the models of a run: agents and judges hold a placeholder, and it alone has the keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keval.records.models import Endpoint
    from keval.seams.infrastructure import ModelProxy, ProxyRoute


class LoopbackProxy:
    """Serves all routes on one port of 127.0.0.1, in the loop that is running; see `ModelProxy`."""

    @asynccontextmanager
    async def open(self, routes: Sequence[ProxyRoute]) -> AsyncIterator[Sequence[Endpoint]]:
        """Yield an endpoint per route, with a placeholder for the key.

        Raises:
            PreflightError: the environment's variables for the network cannot be used.
        """
        # The web server and the HTTP client take half a second to import: only a run with a proxy pays for that, and
        # beside its event loop.
        import asyncio
        from importlib import import_module

        await asyncio.to_thread(import_module, "keval_gateway.proxy_app")
        from keval_clients.sender import model_client
        from keval_gateway.proxy_app import ProxyApp, Way, models_beside
        from keval_loopback.serving import serve

        ways = [Way(route, models_beside(route, routes)) for route in routes]
        client = model_client(url for route in routes for url in route.endpoint.urls.values())
        async with aclosing(client), serve(ProxyApp({way.path: way for way in ways}, client)) as base:
            yield [way.endpoint(base) for way in ways]


def model_proxy() -> ModelProxy:
    """Return the proxy; the entry point `models` in the group `keval.proxies`."""
    return LoopbackProxy()
