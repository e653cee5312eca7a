"""The limits of a run on a cluster: one actor holds them, and every worker asks it."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import attrs

from keval.errors import OutageError
from keval.execute.limits import RunLimits
from keval.records.models import Endpoint
from keval.seams.distribution import Ending, Load, Standing

Change: TypeAlias = tuple[str, int | None, bool, str | None]
"""A model, how many requests it is given at once, whether its endpoint is down, and why it does not answer."""
Where: TypeAlias = tuple[str, tuple[str, ...]]
"""Which endpoint: the model as `provider/name`, and the `place` of the endpoint."""


class Limiter:
    """Holds the limits for all workers, and knows what each holds, so that a lost one keeps nothing."""

    def __init__(self, limits: RunLimits) -> None:
        self._limits = limits
        self._limits.watchers.append(self._tell)
        self._requests: dict[str, Counter[tuple[Where, bool]]] = defaultdict(Counter)
        self._places: dict[str, Counter[tuple[str, int]]] = defaultdict(Counter)
        self._lost: set[str] = set()
        self._changes: list[Change] = []
        self._changed = asyncio.Event()

    async def admit(self, worker: str, endpoint: Where) -> bool | str:
        """Admit a request to an endpoint; returns whether it probes, or why the endpoint was given up."""
        load = self._load(endpoint)
        try:
            probe = not load.admit_now() and await load.admit()
        except OutageError as error:
            return str(error)
        self._requests[worker][endpoint, probe] += 1
        if worker in self._lost:  # meanwhile
            await self.forget(worker)
        return probe

    async def leave(
        self, worker: str, endpoint: Where, ending: Ending, asker: str = "", message: str = "", *, probe: bool = False
    ) -> Standing:
        """Note how a request ended; see `keval.seams.distribution.Load`."""
        # The worker was taken for lost meanwhile, and what it held is given back already.
        if not self._requests[worker][endpoint, probe]:
            return Standing()
        self._requests[worker][endpoint, probe] -= 1
        return await self._load(endpoint).leave(ending, f"{worker} {asker}", message, probe=probe)

    async def deny(self, endpoint: Where, message: str) -> str:
        """Give an endpoint up, and return why; see `keval.seams.distribution.Load`."""
        return await self._load(endpoint).deny(message)

    async def take(self, worker: str, name: str, most: int) -> None:
        """Wait for a place of this name."""
        # By hand, as another call of the actor, `give`, ends the block.
        await self._limits.place(name, most).__aenter__()
        self._places[worker][name, most] += 1
        if worker in self._lost:
            await self.forget(worker)

    async def give(self, worker: str, name: str, most: int) -> None:
        """Give a place back."""
        if self._places[worker][name, most]:
            self._places[worker][name, most] -= 1
            await self._limits.place(name, most).__aexit__(None, None, None)

    async def forget(self, worker: str) -> None:
        """Give back what a lost worker holds, and what it may still be given."""
        self._lost.add(worker)
        for name, most in [*self._places.pop(worker, Counter()).elements()]:
            await self._limits.place(name, most).__aexit__(None, None, None)
        for endpoint, probe in [*self._requests.pop(worker, Counter()).elements()]:
            await self._load(endpoint).leave("untold", worker, probe=probe)

    async def spent(self, endpoint: Where, tokens: int) -> None:
        """Note the tokens of a reply."""
        self._load(endpoint).spent(tokens)

    async def changes(self) -> Sequence[Change]:
        """Return how endpoints keep up, as soon as there is news."""
        await self._changed.wait()
        self._changed.clear()
        told, self._changes = self._changes, []
        return told

    async def reopen(self, endpoint: Where) -> None:
        """Let requests to an endpoint through again, if it was given up."""
        self._load(endpoint).reopen()

    def _load(self, endpoint: Where) -> Load:
        model, place = endpoint
        return self._limits.load_at(place, model)

    def _tell(self, *change: *Change) -> None:
        self._changes.append(change)
        self._changed.set()


@attrs.frozen(eq=False)
class RemoteLimits:
    """The limits of a run, for the worker of this name; see `keval.plugin.Limits`.

    `limiter` is the actor. A simulated model is the worker's own, so its load is, too.
    """

    limiter: Any
    worker: str
    own: RunLimits

    def load(self, endpoint: Endpoint, model: str = "") -> Load:
        """Return the load of an endpoint."""
        own = self.own.load(endpoint, model)
        return own if endpoint.simulated else RemoteLoad(self.limiter, self.worker, (model, endpoint.place), own)

    @asynccontextmanager
    async def place(self, name: str, most: int) -> AsyncIterator[None]:
        """Wait for a place and hold it."""
        taken = self.limiter.take.remote(self.worker, name, most)
        await _answer(taken, lambda _: self.limiter.give.remote(self.worker, name, most))
        try:
            yield
        finally:
            self.limiter.give.remote(self.worker, name, most)


@attrs.frozen(eq=False)
class RemoteLoad:
    """The load of an endpoint, asked of the limiter; see `keval.seams.distribution.Load`. `own` says what counts."""

    limiter: Any
    worker: str
    endpoint: Where
    own: Load

    @property
    def counts_tokens(self) -> bool:
        """Whether the tokens of replies count."""
        return self.own.counts_tokens

    def spent(self, tokens: int) -> None:
        """Note the tokens of a reply."""
        self.limiter.spent.remote(self.endpoint, tokens)

    def admit_now(self) -> bool:
        """Return false: the limiter has to be asked."""
        return False

    async def admit(self) -> bool:
        """Admit a request once it may be sent."""
        told: bool | str = await _answer(self.limiter.admit.remote(self.worker, self.endpoint), self._give_back)
        if isinstance(told, str):
            raise OutageError(told)
        return told

    async def leave(self, ending: Ending, asker: str, message: str = "", *, probe: bool = False) -> Standing:
        """Note how a request ended; what follows from that is waited for only where it may be sent again."""
        told = self.limiter.leave.remote(self.worker, self.endpoint, ending, asker, message, probe=probe)
        if ending in ("answered", "unusable", "untold"):
            return Standing()
        standing: Standing = await told
        return standing

    async def deny(self, message: str) -> str:
        """Give the endpoint up for all workers, and return why."""
        why: str = await self.limiter.deny.remote(self.endpoint, message)
        return why

    def reopen(self) -> None:
        """Let requests through again, if the endpoint was given up."""
        self.limiter.reopen.remote(self.endpoint)

    def _give_back(self, asked: asyncio.Future[Any]) -> None:
        if not asked.cancelled() and asked.exception() is None and isinstance(probe := asked.result(), bool):
            self.limiter.leave.remote(self.worker, self.endpoint, "untold", probe=probe)


async def _answer(reference: Awaitable[Any], give_back: Callable[[asyncio.Future[Any]], object]) -> Any:
    """Return what the limiter answered; if this is cancelled, what it gives is given back when the answer comes."""

    async def answered() -> Any:
        return await reference

    asked = asyncio.ensure_future(answered())
    try:
        # Ray cannot take a call back: the limiter would admit a request that nobody sends.
        return await asyncio.shield(asked)
    except asyncio.CancelledError:
        asked.add_done_callback(give_back)
        raise
