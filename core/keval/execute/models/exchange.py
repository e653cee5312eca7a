"""The exchange: passes model requests of agents and judges through the gates of a run and its middleware."""

from __future__ import annotations

import random
import secrets
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Literal

import attrs

from keval.config.evaluation import Retry
from keval.errors import MiddlewareError, OutageError, PluginWarning
from keval.execute.attempts import Stopwatch
from keval.execute.models.gate import Asking, EndpointGate, Gate, PlayedGate
from keval.recording.log import TrafficLog
from keval.recording.player import Player
from keval.recording.tape import AttemptTape
from keval.records.cassettes import ReplayMissError
from keval.records.models import Asker, Endpoint, ModelRequest, ModelResponse, Next
from keval.records.transcript import Refusal
from keval.seams.infrastructure import AppliesMiddleware, Middleware, ProxyRoute, RequestsByProxy

ASKER_HEADER = "x-keval-asker"
"""Identifies who sends a request by a token, so that neither a model nor a judge learns which trial it is."""

_TRIAL_HEADERS = ("x-keval-trial", "x-keval-repetition", "x-keval-resample", "x-keval-watched")


def applies_middleware(plugin: object) -> bool:
    """Return whether an agent or judge passes its requests through the middleware itself."""
    return isinstance(plugin, AppliesMiddleware) and plugin.applies_middleware


def needs_proxy(plugin: object) -> bool:
    """Return whether only a proxy can see an agent's model requests."""
    return isinstance(plugin, RequestsByProxy) and plugin.requests_by_proxy


@attrs.frozen
class ModelExchange:
    """The middleware of a run by label, outermost first, the gate of each endpoint, and who sends requests just now.

    A gate stands around all middleware, so that middleware may refuse a request as an endpoint does. `watchers` are
    told when an endpoint gets more or fewer requests at once, or goes down or comes back; see EndpointGate. If the run
    is `recorded`, or played by a `player`, every request of every agent and judge passes here.
    """

    middleware: Mapping[str, Middleware] = attrs.field(factory=dict)
    retry: Retry = attrs.field(factory=Retry)
    seed: int = 0
    recorded: bool = False
    player: Player | None = None
    watchers: list[Callable[[str, int | None, bool], object]] = attrs.field(factory=list, init=False)
    _gates: dict[tuple[str, ...], Gate] = attrs.field(factory=dict, init=False)
    _askers: dict[str, tuple[Asker, Asking]] = attrs.field(factory=dict, init=False)
    _outages: dict[tuple[str, str], tuple[OutageError, Gate]] = attrs.field(factory=dict, init=False)
    _unknown: set[Asker] = attrs.field(factory=set, init=False)

    def leads(self, endpoint: Endpoint) -> bool:
        """Return whether requests to an endpoint pass here: keval's own simulated models refuse nothing."""
        return bool(self.middleware) or self.recorded or self.player is not None or not endpoint.simulated

    def outage(self, role: Literal["agent", "judge"], label: str) -> OutageError | None:
        """Return why this agent or judge cannot be used any more: its endpoint has been down for too long."""
        error, _ = self._outages.get((role, label), (None, None))
        return error

    def try_again(self, role: Literal["agent", "judge"], labels: Iterable[str]) -> None:
        """Let these agents or judges ask an endpoint anew that was down for too long."""
        for label in labels:
            _, gate = self._outages.pop((role, label), (None, None))
            if gate is not None:
                gate.reopen()

    @contextmanager
    def playing(self, asker: Asker, watch: Stopwatch) -> Iterator[AttemptTape | None]:
        """Yield the tape from which an attempt is played, or `None`; the time of the attempt is that of `watch`.

        Raises RunError: the recording is damaged.
        """
        if self.player is None:
            yield None
            return
        with self.player.attempt(asker, watch.expire) as tape:
            yield tape

    @contextmanager
    def asking(
        self,
        asker: Asker,
        refused: Callable[[Refusal], object],
        watch: Stopwatch,
        relayed: Callable[[bytes], object] = lambda body: None,
        *,
        log: TrafficLog | None = None,
        tape: AttemptTape | None = None,
    ) -> Iterator[dict[str, str]]:
        """Yield the headers that mark requests as this asker's while the block runs.

        `refused` is told of requests that are repeated; `watch` stops while they wait. `relayed` is told the body of
        each request that asks the model to write, as it leaves the innermost middleware. `log` keeps all requests, if
        the run is recorded, and `tape` answers them in a replay.
        """
        if not self._gates:
            yield {}
            return
        token = secrets.token_urlsafe(12)
        self._askers[token] = (asker, Asking(token, refused, watch.paused, relayed, log, tape))
        try:
            yield {ASKER_HEADER: token}
        finally:
            del self._askers[token]

    def route(self, asker: Asker, endpoint: Endpoint) -> ProxyRoute:
        """Return the route of an agent or judge to its endpoint; `asker` holds for requests without those headers."""
        there = (endpoint.model, *sorted(endpoint.urls.values()))
        gate = self._gates.get(there)
        if gate is None:
            live = EndpointGate(endpoint.model, self.retry, random.Random(self.seed), self._changed)
            gate = self._gates[there] = live if self.player is None else PlayedGate()
        unknown = Asking(asker.label, lambda refusal: None, nullcontext)

        async def exchange(request: ModelRequest, send: Next) -> ModelResponse:
            who, asking = self._askers.get(request.headers.get(ASKER_HEADER, ""), (asker, unknown))
            if self.recorded and ASKER_HEADER not in request.headers:
                self._warn_of_unknown(asker)
            try:
                last = _reporting(_keeping(send, asking), asking) if self.player is None else _playing(asking)
                sending = _chain(self.middleware, last)
                return await gate.ask(_known(request, who, endpoint), sending, asking)
            except OutageError as error:
                self._outages[who.role, who.label] = error, gate
                raise

        return ProxyRoute(asker, endpoint, exchange)

    def _warn_of_unknown(self, asker: Asker) -> None:
        """Warn, once for each agent or judge, that a request is not recorded, as nobody knows whose it is."""
        if asker not in self._unknown:
            self._unknown.add(asker)
            headers = "Context.model_headers" if asker.role == "agent" else "JudgeContext.model_headers"
            told = f"the {asker.role} {asker.label!r} sends model requests without {headers}; they are not recorded"
            warnings.warn(told, PluginWarning, stacklevel=2)

    def _changed(self, model: str, at_once: int | None, down: bool) -> None:
        for watcher in self.watchers:
            watcher(model, at_once, down)


def _known(request: ModelRequest, asker: Asker, endpoint: Endpoint) -> ModelRequest:
    """Say who asks, and leave out the headers that are keval's own."""
    own = {ASKER_HEADER} if endpoint.wants_trial else {ASKER_HEADER, *_TRIAL_HEADERS}
    kept = {name: value for name, value in request.headers.items() if name not in own}
    return attrs.evolve(request, asker=asker, headers=kept)


def _reporting(send: Next, asking: Asking) -> Next:
    """Return a `Next` that reports a request for a reply before it sends it."""

    async def reported(request: ModelRequest) -> ModelResponse:
        if request.asks_for_reply:
            asking.relayed(request.body)
        return await send(request)

    return reported


def _keeping(send: Next, asking: Asking) -> Next:
    """Return a `Next` that keeps what it sends and what comes back, if the run is recorded."""
    log = asking.log
    return send if log is None else lambda request: log.ask(request, send)


def _playing(asking: Asking) -> Next:
    """Return a `Next` that answers from the tape of whoever asks, and sends nothing."""
    tape = asking.tape

    async def play(request: ModelRequest) -> ModelResponse:
        if tape is None:
            raise ReplayMissError(f"a request to {request.model} belongs to no trial, so nothing is recorded of it")
        return await tape.ask(request, asking.relayed)

    return play


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
