"""The traffic of one attempt at a trial, or at a judgement, played to whoever asks for it again."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, get_args

import attrs

from keval.errors import ModelError, RunError, TrialError
from keval.records.cassettes import (
    Deliver,
    ModelTraffic,
    ReplayMissError,
    ServerTraffic,
    ServerTrafficKind,
    Traffic,
    TrafficError,
    Volatile,
)
from keval.records.manifest import AnswersEntry
from keval.records.models import Asker, Endpoint, ModelRequest, ModelResponse, Next, Wire
from keval.records.servers import McpServer
from keval.records.transcript import Refusal
from keval.records.trial import Failure
from keval.redaction import Redactor
from keval.seams.contexts import ServerUse
from keval_replay.frames import FrameFile
from keval_replay.matching import is_poll, next_equal, next_of_task
from keval_replay.recorder import Recorder, check_is_seen
from keval_replay.recording import RecordedAttempt, Recording
from keval_replay.request_comparison import ComparableRequest, canonical, first_difference, first_difference_of_call

ORDER_WAIT_SECONDS = 1.0
"""Seconds for which an exchange waits for those that ended before it: after a change they may never come."""
_SETTLE = 0.3
"""Seconds that an agent has for its last answers, before the time of an attempt ends that ended so in the recording."""
_NEWS = ("asked", "told", "listed")
"""What comes from a server by itself."""
_BORDERS = ("opened", "closed")
"""The ends of the way to a server, which no other exchange waits for."""


@attrs.define(eq=False)
class Playback:
    """Leads the exchanges of one attempt.

    `is_late` says that the time of the attempt was over when it was recorded, and `expire` ends it as if it were.
    `scrubbed` returns plain data without its secrets. `missed` is the first thing that the recording does not have.
    `hearers` are told what a server says by itself, by its name, and those of `during` what belongs to an exchange, by
    the number of its beginning.
    """

    traffic: Sequence[Traffic]
    is_late: bool
    expire: Callable[[], object]
    scrubbed: Callable[[Any], Any]
    missed: ReplayMissError | None = attrs.field(default=None, init=False)
    hearers: dict[str, Deliver] = attrs.field(factory=dict, init=False)
    during: dict[int, Deliver] = attrs.field(factory=dict, init=False)
    _news: list[ServerTraffic] = attrs.field(init=False)
    _numbers: Sequence[int] = attrs.field(init=False)
    _open: set[int] = attrs.field(init=False)
    _abandoned: set[int] = attrs.field(init=False)
    _changed: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _delivering: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _tasks: set[asyncio.Task[None]] = attrs.field(factory=set, init=False)
    _expiry: asyncio.TimerHandle | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._news = [each for each in self.traffic if isinstance(each, ServerTraffic) and each.kind in _NEWS]
        asked = [each for each in self._news if each.kind == "asked"]
        aside = (*_NEWS, *_BORDERS)
        played = [each for each in self.traffic if not (isinstance(each, ServerTraffic) and each.kind in aside)]
        self._numbers = [number for each in played for number in (each.began, each.ended) if number is not None]
        awaited = [each for each in played if not is_poll(each)]
        self._open = {each.ended for each in (*awaited, *asked) if each.ended is not None}
        self._abandoned = {each.began for each in awaited if each.ended is None}

    def close(self) -> None:
        """End what is still under way."""
        for task in self._tasks:
            task.cancel()
        if self._expiry is not None:
            self._expiry.cancel()

    def miss(self, problem: str) -> NoReturn:
        """Note that the recording does not have what is asked, and end the attempt. Raises ReplayMissError."""
        if self.missed is None:
            self.missed = ReplayMissError(problem)
            self.expire()
        raise self.missed

    async def beyond_end(self, problem: str) -> NoReturn:
        """Answer what was not recorded: never, if the attempt's time was over by then; else raise ReplayMissError."""
        if not self.is_late:
            self.miss(problem)
        self._expire_soon()
        await asyncio.get_running_loop().create_future()
        raise AssertionError  # the future has no result

    async def begin(self, exchange: Traffic) -> None:
        """Begin an exchange, after all that servers said by themselves before it."""
        await self.deliver_before(exchange.began)
        self._abandoned.discard(exchange.began)
        self._expire_at_end()

    async def turn(self, exchange: Traffic) -> None:
        """Wait until an exchange may end: those that ended before it have ended, or none has for `ORDER_WAIT_SECONDS`.

        One that was abandoned waits for ever. Before it may end, all is handed over that servers said meanwhile, and
        until the next exchange began or ended: whoever is answered goes on with what it knows.
        """
        end = exchange.ended
        if end is None:
            await asyncio.get_running_loop().create_future()
            return
        while news := next((each for each in self._news if each.began < end and self._hearer(each)), None):
            await self._ended_before(news.began)
            await self.deliver_before(news.began + 1)
        await self._ended_before(end)
        await self.deliver_before(min((number for number in self._numbers if number > end), default=None))

    async def _ended_before(self, number: int) -> None:
        while any(each < number for each in self._open):
            changed = self._changed
            try:
                async with asyncio.timeout(ORDER_WAIT_SECONDS):
                    await changed.wait()
            except TimeoutError:
                # Given up for good, so that no later exchange waits for the same ones again.
                self._open = {each for each in self._open if each >= number}

    def end(self, exchange: Traffic) -> None:
        """Note that an exchange has ended."""
        if exchange.ended in self._open:
            self._open.remove(exchange.ended)
            self._changed.set()
            # A new event for each end: with one that stays set, nobody would wait for the next end.
            self._changed = asyncio.Event()
            self._expire_at_end()

    async def deliver_before(self, number: int | None) -> None:
        """Hand over what servers said by themselves before this number, or all of it, in its order."""
        if not self._news:
            return
        async with self._delivering:
            for news in [each for each in self._news if number is None or each.began < number]:
                if (deliver := self._hearer(news)) is None:
                    continue
                self._news.remove(news)
                if news.kind == "asked":
                    # Not awaited here: the answer may need a model request (sampling), which waits for this lock.
                    task = asyncio.create_task(self._ask(news, deliver))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                else:
                    await deliver(news)

    def _hearer(self, news: ServerTraffic) -> Deliver | None:
        """Return who is told; what belongs to a call that has not begun waits for it."""
        return self.hearers.get(news.server) if news.during is None else self.during.get(news.during)

    async def _ask(self, news: ServerTraffic, deliver: Deliver) -> None:
        """Ask what a server asked. It went on as it was answered then, so it must be answered so again."""
        answer = await deliver(news)
        if news.ended is None:
            return
        told = self.scrubbed(dict(answer)) if isinstance(answer, Mapping) else answer
        if not _is_answer(news, told):
            # In a task of its own there is nobody to raise it to: `miss` has noted it and ended the attempt.
            with suppress(ReplayMissError):
                asked = f"the server {news.server!r} asked for {news.method}"
                self.miss(f"{asked}, and the answer differs from the recorded one: {told}")
        self.end(news)

    def _expire_at_end(self) -> None:
        """End the time of an attempt that was late, when nothing is left but what was abandoned."""
        if self.is_late and not self._open and not self._abandoned:
            self._expire_soon()

    def _expire_soon(self) -> None:
        if self._expiry is None:
            self._expiry = asyncio.get_running_loop().call_later(_SETTLE, self.expire)


def _is_answer(recorded: ServerTraffic, answer: Mapping[str, Any] | TrafficError | None) -> bool:
    if isinstance(answer, TrafficError):
        return recorded.error is not None and (recorded.error.kind, recorded.error.code) == (answer.kind, answer.code)
    return recorded.error is None and (recorded.result or {}) == (answer or {})


def _raised(error: TrafficError | None) -> Exception:
    """Return what was raised in place of an answer, or of the rest of one."""
    if error is None:
        return ModelError("the recording has no answer to this request")
    if error.kind == "unreachable":
        return ModelError(error.message, status=error.details.get("status"))
    if error.kind == "failed":
        stage, again = error.details.get("stage", "model"), bool(error.details.get("retryable"))
        return TrialError(error.message, stage=stage, kind=error.failure, retryable=again)
    # Adapters and proxies tell the name of an error that keval does not explain.
    named: type[Exception] = type(str(error.details.get("type", "ConnectionError")), (Exception,), {})
    return named(error.message)


@attrs.frozen(eq=False)
class PlayedServer:
    """Plays one server; see `keval.records.cassettes.ServerCassette`.

    `left` are the recorded exchanges that were not asked for yet, in their order. `listing` returns what the server
    listed before the first trial.
    """

    playback: Playback
    name: str
    left: list[ServerTraffic]
    listing: Callable[[], Mapping[str, Any]]

    def listed(self) -> Mapping[str, Any]:
        return self.listing()

    def opened(self) -> ServerTraffic | None:
        return next((each for each in self.left if each.kind == "opened"), None)

    def hear(self, deliver: Deliver) -> None:
        self.playback.hearers[self.name] = deliver

    async def play(
        self, kind: ServerTrafficKind, method: str, params: Mapping[str, Any], deliver: Deliver
    ) -> ServerTraffic:
        asked = ServerTraffic(self.name, kind, method, self.playback.scrubbed(dict(params)))
        following = [each for each in self.left if (each.kind, each.method) == (kind, method)]
        if kind == "closed":  # what the recording does not have of the end of the way is no miss
            if following and following[0].ended is not None:
                await self.playback.deliver_before(following[0].ended)
            return following[0] if following else asked
        if self.playback.missed is not None:
            raise self.playback.missed
        if kind == "notified":  # it may name a request by a number that differs every time, and nobody answers it
            if not following:
                return asked
            found: ServerTraffic | None = following[0]
        elif method.startswith("tasks/"):
            found = next_of_task(self.left, asked)
        else:
            found = next_equal(following, lambda each: each.params == asked.params)
        if found is None:
            if following:
                self.playback.miss(f"the server {self.name!r}: {_difference(following[0], asked)}")
            what = f"call of `{asked.params.get('name')}`" if kind == "call" else f"request {method}"
            await self.playback.beyond_end(f"the recording has no further {what} at the server {self.name!r} here")
        self.left.remove(found)
        self.playback.during[found.began] = deliver
        await self.playback.begin(found)
        try:
            await self.playback.turn(found)
        finally:
            self.playback.end(found)
        return found


def _difference(recorded: ServerTraffic, now: ServerTraffic) -> str:
    if now.kind != "call":
        return first_difference_of_call(now.method, recorded.params, now.params)
    was, tool = recorded.params.get("name"), str(now.params.get("name"))
    if was != tool:
        return f"`{tool}` is called, but the recording has a call of `{was}` here"
    return first_difference_of_call(tool, *(each.params.get("arguments") or {} for each in (recorded, now))) or (
        first_difference_of_call(tool, recorded.params, now.params)
    )


_STANDSTILL = 120.0
"""Seconds after which an agent that gets recorded answers at once, and does not end, is given up."""


@attrs.define(eq=False)
class AttemptCassette:
    """Plays one attempt; see `keval.seams.traffic.AttemptTraffic`. What asks and what is asked see no difference.

    `compared` returns what of a model request is compared, and `listed` what a server of the attempt listed before the
    first trial. The rest is as in `Playback`.
    """

    recorded: RecordedAttempt
    compared: Callable[[ModelRequest], ComparableRequest]
    scrubbed: Callable[[Any], Any]
    expire: Callable[[], object]
    listed: Callable[[str], Mapping[str, Any]] = lambda server: {}
    _playback: Playback = attrs.field(init=False)
    _requests: list[ModelTraffic] = attrs.field(init=False)
    _refusals: list[Refusal] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        ordered = sorted(self.recorded.traffic, key=lambda each: each.began)
        self._playback = Playback(ordered, self.recorded.is_late, self.expire, self.scrubbed)
        self._requests = [each for each in ordered if isinstance(each, ModelTraffic)]
        self._refusals = list(self.recorded.refusals or ())

    @property
    def missed(self) -> ReplayMissError | None:
        """The first request that the recording does not have, which is what the attempt failed by."""
        return self._playback.missed

    def begin(self) -> None:
        """Raise what the attempt failed by when it was recorded, if that was before there could be any traffic."""
        failure = self.recorded.failure
        if failure is not None and failure.stage == "context":
            # A failure that was kept does not say whether it may be retried: it was, if another attempt followed.
            again = not self.recorded.is_last
            raise TrialError(failure.message, stage=failure.stage, kind=failure.kind, retryable=again)

    def overruled(self, failure: Failure | None, late: TrialError) -> TrialError | None:
        """Return what the attempt fails by, whatever whoever asked made of it: a miss, or that its time was over.

        `failure` is what it failed by here. Time that was over before an answer is over, though the answer comes now.
        """
        return self.missed or (late if self.recorded.is_late and failure is None else None)

    def limit(self, seconds: float) -> float:
        """Return the time limit of the attempt, in seconds, given that of a live one.

        A replay is late where the recording is. That many trials are replayed at once, on a small machine, does not
        make it so; only an agent that has come to a standstill does.
        """
        return max(seconds, _STANDSTILL)

    async def ask(self, request: ModelRequest, send: Next, relayed: Callable[[bytes], object]) -> ModelResponse:
        """Answer a model request as it was answered; nothing is sent.

        `relayed` is told the body of a request for a reply as it was recorded, with what is volatile in it; of one that
        the recording does not have, its own.

        Raises ReplayMissError: the recording has no such request here; and ModelError, TrialError: what was raised in
        place of an answer.
        """
        # An SDK or a framework may ask again after an error; it must not get an answer by that.
        if self.missed is not None:
            raise self.missed
        asked = self.compared(request)
        found = next_equal(self._requests, lambda each: self.compared(each.request) == asked)
        if request.asks_for_reply:
            relayed(request.body if found is None else found.request.body)
        if found is None:
            if self._requests:
                different = first_difference(self.compared(self._requests[0].request), asked)
                self._playback.miss(f"the request to {asked.model} differs from the recorded one; {different}")
            await self._playback.beyond_end(f"the recording has no more requests to {asked.model} here")
        self._requests.remove(found)
        await self._playback.begin(found)
        if found.status is None:
            await self._playback.turn(found)
            self._playback.end(found)
            raise _raised(found.error)
        return ModelResponse(found.status, found.headers, self._body(found))

    async def _body(self, found: ModelTraffic) -> AsyncIterator[bytes]:
        """Yield a response's body, and end the exchange with its last chunk."""
        try:
            *first, last = found.chunks or (b"",)
            for chunk in first:
                yield chunk
            if found.error is not None:
                yield last
                await self._playback.turn(found)
                raise _raised(found.error)
            await self._playback.turn(found)
            # Before the last chunk is handed over: who has it may ask for the next thing, and never come back here.
            self._playback.end(found)
            yield last
        finally:
            self._playback.end(found)

    def repeated(self, status: int | None, message: str) -> Refusal | None:
        """Return what is known of a refusal with this status, if the request was then sent again."""
        if self.recorded.refusals is None:
            # Of judgements no refusals are kept: a refused request was repeated if any request came after it.
            return Refusal(status, message, 0.0) if self._requests else None
        found = next((each for each in self._refusals if each.status == status), None)
        if found is not None:
            self._refusals.remove(found)
        return found

    def server(self, name: str) -> PlayedServer:
        """Return what plays a server."""
        exchanges = [each for each in self._playback.traffic if isinstance(each, ServerTraffic) and each.server == name]
        return PlayedServer(self._playback, name, exchanges, partial(self.listed, name))

    def served(self, use: ServerUse) -> ServerUse:
        return attrs.evolve(use, cassette=self.server(use.name))

    def close(self) -> None:
        """End what is still being played."""
        self._playback.close()


_NOWHERE = "http://recording.invalid"
"""An address that no name server knows (RFC 2606, section 2)."""


@attrs.frozen(eq=False)
class Player:
    """Plays a recording; see `keval.seams.traffic.RunTraffic`.

    `volatile` is what agents and judges declare, by role and label. If the replay has a `recorder` of its own, what the
    recording does not have is asked anew, which is not the player's task.
    """

    recording: Recording
    redact: Redactor
    volatile: Mapping[tuple[str, str], Sequence[Volatile]] = attrs.field(factory=dict)
    recorder: Recorder | None = None
    plays: bool = attrs.field(default=True, init=False)

    @contextmanager
    def attempt(self, asker: Asker, expire: Callable[[], object]) -> Iterator[AttemptCassette]:
        """Yield the cassette of an attempt; one that was never made has no traffic. Raises RunError: it is damaged."""
        trial, number, repetition = asker.trial or "", asker.attempt or 1, asker.repetition or 1
        if asker.role == "agent":
            recorded = self.recording.attempt(trial, number)
        else:
            recorded = self.recording.judgement(trial, asker.label, repetition, number)
        compared = partial(self._compared, tuple(self.volatile.get((asker.role, asker.label), ())))
        run, listed = self.recording.run, self.recording.listed
        cassette = AttemptCassette(
            recorded or RecordedAttempt(),
            compared,
            self.redact.data,
            expire,
            lambda server: listed(run.trial(trial).condition, server),
        )
        try:
            yield cassette
        finally:
            cassette.close()

    def frame(self, asker: Asker) -> bytes | None:
        return None

    def unattributed(self, asker: Asker) -> None:
        """Do nothing: `ask` refuses the request."""

    async def ask(self, request: ModelRequest, send: Next, relayed: Callable[[bytes], object]) -> ModelResponse:
        raise ReplayMissError(f"a request to {request.model} belongs to no trial, so the recording has no answer to it")

    def listing(self, use: ServerUse | McpServer, condition: str | None) -> ServerUse | McpServer:
        """Return the use of a server with what plays it before the first trial, which is only what it lists."""
        playback = Playback((), is_late=False, expire=lambda: None, scrubbed=self.redact.data)
        listed = partial(self.recording.listed, condition or "", use.name)
        played = attrs.evolve(check_is_seen(use), cassette=PlayedServer(playback, use.name, [], listed))
        return played if self.recorder is None else self.recorder.listing(played, condition)

    def answers(self, server: str, condition: str | None) -> AnswersEntry | None:
        entry = self.recording.manifest.conditions.get(condition or "")
        return entry.servers[server].answers if entry is not None and server in entry.servers else None

    def writing(self, run: Path, endpoints: Mapping[str, Endpoint]) -> AbstractContextManager[FrameFile]:
        if self.recorder is None:
            raise RunError("a replay in which nothing is live has no recording of its own")
        return self.recorder.writing(run, endpoints)

    def endpoint(self, model: str) -> Endpoint | None:
        """Return an endpoint in place of the recorded one, at which nothing is ever sent.

        A model that was not recorded has one, too, so that the first request to it is named by the miss, unless it can
        be asked.
        """
        known = self.recording.endpoints.get(model)
        if known is None and self.recorder is not None:
            return None
        urls = known.urls if known is not None else dict.fromkeys(get_args(Wire), _NOWHERE)
        name = known.name if known is not None else None
        return Endpoint(
            name or model.partition("/")[2],
            urls,
            secrets.token_urlsafe(24),
            simulated=known is not None and known.simulated,
            wants_trial=known is not None and known.wants_trial,
        )

    def _compared(self, volatile: tuple[Volatile, ...], request: ModelRequest) -> ComparableRequest:
        body, path = self.redact.content(request.body), self.redact.text(request.path)
        return canonical(attrs.evolve(request, body=body, path=path), volatile)
