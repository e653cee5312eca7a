"""Tapes: what passes between agents and judges, models and servers, as a recording keeps it and as a replay plays it.

A recording has the traffic of each attempt at a trial, and of each judgement. Within one, every exchange has a number
for its beginning and one for its end, counted together over all models and servers. So a replay can end parallel
exchanges in the order in which they ended.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Protocol, TypeAlias

import attrs

from keval.errors import FailureKind, TrialError
from keval.records.models import Asker, ModelRequest

REPLAY_MISS: FailureKind = "replay_miss"
"""The kind of failure of a trial or judgement that asks for something that its recording does not have."""


class ReplayMissError(TrialError):
    """A request differs from the recorded one, or there is none; the message says how."""

    stage = "replay"
    kind = REPLAY_MISS


@attrs.frozen
class Volatile:
    """What differs between requests that are the same, such as a date, and the reason; a replay does not compare it.

    It is one of three: a `field` of the request's JSON, which is taken out; a `pattern` (a regular expression) of a
    part of its texts, which is replaced; or an `order`, the field by which those items of a list are sorted that have
    it, as in `messages.*.content.*.id`. A field is a path with dots; `*` stands for every item of a list or object.

    Raises:
        ValueError: it is none of them or several, the pattern cannot be read or matches an empty text, or the order is
            of no list.
    """

    reason: str
    field: str | None = None
    pattern: str | None = None
    order: str | None = None

    def __attrs_post_init__(self) -> None:
        if [self.field, self.pattern, self.order].count(None) != 2:
            what = "what is volatile needs exactly one of field, pattern and order"
            raise ValueError(f"{what}: {self.reason}")
        if self.order is not None and self.order.split(".")[-2:-1] != ["*"]:
            raise ValueError(f"the volatile order {self.order!r} is of no list; let it end in `.*.` and a field")
        if self.pattern is not None:
            try:
                everywhere = re.compile(self.pattern).match("")
            except re.error as error:
                raise ValueError(f"the volatile pattern {self.pattern!r} cannot be read: {error}") from error
            # It would be replaced between any two characters of every text.
            if everywhere:
                raise ValueError(
                    f"the volatile pattern {self.pattern!r} matches the empty text; write one that does not"
                )


@attrs.frozen
class TrafficError:
    """What came in place of an answer.

    `kind` is `abandoned` where the asker gave the exchange up before it ended: it was cancelled, or its time was over.
    From models, `unreachable` is a `ModelError`, `failed` another `TrialError` whose kind is `failure`, and `broken`
    anything else that ended a response midway. From servers, `refused` is an error of JSON-RPC with its `code` and
    `data`, `timeout` a call that took too long, `lost` and `call_lost` a server that was lost (of the kind `failure`),
    and `no_result` an answer that is none. `details` has what else is needed to raise the same again.
    """

    kind: Literal[
        "abandoned", "unreachable", "failed", "broken", "refused", "timeout", "lost", "call_lost", "no_result"
    ]
    message: str = ""
    failure: str | None = None
    code: int | None = None
    data: Any = None
    details: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class ModelTraffic:
    """One request to a model as it left the innermost middleware, and what came back.

    `chunks` are the pieces of the response's body as they arrived. With an `error`, they are what came before it.
    `began` and `ended` are numbers of this attempt's order; `ended` is `None` if the exchange was abandoned. `at` is
    Unix time and `seconds` how long it took until its last chunk.
    """

    asker: Asker
    request: ModelRequest
    status: int | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict)
    chunks: tuple[bytes, ...] = attrs.field(default=(), repr=False)
    error: TrafficError | None = None
    began: int = 0
    ended: int | None = None
    at: float | None = None
    seconds: float | None = None

    @property
    def attempt(self) -> int:
        """The number of the attempt that it is of."""
        return self.asker.attempt or 1


ServerTrafficKind: TypeAlias = Literal["opened", "listed", "call", "request", "notified", "asked", "told", "closed"]


@attrs.frozen
class ServerTraffic:
    """One exchange between an attempt and an MCP server, below the interventions.

    `opened` is the beginning of the way to the server: `result` says what is known of it, or `error` that it failed.
    `listed` has what the server lists, in `result`: before the first trial, and in an attempt when it changed. With an
    `error`, too, it is what a server listed that had been lost between two exchanges. A `call` has the parameters of
    `tools/call`, which are `name` and `arguments` as a rule, without `_meta`. A `request` is any other of the agent,
    and `notified` its notification. `asked` is a request of the server, with the answer that it got, and `told` its
    notification. `during` is the `began` of the call or request that a `told` of progress belongs to. `closed` is the
    end of the way, in which the tools are listed once more. The rest is as in `ModelTraffic`.
    """

    server: str
    kind: ServerTrafficKind
    method: str = ""
    params: Mapping[str, Any] = attrs.field(factory=dict)
    result: Mapping[str, Any] | None = None
    error: TrafficError | None = None
    during: int | None = None
    attempt: int = 1
    began: int = 0
    ended: int | None = None
    at: float | None = None
    seconds: float | None = None


Traffic: TypeAlias = ModelTraffic | ServerTraffic


class ServerTrafficLog(Protocol):
    """Keeps the traffic of one attempt with one server.

    The one that `ServerProxy.connect` is given, before there are trials, keeps a single `listed`.
    """

    def begin(
        self,
        kind: ServerTrafficKind,
        method: str = "",
        params: Mapping[str, Any] | None = None,
        during: int | None = None,
    ) -> int:
        """Note that an exchange begins, and return its number. One that never ends is kept as abandoned."""
        ...

    def end(self, number: int, result: Mapping[str, Any] | None = None, error: TrafficError | None = None) -> None:
        """Note that the exchange of this number has ended, with a result, an error, or, for notifications, neither."""
        ...


Deliver: TypeAlias = Callable[[ServerTraffic], Awaitable[Mapping[str, Any] | TrafficError | None]]
"""Passes on what a server asked (returns the answer, or the error in its place), told or listed (returns `None`)."""


class ServerCassette(Protocol):
    """Plays a server: all of it from a recording, without a connection."""

    def listed(self) -> Mapping[str, Any]:
        """Return the result of the `listed` that was kept before the first trial.

        Raises:
            PreflightError: there is none for this server.
        """
        ...

    def opened(self) -> ServerTraffic | None:
        """Return how this attempt's way to the server began; `None` if this is not known, and it began well."""
        ...

    def hear(self, deliver: Deliver) -> None:
        """Take who is told what the server asked, told and listed while no exchange with it is played.

        It is delivered before the attempt's next exchange with any model or server, and, if none follows but `closed`,
        before its last one is answered.
        """
        ...

    async def play(
        self, kind: ServerTrafficKind, method: str, params: Mapping[str, Any], deliver: Deliver
    ) -> ServerTraffic:
        """Return what came of this `call`, `request`, `notified` or `closed` in the recording.

        Before that, everything that the server asked, told and listed by then is delivered, in its order; to `deliver`
        of this exchange what came `during` it. An exchange that was abandoned is awaited for ever: whoever abandoned it
        does so again.

        Raises:
            ReplayMissError: the recording has no such exchange here.
        """
        ...
