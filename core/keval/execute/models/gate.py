"""The gate in front of a model's endpoint: repeats what was refused, asks less, waits while it is down."""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeAlias

import attrs
import orjson

from keval.config.evaluation import Retry
from keval.errors import MiddlewareError, ModelError, OutageError, TrialError
from keval.execute.attempts import RetryPolicy
from keval.execute.traffic_log import TrafficLog
from keval.records.models import ModelRequest, ModelResponse, Next, retry_after_seconds
from keval.records.transcript import Refusal, Usage
from keval.seams.transcript_builder import FinishReason

if TYPE_CHECKING:  # only a run that is recorded or replayed needs it
    from keval.recording.cassette import AttemptCassette


_REPEATED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_LONGEST_MESSAGE = 500


@attrs.frozen
class Failed:
    """A response that is not passed on unless it is the last, or the error in place of one."""

    status: int | None
    message: str
    retry_after: float | None = None
    response: ModelResponse | None = None
    error: Exception | None = None

    @classmethod
    def refused(cls, response: ModelResponse, body: bytes) -> Failed:
        told = body[:_LONGEST_MESSAGE].decode("utf-8", "replace").strip()
        wait = retry_after_seconds(response.headers.get("retry-after"))
        return cls(response.status, told, wait, response)

    @classmethod
    def broken(cls, error: Exception) -> Failed:
        return cls(None, str(error) or type(error).__name__, error=error)

    def as_error(self) -> ModelError:
        """Return the error that the agent or judge would make of it, of a program that does not tell it."""
        told = f"the model's endpoint answered with status {self.status}: {self.message}"
        return ModelError(told, status=self.status, retry_after=self.retry_after)

    def passed_on(self) -> ModelResponse:
        """Return the response; raises the error where there is none."""
        if self.response is not None:
            return self.response
        if isinstance(self.error, ModelError):
            raise self.error
        raise ModelError(f"the response broke off: {self.message}") from self.error


async def sent(request: ModelRequest, send: Next) -> ModelResponse | Failed:
    """Send a request and return its response, as soon as that can be passed on, or what failed.

    Raises:
        MiddlewareError: a middleware failed.
        TrialError: the endpoint answered with what would be the same the next time.
    """
    try:
        response = await send(request)
        if response.status in _REPEATED:
            return Failed.refused(response, await response.read())
        await _begun(response)
        problem = await _unreadable(request, response)
    except MiddlewareError:
        raise
    except TrialError as error:
        if not isinstance(error, ModelError):
            raise
        return Failed.broken(error)
    except Exception as error:  # noqa: BLE001 - whatever breaks a response off before it is passed on
        return Failed.broken(error)
    return response if problem is None else Failed(response.status, problem, response=response)


async def _begun(response: ModelResponse) -> None:
    """Wait for a response as long as it can still be asked for again: for its end, or the first event of a stream."""
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        await response.read()
        return
    following = aiter(response.chunks)
    first = [chunk async for chunk in _first(following)]

    async def whole() -> AsyncIterator[bytes]:
        for chunk in first:
            yield chunk
        async for chunk in following:
            yield chunk

    response.chunks = whole()


async def _first(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        yield chunk
        return


async def _unreadable(request: ModelRequest, response: ModelResponse) -> str | None:
    """Say why a response that claims success cannot be an answer, or return `None`.

    An answer is JSON, or a stream of events; the response to another request may be anything. What Python reads beyond
    JSON (NaN, lone surrogates) is left to agents. The response has been read, unless it is a stream.
    """
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not request.asks_for_reply or not 200 <= response.status < 300 or kind == "text/event-stream":
        return None
    body = await response.read()
    with suppress(ValueError):
        orjson.loads(body)
        return None
    try:
        json.loads(body)
    except RecursionError:  # it is JSON so far, and whoever reads it will say more
        return None
    except ValueError as error:
        return f"the response of type {kind or 'unknown'} is no JSON: {error}"
    return None


_THROTTLED = frozenset({429, 529})
_PATIENCE_WITH_BUSY = 3
"""Times as many attempts for a request as it has at an endpoint that fails: a busy one serves others meanwhile."""
_FEWEST = 4
"""Responses in a round: after each round the gate decides whether to let more or fewer requests through."""
_UNREACHABLE_IN_A_ROW = 5
_ASKERS_REFUSED_IN_A_ROW = 3
"""One request that its endpoint always fails at is no outage; three that it fails at are."""
_SHARE_OF_FIRST_WAIT = 0.25
"""The part of the first wait that is enough for a request that is refused alone: there is no crowd to let pass."""
_FIRST_PROBE_WAIT, _LONGEST_PROBE_WAIT = 1.0, 30.0
_NEVER_ANSWERED = 30.0
"""Seconds after which an endpoint that never answered is given up, as it is more likely wrong than down."""


Metered: TypeAlias = "Callable[[Usage, FinishReason | None], object]"
"""Is told the tokens of a reply, and what ended it before its time."""


@attrs.frozen
class RequestScope:
    """Who asks: an id that tells askers apart, what is told of each refusal, request and reply, and how its time stops.

    `headers` are added to requests that lack them, if the endpoint wants to know of the trial. `log` keeps its traffic,
    if the run is recorded, and `cassette` answers in place of the model in a replay.
    """

    id: str
    refused: Callable[[Refusal], object]
    paused: Callable[[], AbstractContextManager[object]]
    relayed: Callable[[bytes], object] = lambda body: None
    metered: Metered = lambda usage, finish: None
    failed: Callable[[TrialError], object] = lambda error: None
    headers: Mapping[str, str] = MappingProxyType({})
    log: TrafficLog | None = None
    cassette: AttemptCassette | None = None


class Gate(Protocol):
    """Stands in front of an endpoint."""

    async def ask(self, request: ModelRequest, send: Next, scope: RequestScope) -> ModelResponse:
        """Send a request, again where that can help, and return the last response."""
        ...

    def reopen(self) -> None:
        """Let requests through again, if the endpoint was given up."""
        ...


@attrs.frozen
class PlayedGate:
    """Repeats a request where it was repeated when it was recorded, at once; remembers nothing of other requests."""

    async def ask(self, request: ModelRequest, send: Next, scope: RequestScope) -> ModelResponse:
        """Answer as the gate did that was recorded; see `Gate`."""
        while isinstance(outcome := await sent(request, send), Failed):
            refusal = scope.cassette.repeated(outcome.status, outcome.message) if scope.cassette else None
            if refusal is None:
                return outcome.passed_on()
            scope.refused(refusal)
        return outcome

    def reopen(self) -> None:
        """Do nothing: a recording is not given up."""


@attrs.define(eq=False)
class EndpointGate:
    """Leads the requests to one endpoint.

    The number of requests at once follows additive increase and multiplicative decrease: a round of responses in which
    a fifth was refused with status 429 or 529 halves it, any other raises it by one. A request that is refused alone
    waits for less than one of many. When the endpoint is down, all requests wait and one probes it. When it was down,
    or refused all as too many, for `max_outage_seconds`, requests fail with an OutageError. `changed` is told the
    model, how many requests go at once if that is bounded, and whether the endpoint is down.
    """

    name: str
    retry: Retry
    rng: random.Random
    changed: Callable[[str, int | None, bool], object] = lambda model, at_once, down: None
    limit: float = math.inf
    outage: OutageError | None = None
    _under_way: int = 0
    _has_answered: bool = False
    _responses: int = 0
    _throttled: int = 0
    _unreachable: int = 0
    _refused: set[str] = attrs.field(factory=set)
    _down_since: float | None = None
    _busy_since: float | None = None
    _probe_at: float = 0.0
    _probe_wait: float = _FIRST_PROBE_WAIT
    _probing: bool = False
    _free: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def ask(self, request: ModelRequest, send: Next, scope: RequestScope) -> ModelResponse:
        """Send a request, again where that can help, and return the last response.

        Raises:
            ModelError: the endpoint could not be reached, or broke the response off, the last time included.
            TrialError: the response cannot be used, for example because it is too large.
            MiddlewareError: a middleware failed.
            OutageError: the endpoint has been down for too long.
        """
        patience = RetryPolicy(self.retry, asyncio.sleep, self.rng)
        attempts = failures = 0
        while True:
            probe = await self._admitted(scope)
            try:
                outcome = await self._sent(request, send, scope.id, probe=probe)
            finally:
                self._under_way -= 1
                self._probing = self._probing and not probe
                self._free.set()
            if not isinstance(outcome, Failed):
                return outcome
            if self._down_since is not None:  # then every request waits, and one at a time probes
                scope.refused(Refusal(outcome.status, outcome.message, 0.0))
                continue
            attempts += 1
            failures += outcome.status not in _THROTTLED
            most = self.retry.max_request_attempts
            if failures >= most or attempts >= _PATIENCE_WITH_BUSY * most:
                return outcome.passed_on()
            quick = attempts == 1 and not self._troubled
            wait = patience.backoff(attempts, outcome.retry_after, share=_SHARE_OF_FIRST_WAIT if quick else 1.0)
            scope.refused(Refusal(outcome.status, outcome.message, wait))
            with scope.paused():
                await asyncio.sleep(wait)

    def reopen(self) -> None:
        """Let requests through again, if the endpoint was given up: it is waited for as long as at first."""
        self.outage = self._down_since = self._busy_since = None
        self._unreachable, self._probe_wait = 0, _FIRST_PROBE_WAIT
        self._refused.clear()
        self._tell()

    @property
    def _passes(self) -> bool:
        """Whether a request may be sent at once."""
        return self._down_since is None and self._under_way < self.limit

    async def _admitted(self, scope: RequestScope) -> bool:
        """Admit a request once it may be sent; its time stops until then. Returns whether it is the one that probes."""
        probe = False
        if not self._passes:
            with scope.paused():
                probe = await self._waited()
        self._under_way += 1
        return probe

    async def _waited(self) -> bool:
        """Wait until a request may be sent; returns whether it is the one that probes."""
        loop = asyncio.get_running_loop()
        while True:
            until: float | None = None
            if self._down_since is not None:
                self._check_outage(loop.time())
                if not self._probing:
                    if loop.time() >= self._probe_at:
                        self._probing = True
                        break
                    until = min(self._probe_at, self._down_since + self._outage_limit)
            elif self._passes:
                break
            self._free.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await self._free.wait()
        return self._probing and self._down_since is not None

    async def _sent(self, request: ModelRequest, send: Next, asker: str, *, probe: bool) -> ModelResponse | Failed:
        try:
            outcome = await sent(request, send)
        except MiddlewareError:
            raise
        except TrialError:  # it answered
            self._recovered()
            raise
        if not isinstance(outcome, Failed):
            self._responses += 1
            self._busy_since = None
            self._recovered()
        elif outcome.status in _THROTTLED:  # it is up, and busy
            self._throttled += 1
            self._recovered()
            self._check_busy(outcome)
        else:
            self._note(outcome, asker, probe=probe)
        return outcome

    @property
    def _crowded(self) -> bool:
        """Whether a fifth of this round's responses, and more than one, were refused as too many."""
        return self._throttled >= max(2, (self._responses + self._throttled) / 5)

    @property
    def _troubled(self) -> bool:
        """Whether the endpoint refuses more than single requests among others that it answers."""
        return self._crowded or len(self._refused) > 1 or not self._has_answered

    def _recovered(self) -> None:
        """Note that the endpoint is up, and at the end of a round adapt how many requests it gets at once."""
        self._has_answered = True
        was_down = self._down_since is not None
        self._unreachable, self._down_since, self._probe_wait = 0, None, _FIRST_PROBE_WAIT
        self._refused.clear()
        if was_down:
            self._tell()
        if self._responses + self._throttled < max(_FEWEST, min(self.limit, self._under_way)):
            return
        before = self.limit
        if self._crowded:
            self.limit = max(1.0, min(self.limit, self._under_way) // 2)
        else:
            self.limit += 1
        self._responses = self._throttled = 0
        if self.limit != before:
            self._tell()

    def _tell(self) -> None:
        at_once = None if math.isinf(self.limit) else int(self.limit)
        self.changed(self.name, at_once, self._down_since is not None)

    def _note(self, failed: Failed, asker: str, *, probe: bool) -> None:
        """Note a failure, and whether the endpoint must be taken for down."""
        now = asyncio.get_running_loop().time()
        self._unreachable += failed.status is None
        self._refused.add(asker)
        if probe:
            self._probe_wait = min(2 * self._probe_wait, _LONGEST_PROBE_WAIT)
            self._probe_at = now + self._probe_wait
        elif self._down_since is None and (
            self._unreachable >= _UNREACHABLE_IN_A_ROW or len(self._refused) >= _ASKERS_REFUSED_IN_A_ROW
        ):
            self._down_since, self._probe_at = now, now + self._probe_wait
            self._tell()

    def _check_busy(self, refused: Failed) -> None:
        now = asyncio.get_running_loop().time()
        self._busy_since = now if self._busy_since is None else self._busy_since
        patience = self.retry.max_outage_seconds
        if now - self._busy_since >= patience:
            self._give_up(f"has refused all requests for {patience:g} s (HTTP {refused.status}: {refused.message})")

    @property
    def _outage_limit(self) -> float:
        """Seconds for which the endpoint may be down."""
        patience = self.retry.max_outage_seconds
        return patience if self._has_answered else min(patience, _NEVER_ANSWERED)

    def _check_outage(self, now: float) -> None:
        assert self._down_since is not None  # noqa: S101 - for mypy: it is down
        if now >= self._down_since + self._outage_limit:
            never = "" if self._has_answered else " and has never answered: check its address"
            self._give_up(f"has been down for {self._outage_limit:g} s{never}")
        if self.outage is not None:
            raise self.outage

    def _give_up(self, why: str) -> NoReturn:
        self.outage = OutageError(
            f"the endpoint of {self.name} {why}; the remaining trials were not run; `keval resume latest` continues"
        )
        raise self.outage
