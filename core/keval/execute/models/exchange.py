"""Model requests: models are found by their providers, or played, and led through the middleware of a run."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import warnings
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from functools import partial
from hmac import compare_digest
from typing import Any, Literal, TypeAlias

import attrs

from keval.config.evaluation import Evaluation, Retry
from keval.errors import MiddlewareError, ModelError, OutageError, PluginWarning, PreflightError, TrialError
from keval.execute.attempts import Stopwatch
from keval.execute.bringup.resources import ResourceScope
from keval.execute.limits import RunLimits
from keval.execute.models.gate import EndpointGate, Failed, Gate, RequestScope
from keval.plan.plan import ResolvedPlugin, models_of
from keval.records.models import ASKER_HEADER, Asker, Endpoint, Model, ModelRequest, ModelResponse, Next
from keval.records.usage import BYTES_PER_TOKEN, Usage
from keval.redaction import Redactor
from keval.seams import registry
from keval.seams.distribution import Limits
from keval.seams.finish_reason import FinishReason
from keval.seams.infrastructure import AttemptKey, Middleware, ProxyRoute
from keval.seams.interfaces import has_flag
from keval.seams.request_log import RequestLog
from keval.seams.traffic import AttemptTraffic, RunTraffic

MakeGate: TypeAlias = Callable[[], Gate]
"""Makes what stands in front of an endpoint."""

_ASKER_HEADERS = frozenset({ASKER_HEADER})
_OWN_HEADERS = frozenset({ASKER_HEADER, "x-keval-trial", "x-keval-repetition", "x-keval-resample", "x-keval-watched"})


_UNKNOWN_KEY = (
    "its key is of no attempt that is under way; a program may have outlived its attempt, or uses a key that it was not"
    " given"
)


@attrs.define(eq=False)
class _Attempt:
    """An attempt: who asks models in it, with which key, and what is told of that. Is among `running` in its block.

    Once it is `over`, its key is refused, and what is under way is cancelled; until that has ended, it is among
    `running`, as a reply that breaks off is counted then.
    """

    asker: Asker
    key: AttemptKey
    scope: RequestScope
    running: dict[str, _Attempt] = attrs.field(factory=dict)
    over: bool = attrs.field(default=False, init=False)

    async def __aenter__(self) -> dict[str, str]:
        self.running[self.key.value] = self
        return {ASKER_HEADER: self.key.value}

    async def __aexit__(self, *_: object) -> None:
        self.over = True
        try:
            for task in [*self.key.in_flight]:
                task.cancel()
            if self.key.in_flight:  # what they used until now counts to the attempt
                await asyncio.wait([*self.key.in_flight])
        finally:
            del self.running[self.key.value]


@attrs.frozen
class ModelExchange:
    """The middleware of a run by label, outermost first, the gate of each endpoint, and who sends requests just now.

    A gate stands around all middleware, so that middleware may refuse a request as an endpoint does. `limits` say how
    many requests an endpoint is given. If there is `traffic` to keep or play, every request of every agent and judge
    passes here. `make_gate` makes other gates than those of endpoints.
    """

    middleware: Mapping[str, Middleware] = attrs.field(factory=dict)
    retry: Retry = attrs.field(factory=Retry)
    seed: int = 0
    traffic: RunTraffic | None = None
    limits: Limits = attrs.field(factory=RunLimits)
    make_gate: MakeGate | None = None
    _gates: dict[tuple[str, ...], Gate] = attrs.field(factory=dict, init=False)
    _attempts: dict[str, _Attempt] = attrs.field(factory=dict, init=False)
    _ids: Iterator[int] = attrs.field(factory=itertools.count, init=False)
    _outages: dict[tuple[str, str], tuple[OutageError, Gate]] = attrs.field(factory=dict, init=False)
    _unknown_keys: Counter[Asker] = attrs.field(factory=Counter, init=False)

    def leads(self, endpoint: Endpoint) -> bool:
        """Return whether requests to an endpoint pass here: keval's own simulated models refuse nothing."""
        return bool(self.middleware) or self.traffic is not None or not endpoint.simulated

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

    def attempt(self, asker: Asker, stopwatch: Stopwatch) -> AbstractContextManager[AttemptTraffic | None]:
        """Return a block with the traffic of an attempt, if it is kept or played; its time is that of `stopwatch`.

        Raises RunError: what is to be played is damaged.
        """
        return nullcontext() if self.traffic is None else self.traffic.attempt(asker, stopwatch.expire)

    def request_scope(self, asker: Asker, scope: RequestScope) -> AbstractAsyncContextManager[dict[str, str]]:
        """Return a block with headers that mark requests as this asker's as long as it runs, by the attempt's key."""
        # A run whose requests pass no gate pays for no key.
        if not self._gates:
            return nullcontext({})
        key = AttemptKey(f"keval-{os.urandom(24).hex()}", scope.requests.denied, costs=scope.requests.costs)
        return _Attempt(asker, key, attrs.evolve(scope, id=f"{next(self._ids):x}"), self._attempts)

    def route(
        self, asker: Asker, endpoint: Endpoint, model: str = "", *, metered: bool = False, sole: bool = False
    ) -> ProxyRoute:
        """Return the route of an agent or judge to its endpoint; `asker` holds for requests without those headers.

        `model` is `provider/name`. If it is `metered`, the proxy counts the tokens of replies. If that is the `sole`
        report of model calls, the proxy reports those that fail, too.
        """
        there = endpoint.place
        gate = self._gates.get(there)
        if gate is None:
            if self.make_gate is not None:
                gate = self.make_gate()
            else:
                gate = EndpointGate(self.limits.load(endpoint, model), self.retry, random.Random(self.seed))
            self._gates[there] = gate
        # for requests without an attempt's header: only the agent or judge is known, by the route
        unknown = _Attempt(asker, AttemptKey(""), RequestScope(id=asker.label))
        # By identity: the proxy hands `meter` the very request that it handed `exchange`.
        broken: dict[int, TrialError] = {}

        async def exchange(request: ModelRequest, send: Next) -> ModelResponse:
            attempt = self._attempts.get(request.headers.get(ASKER_HEADER, ""), unknown)
            told, who, scope = attempt.asker, attempt.asker, attempt.scope
            if asker.role == "context":  # it is the server that asks: in the attempt, and not in the agent's name
                told, requests = attrs.evolve(who, role="context", label=asker.label), RequestLog(meter=scope.meter)
                requests.refusals = scope.requests.refusals  # the waits are the trial's
                scope = attrs.evolve(scope, requests=requests)

            async def leave(request: ModelRequest) -> ModelResponse:
                try:
                    return await last(request)
                except asyncio.CancelledError:  # it may have been answered, though nobody waited for that
                    scope.requests.passed(len(request.body) // BYTES_PER_TOKEN)
                    scope.requests.metered(Usage(), None, model)
                    raise

            if self.traffic is not None and ASKER_HEADER not in request.headers:
                self.traffic.unattributed(asker)
            meter = scope.meter if scope.meter is not None and request.asks_for_reply else None
            if meter is not None:
                meter.asks()
            answered = False
            try:
                last = _reporting(send, scope, scope.traffic or self.traffic)
                sending = _chain(self.middleware, leave if metered else last)
                response = await gate.ask(_known(request, told, endpoint, scope), sending, scope)
                answered = response.status < 300  # as the proxy has it, which meters no redirect
            except OutageError as error:
                self._give_up(who, error, gate)
                raise
            except TrialError as error:
                if sole or not isinstance(error, ModelError):  # an SDK makes a refusal of what keval did not pass on
                    scope.requests.failed(error)
                raise
            finally:
                if meter is not None and not answered:
                    meter.lost()
            # The agent's program reads the refusal, and no adapter tells of it.
            if sole and response.status >= 400 and request.asks_for_reply:
                scope.requests.failed(Failed.refused(response, await response.read()).as_error())
            if answered and request.asks_for_reply:
                # Estimated by length: a reply that tells no tokens, or whose reader hangs up, must not count as 0.
                asked = len(request.body)
                if (size := response.size) is not None:
                    scope.requests.passed((asked + size) // BYTES_PER_TOKEN)
                else:
                    from keval.execute.models.streams import follow  # most replies are whole

                    follow(response, asked, scope.requests.passed, partial(fail, request, scope), partial(deny, who))
            return response

        def fail(request: ModelRequest, scope: RequestScope, error: TrialError) -> None:
            if metered:  # what did arrive is about to be told, as that of a reply
                broken[id(request)] = error
            else:
                scope.requests.failed(error)

        async def deny(who: Asker, refused: str) -> None:
            if (why := await gate.deny(refused)) is not None:
                self._give_up(who, OutageError(why), gate)

        def meter(request: ModelRequest, usage: Usage, finish: FinishReason | None) -> None:
            attempt = self._attempts.get(request.headers.get(ASKER_HEADER, ""), unknown)
            attempt.scope.requests.metered(usage, finish, model)
            if (error := broken.pop(id(request), None)) is not None:
                attempt.scope.requests.failed(error)

        find_key = partial(self._find_key, asker)
        return ProxyRoute(asker, endpoint, exchange, meter if metered else None, find_key, self._attempt_of)

    def _attempt_of(self, asker: str) -> AttemptKey | None:
        attempt = self._attempts.get(asker)
        return None if attempt is None else attempt.key

    def _give_up(self, who: Asker, error: OutageError, gate: Gate) -> None:
        """End the attempts of an agent or judge whose endpoint is down; a program would ask again and again."""
        self._outages[who.role, who.label] = error, gate
        for other in self._attempts.values():
            if (other.asker.role, other.asker.label) == (who.role, who.label):
                other.scope.stopwatch.expire()

    def _find_key(self, asker: Asker, key: str) -> AttemptKey | None:
        """Return the attempt of an agent or judge that a key is of. Any other key is said where it can be."""
        given = key.encode("utf-8", "surrogateescape")
        running = [
            each
            for each in self._attempts.values()
            if not each.over and (each.asker.role, each.asker.label) == (asker.role, asker.label)
        ]
        for each in running:
            if compare_digest(each.key.value.encode(), given):  # takes as long, however much of it is right
                return each.key
        if len(running) == 1:  # otherwise nobody knows whose program it is
            running[0].key.denied("a request", _UNKNOWN_KEY)
        else:
            self._unknown_keys[asker] += 1
        return None

    async def aclose(self) -> None:
        """Warn of requests with unknown keys that no trial tells of."""
        for asker, count in self._unknown_keys.items():
            told = f"requests to the model of the {asker.role} {asker.label!r} refused: {count:,}; {_UNKNOWN_KEY}"
            warnings.warn(told, PluginWarning, stacklevel=2)


def _known(request: ModelRequest, asker: Asker, endpoint: Endpoint, scope: RequestScope) -> ModelRequest:
    """Say who asks, and leave out the headers that are keval's own."""
    # No endpoint gets the attempt's key, and only one that wants the trial gets the headers of it.
    own = _ASKER_HEADERS if endpoint.wants_trial else _OWN_HEADERS
    kept = {name: value for name, value in request.headers.items() if name not in own}
    if endpoint.wants_trial:
        kept = {**scope.headers(), **kept}
    return ModelRequest(request.model, request.wire, request.method, request.path, kept, request.body, asker)


def _reporting(send: Next, scope: RequestScope, traffic: AttemptTraffic | RunTraffic | None) -> Next:
    """Return a `Next` that reports a request for a reply before it sends it, unless `traffic` answers it."""

    async def reported(request: ModelRequest) -> ModelResponse:
        if traffic is not None:
            return await traffic.ask(request, send, scope.requests.relayed)
        if request.asks_for_reply:
            scope.requests.relayed(request.body)
        return await send(request)

    return reported


def _chain(middleware: Mapping[str, Middleware], send: Next) -> Next:
    following = send
    # from the inside out: the first is the outermost
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


def endpoints_by_model(askers: Iterable[ResolvedPlugin], endpoints: Mapping[str, Endpoint]) -> dict[str, Endpoint]:
    """Return the endpoint of each model that these agents and judges ask, by `provider/name`."""
    models = [model for item in askers for model in item.models.values()]
    return {str(model): model.endpoint or endpoints[str(model)] for model in models}


def learn_keys(redactor: Redactor, endpoints: Iterable[Endpoint], *plugins: Iterable[object]) -> None:
    """Let a redactor know the keys of models: of the endpoints that providers found, and of those that plugins have.

    Behind a proxy a plugin has another key than the one that it was constructed with.
    """
    models = (model for group in plugins for plugin in group for model in models_of(plugin).values())
    found = (*endpoints, *(model.endpoint for model in models if model.endpoint is not None))
    redactor.learn((f"the key of {endpoint.model}", endpoint.api_key) for endpoint in found)
    for endpoint in found:
        if endpoint.platform is not None:
            endpoint.platform.tell_secrets(redactor.learn)


ModelField: TypeAlias = tuple[Asker, str]
"""A field of an agent or judge that names a model."""


async def resolve_models(
    resolved: Iterable[ResolvedPlugin], evaluation: Evaluation, scope: ResourceScope, traffic: RunTraffic | None = None
) -> dict[str, Endpoint]:
    """Ask the providers for the endpoints of these plugins' models, but for those that `traffic` has.

    Raises PreflightError with every problem.
    """
    names: dict[str, list[str]] = {}
    known: dict[str, Endpoint] = {}
    for item in resolved:
        for model in item.unserved.values():
            # A model that is played needs no provider, and so no key in the environment.
            if traffic is not None and (played := traffic.endpoint(str(model))) is not None:
                known[str(model)] = played
            elif model.name not in names.setdefault(model.provider, []):
                names[model.provider].append(model.name)
    providers, seed = evaluation.providers, evaluation.execution.seed
    made = {name: providers.get(name) or registry.load(registry.find("keval.models", name))() for name in names}
    found = await all_of([scope.enter(made[name].open(models, seed)) for name, models in names.items()])
    for provider, endpoints in zip(names, found, strict=True):
        known.update((f"{provider}/{name}", endpoint) for name, endpoint in endpoints.items())
    return known


async def lead(
    askers: Iterable[ResolvedPlugin],
    endpoints: Mapping[str, Endpoint],
    exchange: ModelExchange,
    scope: ResourceScope,
    *,
    most: int,
) -> Mapping[ModelField, Model]:
    """Route every model through the middleware: in process if its plugin can, otherwise by one proxy for all.

    A reply may have `most` bytes.
    """
    scope.close_later(exchange)
    models: dict[ModelField, Model] = {}
    proxied: dict[ModelField, ProxyRoute] = {}
    for item in askers:
        asker = item.asker
        # What an agent costs is known by one of the two.
        if len({(model.endpoint or endpoints[str(model)]).simulated for model in item.models.values()}) > 1:
            told = f"{item.component.kind} {item.label!r} has simulated models and others; choose one kind"
            raise PreflightError(f"{item.place}: {told}")
        for field, model in item.models.items():
            endpoint = model.endpoint or endpoints[str(model)]
            endpoint = attrs.evolve(endpoint, max_reply_bytes=most)
            by_proxy = has_flag(item.plugin, "requests_by_proxy")
            if exchange.leads(endpoint) or by_proxy:
                sole = has_flag(item.plugin, "usage_by_proxy")
                route = exchange.route(asker, endpoint, str(model), metered=sole or by_proxy, sole=sole)
                if has_flag(item.plugin, "applies_middleware"):
                    endpoint = attrs.evolve(endpoint, exchange=route.exchange)
                else:
                    proxied[asker, field] = route
            models[asker, field] = attrs.evolve(model, endpoint=endpoint)
    # one proxy for all of them, as each is a server that has to start
    if proxied:
        proxy = registry.load(registry.find("keval.proxies", "models"))()
        for key, endpoint in zip(proxied, await scope.enter(proxy.open([*proxied.values()])), strict=True):
            models[key] = attrs.evolve(models[key], endpoint=endpoint)
    return models


async def all_of(begun: Iterable[Awaitable[Any]]) -> list[Any]:
    """Await all; raises one PreflightError with the problems of all that raised one."""
    outcomes = await asyncio.gather(*begun, return_exceptions=True)
    problems: dict[str, None] = {}
    for outcome in outcomes:
        if isinstance(outcome, PreflightError):
            problems.update(dict.fromkeys(outcome.problems))
        elif isinstance(outcome, BaseException):
            raise outcome
    if problems:
        raise PreflightError(problems)
    return list(outcomes)
