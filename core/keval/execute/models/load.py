"""What an endpoint bears: how many requests it is given at once, and whether it is down; for all workers of a run."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import attrs

from keval.config.evaluation import Retry
from keval.errors import OutageError
from keval.seams.distribution import FINE, Ending, Standing

if TYPE_CHECKING:  # few runs have rates
    from keval.execute.models.rate import RateLimit

_FEWEST = 4
"""Responses in a round: after each round it is decided whether to let more or fewer requests through."""
_UNREACHABLE_IN_A_ROW = 5
_ASKERS_REFUSED_IN_A_ROW = 3
"""One request that its endpoint always fails at is no outage; three that it fails at are."""
_SILENT = 5.0
"""Seconds without an answer after which a trouble that was told before is told again."""
_FIRST_PROBE_WAIT, _LONGEST_PROBE_WAIT = 1.0, 30.0
_NEVER_ANSWERED = 30.0
"""Seconds after which an endpoint that never answered is given up, as it is more likely wrong than down."""


@attrs.define(eq=False)
class EndpointLoad:
    """Admits the requests to one endpoint; see `keval.seams.distribution.Load`.

    The number of requests at once follows additive increase and multiplicative decrease: a round of responses in which
    a fifth was refused with status 429 or 529 halves it, any other raises it by one. When the endpoint is down, all
    requests wait and one probes it. When it was down, or refused all as too many, for `max_outage_seconds`, it is given
    up; when it denies a request, at once. `rate` may be that of other endpoints, too. `changed` is told the model, how
    many requests go at once if that is bounded, whether the endpoint is down, and why it does not answer.
    """

    name: str
    retry: Retry
    changed: Callable[[str, int | None, bool, str | None], object] = lambda model, at_once, down, trouble: None
    address: str = "an unknown address"
    limit: float = math.inf
    given_up: str | None = None
    rate: RateLimit | None = None
    _under_way: int = 0
    _has_answered: bool = False
    _responses: int = 0
    _throttled: int = 0
    _unreachable: int = 0
    _refused: set[str] = attrs.field(factory=set)
    _rejected: set[str] = attrs.field(factory=set)
    _troubles: dict[str, str] = attrs.field(factory=dict)
    _trouble: str | None = None
    _silent_since: float | None = None
    _down_since: float | None = None
    _busy_since: float | None = None
    _probe_at: float = 0.0
    _probe_wait: float = _FIRST_PROBE_WAIT
    _probing: bool = False
    _free: asyncio.Event = attrs.field(factory=asyncio.Event)

    def admit_now(self) -> bool:
        """Admit a request if it may be sent at once; see `Load`."""
        passes = self._passes
        if passes:
            self._begin()
        return passes

    async def admit(self) -> bool:
        """Admit a request once it may be sent, and return whether it is the one that probes; see `Load`."""
        loop = asyncio.get_running_loop()
        while not (passes := self._passes):
            if self.given_up is not None:
                raise OutageError(self.given_up)
            until: float | None = None
            if self._down_since is None and self.rate is not None and (wait := self.rate.seconds_to_wait()) > 0:
                until = loop.time() + wait
            if self._down_since is not None:
                self._check_outage(loop.time())
                if not self._probing:
                    if loop.time() >= self._probe_at:
                        self._probing = True
                        break
                    # Given up when its time is over, and not at the next probe, which may be much later.
                    until = min(self._probe_at, self._down_since + self._outage_limit)
            # Nothing was awaited since the state was read, so no call of `leave` is missed.
            self._free.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await self._free.wait()
        self._begin()
        # only the probe has left the loop without a pass
        return not passes

    async def leave(self, ending: Ending, asker: str, message: str = "", *, probe: bool = False) -> Standing:
        """Note how a request ended that was admitted; see `Load`."""
        given_up: str | None = None
        if ending == "answered":
            self._responses += 1
            self._busy_since = None
            if self._silent_since is not None or self._rejected:
                self._answers_again()
        elif ending in ("throttled", "refused", "unreachable"):
            self._note_trouble(message)
        self._throttled += ending == "throttled"
        if ending == "denied" or (ending == "rejected" and self._rejects_all(asker)):
            given_up = await self.deny(message)
        # One that is too busy, or whose answer nobody can use, is up.
        elif ending in ("answered", "unusable", "throttled"):
            self._recovered()
        elif ending in ("refused", "unreachable"):
            self._note_failure(ending, asker, probe=probe)
        if ending == "throttled":
            given_up = self._too_busy(message)
        self._under_way -= 1
        self._probing = self._probing and not probe
        self._free.set()
        # Whether the endpoint refuses more than single requests among others that it answers.
        troubled = self._crowded or len(self._refused) > 1 or not self._has_answered
        # One record that all share, as nearly every request ends so.
        return FINE if ending == "answered" else Standing(self._down_since is not None, troubled, given_up)

    async def deny(self, message: str) -> str:
        """Give the endpoint up, which refuses until somebody acts, and return why; see `Load`."""
        self._free.set()
        return self._give_up(f"at {self.address} refuses to answer: {message}")

    @property
    def counts_tokens(self) -> bool:
        """Whether the tokens of replies count; see `Load`."""
        return self.rate is not None and self.rate.rate.tokens_per_minute is not None

    def spent(self, tokens: int) -> None:
        """Note the tokens of a reply; see `Load`."""
        if self.rate is not None:
            self.rate.spend(tokens)

    def reopen(self) -> None:
        """Let requests through again, if the endpoint was given up: it is waited for as long as at first."""
        self.given_up = self._down_since = self._busy_since = None
        self._unreachable, self._probe_wait = 0, _FIRST_PROBE_WAIT
        self._refused.clear()
        self._rejected.clear()
        self._tell()

    @property
    def _passes(self) -> bool:
        """Whether a request may be sent at once."""
        if self._down_since is not None or self._under_way >= self.limit or self.given_up is not None:
            return False
        return self.rate is None or self.rate.seconds_to_wait() <= 0

    def _begin(self) -> None:
        self._under_way += 1
        if self.rate is not None:
            self.rate.begin()

    @property
    def _crowded(self) -> bool:
        """Whether a fifth of this round's responses, and more than one, were refused as too many."""
        return self._throttled >= max(2, (self._responses + self._throttled) / 5)

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
            # Half of what is under way, as the limit is infinite at first and may later lie far above what is used.
            self.limit = max(1.0, min(self.limit, self._under_way) // 2)
        else:
            self.limit += 1
        self._responses = self._throttled = 0
        if self.limit != before:
            self._tell()

    def _tell(self) -> None:
        at_once = None if math.isinf(self.limit) else int(self.limit)
        self.changed(self.name, at_once, self._down_since is not None, self._trouble)

    def _note_trouble(self, message: str) -> None:
        """Note why a request was not answered; tell it the first time, and whenever nothing has been for a while."""
        now = asyncio.get_running_loop().time()
        self._silent_since = now if self._silent_since is None else self._silent_since
        # `HTTP 503` or the like; what follows may differ from request to request.
        kind = message.partition(":")[0]
        is_new = kind not in self._troubles
        told = self._troubles.setdefault(kind, f"{self.name} at {self.address} does not answer: {message}")
        if told != self._trouble and (is_new or now - self._silent_since >= _SILENT):
            self._trouble = told
            self._tell()

    def _answers_again(self) -> None:
        self._silent_since = None
        self._rejected.clear()
        if self._trouble is not None:
            self._trouble = None
            self._tell()

    def _rejects_all(self, asker: str) -> bool:
        """Note a refusal that may concern one request, and return whether it is taken to concern all."""
        self._rejected.add(asker)
        return not self._has_answered or len(self._rejected) >= _ASKERS_REFUSED_IN_A_ROW

    def _note_failure(self, ending: Ending, asker: str, *, probe: bool) -> None:
        """Note a failure, and whether the endpoint must be taken for down."""
        now = asyncio.get_running_loop().time()
        self._unreachable += ending == "unreachable"
        self._refused.add(asker)
        if probe:
            self._probe_wait = min(2 * self._probe_wait, _LONGEST_PROBE_WAIT)
            self._probe_at = now + self._probe_wait
        elif self._down_since is None and (
            self._unreachable >= _UNREACHABLE_IN_A_ROW or len(self._refused) >= _ASKERS_REFUSED_IN_A_ROW
        ):
            self._down_since, self._probe_at = now, now + self._probe_wait
            self._tell()

    def _too_busy(self, message: str) -> str | None:
        """Return why the endpoint is given up, if it has refused all requests as too many for too long."""
        now = asyncio.get_running_loop().time()
        self._busy_since = now if self._busy_since is None else self._busy_since
        patience = self.retry.max_outage_seconds
        if now - self._busy_since < patience:
            return None
        return self._give_up(f"has refused all requests for {patience:g} s ({message}){OutageError.NOT_RUN}")

    @property
    def _outage_limit(self) -> float:
        patience = self.retry.max_outage_seconds
        return patience if self._has_answered else min(patience, _NEVER_ANSWERED)

    def _check_outage(self, now: float) -> None:
        """Raise OutageError if the endpoint has been down for too long."""
        assert self._down_since is not None  # noqa: S101 - for mypy: it is down
        if now >= self._down_since + self._outage_limit:
            never = "" if self._has_answered else " and has never answered: check its address"
            why = f"; {self._trouble}" if self._trouble else ""
            self._give_up(f"has been down for {self._outage_limit:g} s{never}{why}{OutageError.NOT_RUN}")
        if self.given_up is not None:
            raise OutageError(self.given_up)

    def _give_up(self, why: str) -> str:
        self.given_up = f"the endpoint of {self.name} {why}"
        return self.given_up
