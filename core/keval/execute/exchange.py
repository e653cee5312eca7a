"""The exchange: passes model requests of agents and judges through the middleware of a run."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import attrs

from keval.errors import MiddlewareError
from keval.infrastructure import AppliesMiddleware, Middleware, ProxyRoute
from keval.models import Asker, Endpoint, ModelRequest, ModelResponse, Next

__all__ = ["ASKER_HEADER", "ModelExchange", "applies_middleware"]

ASKER_HEADER = "x-keval-asker"
"""Identifies who sends a request by a token, so that neither a model nor a judge learns which trial it is."""

_TRIAL_HEADERS = ("x-keval-trial", "x-keval-repetition", "x-keval-resample")


def applies_middleware(plugin: object) -> bool:
    """Return whether an agent or judge passes its requests through the middleware itself."""
    return isinstance(plugin, AppliesMiddleware) and plugin.applies_middleware


@attrs.frozen
class ModelExchange:
    """The middleware of a run by label, outermost first, and who sends requests at the moment."""

    middleware: Mapping[str, Middleware] = attrs.field(factory=dict)
    _askers: dict[str, Asker] = attrs.field(factory=dict, init=False)

    def __bool__(self) -> bool:
        return bool(self.middleware)

    @contextmanager
    def asking(self, asker: Asker) -> Iterator[dict[str, str]]:
        """Yield the headers that mark requests as this asker's while the block runs."""
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
        """Return the route of an agent or judge to its endpoint; `asker` holds for requests without those headers."""

        async def exchange(request: ModelRequest, send: Next) -> ModelResponse:
            return await _chain(self.middleware, send)(self._known(request, asker, endpoint))

        return ProxyRoute(asker, endpoint, exchange)

    def _known(self, request: ModelRequest, asker: Asker, endpoint: Endpoint) -> ModelRequest:
        """Say who asks, as far as that is known, and leave out the headers that are keval's own."""
        token = request.headers.get(ASKER_HEADER, "")
        own = {ASKER_HEADER} if endpoint.wants_trial else {ASKER_HEADER, *_TRIAL_HEADERS}
        kept = {name: value for name, value in request.headers.items() if name not in own}
        return attrs.evolve(request, asker=self._askers.get(token, asker), headers=kept)


def _chain(middleware: Mapping[str, Middleware], send: Next) -> Next:
    following = send
    for label, each in reversed([*middleware.items()]):
        following = _around(label, each, following)
    return following


def _around(label: str, middleware: Middleware, following: Next) -> Next:
    async def handle(request: ModelRequest) -> ModelResponse:
        passed: list[Exception] = []

        async def next_(request: ModelRequest) -> ModelResponse:
            try:
                return await following(request)
            except Exception as error:
                passed.append(error)
                raise

        try:
            response = await middleware.handle(request, next_)
        except Exception as error:  # a plugin may raise anything, and what comes from further in is not its own
            if any(error is each for each in passed):
                raise
            raise MiddlewareError(f"the middleware {label!r} failed: {type(error).__name__}: {error}") from error
        if not isinstance(response, ModelResponse):
            raise MiddlewareError(f"the middleware {label!r} returned no ModelResponse: {response!r:.200}")
        return response

    return handle
