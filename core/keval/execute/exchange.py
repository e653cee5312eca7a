"""The exchange: model requests of agents and judges on their way through the middleware of a run."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import attrs

from keval.infrastructure import AppliesMiddleware, Middleware, ProxyRoute
from keval.models import Asker, Endpoint, ModelRequest, ModelResponse, Next

__all__ = ["ASKER_HEADER", "ModelExchange", "applies_middleware"]

ASKER_HEADER = "x-keval-asker"
"""Says on whose behalf a request is sent, in a form that tells neither a model nor a judge which trial that is."""

_OWN_HEADERS = ("x-keval-trial", "x-keval-repetition", "x-keval-resample")


def applies_middleware(plugin: object) -> bool:
    """Return whether an agent or judge passes its requests through the middleware itself."""
    return isinstance(plugin, AppliesMiddleware) and plugin.applies_middleware


@attrs.frozen
class ModelExchange:
    """The middleware of a run, outermost first, and who is asking at the moment."""

    middleware: Sequence[Middleware]
    _askers: dict[str, Asker] = attrs.field(factory=dict, init=False)

    def __bool__(self) -> bool:
        return bool(self.middleware)

    @contextmanager
    def asking(self, asker: Asker) -> Iterator[dict[str, str]]:
        """Yield the headers by which requests that are sent meanwhile are known as this asker's."""
        if not self.middleware:
            yield {}
            return
        token = secrets.token_urlsafe(12)
        self._askers[token] = asker
        try:
            yield {ASKER_HEADER: token}
        finally:
            del self._askers[token]

    def route(self, asker: Asker, endpoint: Endpoint) -> ProxyRoute:
        """Return the way of an agent or judge to its endpoint; `asker` is who asks as far as no header says more."""

        async def exchange(request: ModelRequest, send: Next) -> ModelResponse:
            return await self._handle(request, endpoint, send)

        return ProxyRoute(asker, endpoint, exchange)

    async def _handle(self, request: ModelRequest, endpoint: Endpoint, send: Next) -> ModelResponse:
        token = request.headers.get(ASKER_HEADER, "")
        kept = {name: value for name, value in request.headers.items() if name != ASKER_HEADER}
        if not endpoint.wants_trial:
            kept = {name: value for name, value in kept.items() if name not in _OWN_HEADERS}
        asker = self._askers.get(token, request.asker)
        return await _chain(self.middleware, send)(attrs.evolve(request, asker=asker, headers=kept))


def _chain(middleware: Sequence[Middleware], send: Next) -> Next:
    following = send
    for each in reversed(middleware):
        following = _around(each, following)
    return following


def _around(middleware: Middleware, following: Next) -> Next:
    async def handle(request: ModelRequest) -> ModelResponse:
        response = await middleware.handle(request, following)
        if not isinstance(response, ModelResponse):
            raise TypeError(f"{type(middleware).__qualname__}.handle() returned no ModelResponse: {response!r:.200}")
        return response

    return handle
