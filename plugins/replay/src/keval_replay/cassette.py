"""The traffic of one attempt at a trial, or at a judgement, played to whoever asks for it again."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, get_args

import attrs

from keval.errors import ModelError, RunError, TrialError
from keval.plan.plan import Plan
from keval.records.cassettes import (
    Deliver,
    ModelTraffic,
    ReplayMissError,
    ServerTraffic,
    ServerTrafficKind,
    TrafficError,
    Volatile,
)
from keval.records.manifest import AnswersEntry
from keval.records.models import Asker, Endpoint, ModelRequest, ModelResponse, Next, Wire
from keval.records.servers import McpServer
from keval.records.transcript import Refusal
from keval.records.trial import Failure
from keval.redaction import Redactor
from keval.seams.contexts import ServerSpec
from keval.seams.interfaces import DeclaresVolatile
from keval_replay.frames import FrameFile
from keval_replay.playback import Playback, next_equal
from keval_replay.recorder import Recorder, check_is_seen
from keval_replay.recording import RecordedAttempt, Recording
from keval_replay.request_comparison import ComparableRequest, canonical, first_difference, first_difference_of_call


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
        if kind == "closed":
            return await self._close(following, asked)
        if self.playback.missed is not None:
            raise self.playback.missed
        if kind == "notified":  # it may name a request by a number that differs every time, and nobody answers it
            if not following:
                return asked
            found: ServerTraffic | None = following[0]
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

    async def _close(self, following: list[ServerTraffic], asked: ServerTraffic) -> ServerTraffic:
        """End the way to the server; what the recording does not have of that is no miss."""
        if not following:
            return asked
        if following[0].ended is not None:
            await self.playback.deliver_before(following[0].ended)
        return following[0]


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

        Raises:
            ReplayMissError: the recording has no such request here.
            ModelError, TrialError: what was raised in place of an answer.
        """
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
            self._playback.end(found)
            yield last
        finally:
            self._playback.end(found)

    def repeated(self, status: int | None, message: str) -> Refusal | None:
        """Return what is known of a refusal with this status, if the request was then sent again."""
        if self.recorded.refusals is None:
            return Refusal(status, message, 0.0) if self._requests else None
        found = next((each for each in self._refusals if each.status == status), None)
        if found is not None:
            self._refusals.remove(found)
        return found

    def server(self, name: str) -> PlayedServer:
        """Return what plays a server."""
        exchanges = [each for each in self._playback.traffic if isinstance(each, ServerTraffic) and each.server == name]
        return PlayedServer(self._playback, name, exchanges, partial(self.listed, name))

    def served(self, server: ServerSpec) -> ServerSpec:
        return attrs.evolve(server, cassette=self.server(server.name))

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
        """Yield the cassette of an attempt; one that was never made has no traffic. Raises RunError: it is damaged.

        `expire` ends the attempt as if its time were over.
        """
        trial, number, repetition = asker.trial or "", asker.attempt or 1, asker.repetition or 1
        if asker.role == "agent":
            recorded = self.recording.attempt(trial, number)
        else:
            recorded = self.recording.judgement(trial, asker.label, repetition, number)
        compared = partial(self._compared, tuple(self.volatile.get((asker.role, asker.label), ())))
        cassette = AttemptCassette(
            recorded or RecordedAttempt(), compared, self.redact.data, expire, partial(self._listed, trial)
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

    def listing(self, server: ServerSpec | McpServer, condition: str | None) -> ServerSpec | McpServer:
        """Return a server with what plays it before the first trial, which is only what it lists."""
        playback = Playback((), is_late=False, expire=lambda: None, scrubbed=self.redact.data)
        listed = partial(self.recording.listed, condition or "", server.name)
        played = attrs.evolve(check_is_seen(server), cassette=PlayedServer(playback, server.name, [], listed))
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

    def _listed(self, trial: str, server: str) -> Mapping[str, Any]:
        return self.recording.listed(self.recording.run.trial(trial).condition, server)


def volatile_of(plan: Plan) -> dict[tuple[str, str], Sequence[Volatile]]:
    """Return what agents and judges declare as volatile, by role and label."""
    askers = [("agent", item) for item in plan.agents] + [("judge", item) for item in plan.scorers.judges]
    declared = [(role, item.label, item.plugin) for role, item in askers]
    return {(role, label): plugin.volatile for role, label, plugin in declared if isinstance(plugin, DeclaresVolatile)}
