"""The gate in front of a model's endpoint: asks as its load admits, and repeats what was refused."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Protocol

import attrs
import orjson

from keval.config.evaluation import Retry
from keval.errors import TRANSIENT_STATUSES, MiddlewareError, ModelError, OutageError, TrialError
from keval.execute.attempts import RetryPolicy, Stopwatch
from keval.records.models import ModelRequest, ModelResponse, Next, retry_after_seconds
from keval.records.transcript import Refusal
from keval.seams.distribution import Ending, Load, Standing
from keval.seams.request_log import RequestLog
from keval.seams.traffic import AttemptTraffic
from keval.seams.use_meter import UseMeter

if TYPE_CHECKING:  # only what is refused needs it
    from keval.execute.models.denials import Refused

_LONGEST_MESSAGE = 500
_LONGEST_FIRST = 20_000
_EVENTS = "text/event-stream"


@attrs.frozen
class Failed:
    """A response that is not passed on unless it is the last, or the error in place of one."""

    status: int | None
    message: str
    retry_after: float | None = None
    response: ModelResponse | None = None
    error: Exception | None = None
    refusal: Refused | None = None

    @classmethod
    def refused(cls, response: ModelResponse, body: bytes, status: int | None = None) -> Failed:
        from keval.execute.models.denials import read_refusal  # where nothing is refused, it is not imported

        told = body[:_LONGEST_MESSAGE].decode("utf-8", "replace").strip()
        wait = retry_after_seconds(response.headers.get("retry-after"))
        status = status or response.status
        return cls(status, told, wait, response, refusal=read_refusal(status, body))

    @classmethod
    def broken(cls, error: Exception) -> Failed:
        return cls(None, str(error) or type(error).__name__, error=error)

    @property
    def ending(self) -> Ending:
        """How the request ended, for the load of its endpoint."""
        if self.status is None:
            return "unreachable"
        if self.is_final:
            return "denied" if self.refusal and self.refusal.certain else "rejected"
        return "throttled" if self.status in _THROTTLED else "refused"

    @property
    def is_final(self) -> bool:
        """Whether to ask again would help only after somebody has acted."""
        return self.refusal is not None and self.refusal.remedy is not None

    @property
    def told(self) -> str:
        """Say in one line what failed, by its kind first, and what mends it if that is known."""
        if self.refusal is None:
            said = self.message.removeprefix("the model's endpoint gave no answer: ")
            return said if self.status is None else f"HTTP {self.status}: {said}"
        remedy = f"; {self.refusal.remedy}" if self.refusal.remedy else ""
        return f"HTTP {self.status}: {self.refusal.text}{remedy}"

    def as_error(self) -> ModelError:
        """Return the error that the agent or judge would make of it, of a program that does not tell it."""
        said = self.refusal.text if self.refusal else self.message
        told = f"the model's endpoint answered with status {self.status}: {said}"
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
        if response.status in TRANSIENT_STATUSES:
            return Failed.refused(response, await response.read())
        # Read for every request, as a response that breaks off can be asked for again until it is passed on.
        first = await _begun(response)
        problem, refusal = None, None
        if not request.asks_for_reply:
            return response
        if response.status >= 400:
            refusal = Failed.refused(response, await response.read())
        elif 200 <= response.status < 300:
            problem, refusal = _examined(response, first)
    except MiddlewareError:
        raise
    except TrialError as error:
        if not isinstance(error, ModelError):
            raise
        return Failed.broken(error)
    except Exception as error:  # noqa: BLE001 - whatever breaks a response off before it is passed on
        return Failed.broken(error)
    # A refusal that may concern this request alone is passed on as it came; one with status 200 may say that it passes.
    if refusal is not None and (refusal.is_final or refusal.status in TRANSIENT_STATUSES):
        return refusal
    return response if problem is None else Failed(response.status, problem, response=response)


async def _begun(response: ModelResponse) -> bytes:
    """Wait for a response as long as it can still be asked for again, and return what there is by then.

    That is all of it, or the first event of a stream.
    """
    if not response.headers.get("content-type", "").lower().startswith(_EVENTS):
        return await response.read()
    following = aiter(response.chunks)
    first = b""
    async for chunk in following:
        first += chunk
        # Comments may come before the first event, and that in pieces; one that is longer is no error.
        if len(first) > _LONGEST_FIRST or b"\n" in first.partition(b"data:")[2]:
            break

    async def whole() -> AsyncIterator[bytes]:
        yield first
        async for chunk in following:
            yield chunk

    response.chunks = whole()
    return first


def _examined(response: ModelResponse, body: bytes) -> tuple[str | None, Failed | None]:
    """Say why a response that claims success cannot be an answer, and return the error that it reports, if any.

    An answer is JSON, or a stream of events, of which the first is known. What Python reads beyond JSON (NaN, lone
    surrogates) is left to agents.
    """
    kind = response.headers.get("content-type", "").lower()
    is_stream = kind.startswith(_EVENTS)
    if is_stream:
        # Few streams begin with an error: the first event of any other is not parsed.
        body = body.partition(b"data:")[2].partition(b"\n")[0] if b"error" in body else b"{}"
    try:
        reply = orjson.loads(body)
    except ValueError:
        from keval.execute.models.denials import unreadable

        return None if is_stream else unreadable(kind.partition(";")[0].strip(), body), None
    if isinstance(reply, dict) and (reply.get("error") or "base_resp" in reply or reply.get("type") == "error"):
        from keval.execute.models.denials import reported_failure

        found = reported_failure(reply)
        return None, None if found is None else Failed.refused(response, *found)
    return None, None


_THROTTLED = frozenset({429, 529})
_PATIENCE_WITH_BUSY = 3
"""Times as many attempts for a request as it has at an endpoint that fails: a busy one serves others meanwhile."""
_SHARE_OF_FIRST_WAIT = 0.25
"""The part of the first wait that is enough for a request that is refused alone: there is no crowd to let pass."""


@attrs.frozen
class RequestScope:
    """An attempt whose requests are passed on; its `stopwatch` stops while they wait. An `id` tells attempts apart.

    `requests` is told of the requests. What `headers` returns is added to those of a program that sends none, if the
    endpoint wants to know of the trial. `traffic` stands between the attempt and its models, if it is kept or played.
    `meter` counts requests, if trials have limits.
    """

    stopwatch: Stopwatch = attrs.field(factory=Stopwatch)
    requests: RequestLog = attrs.field(factory=RequestLog)
    headers: Callable[[], Mapping[str, str]] = dict
    traffic: AttemptTraffic | None = None
    meter: UseMeter | None = None
    id: str = ""


class Gate(Protocol):
    """Stands in front of an endpoint."""

    async def ask(self, request: ModelRequest, send: Next, scope: RequestScope) -> ModelResponse:
        """Send a request, again where that can help, and return the last response."""
        ...

    async def deny(self, refused: str) -> str | None:
        """Be told of a refusal within a stream, and return why the endpoint is given up, if it is."""
        ...

    def reopen(self) -> None:
        """Let requests through again, if the endpoint was given up."""
        ...


@attrs.frozen
class EndpointGate:
    """Leads the requests of this process to one endpoint, as its `load` admits them.

    A request that is refused alone waits for less than one of many.
    """

    load: Load
    retry: Retry
    rng: random.Random
    # Read once from the load, as it is needed for each answer.
    counts_tokens: bool = attrs.field(init=False)

    @counts_tokens.default
    def _counts_tokens(self) -> bool:
        return self.load.counts_tokens

    async def ask(self, request: ModelRequest, send: Next, scope: RequestScope) -> ModelResponse:
        """Send a request, again where that can help, and return the last response.

        Raises:
            ModelError: the endpoint could not be reached, or broke the response off, the last time included.
            TrialError: the response cannot be used, for example because it is too large.
            MiddlewareError: a middleware failed.
            OutageError: the endpoint has been down for too long, or refuses until somebody acts.
        """
        patience = RetryPolicy(self.retry, asyncio.sleep, self.rng)
        attempts = failures = 0
        while True:
            outcome, standing = await self._sent(request, send, scope)
            if not isinstance(outcome, Failed):
                return outcome
            if outcome.is_final:
                return outcome.passed_on()
            if standing.down:  # then every request waits, and one at a time probes
                scope.requests.refused(Refusal(outcome.status, outcome.message, 0.0))
                continue
            attempts += 1
            failures += outcome.status not in _THROTTLED
            most = self.retry.max_request_attempts
            if failures >= most or attempts >= _PATIENCE_WITH_BUSY * most:
                return outcome.passed_on()
            quick = attempts == 1 and not standing.troubled
            wait = patience.backoff(attempts, outcome.retry_after, share=_SHARE_OF_FIRST_WAIT if quick else 1.0)
            scope.requests.refused(Refusal(outcome.status, outcome.message, wait))
            # Waiting for an endpoint counts neither as response time nor against the time limit.
            with scope.stopwatch.paused():
                await asyncio.sleep(wait)

    async def deny(self, refused: str) -> str | None:
        """Give the endpoint up that refuses within a stream until somebody acts, and return why."""
        # Not by an admission: the request itself has left when its stream began.
        return await self.load.deny(refused)

    def reopen(self) -> None:
        """Let requests through again, if the endpoint was given up."""
        self.load.reopen()

    async def _sent(
        self, request: ModelRequest, send: Next, scope: RequestScope
    ) -> tuple[ModelResponse | Failed, Standing]:
        """Send a request once it is admitted; its time stops until then. Returns what came, and how the load stands."""
        probe = False
        # Most requests may go at once, and then need neither a pause nor another task's turn.
        if not self.load.admit_now():
            with scope.stopwatch.paused():
                probe = await self.load.admit()
        # If a cancellation or a middleware ends the request, that says nothing of the endpoint.
        ending: Ending = "untold"
        message = ""
        try:
            outcome = await sent(request, send)
            ending = "answered"
            if not isinstance(outcome, Failed):
                if self.counts_tokens:
                    from keval.execute.models.streams import counting  # few endpoints have a rate

                    counting(request, outcome, self.load.spent)
            else:
                ending, message = outcome.ending, outcome.told
        except MiddlewareError:
            raise
        except TrialError:
            ending = "unusable"
            raise
        finally:
            standing = await self.load.leave(ending, scope.id, message, probe=probe)
        if standing.given_up is not None:
            raise OutageError(standing.given_up)
        return outcome, standing
