"""The limits of a run, held in this process for all its workers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import attrs

from keval.config.evaluation import Retry
from keval.execute.models.load import EndpointLoad
from keval.records.manifest import Manifest
from keval.records.models import Endpoint


@attrs.frozen
class RunLimits:
    """See `keval.seams.distribution.Limits`. `watchers` are told of endpoints as those of EndpointLoad are."""

    retry: Retry = attrs.field(factory=Retry)
    watchers: list[Callable[[str, int | None, bool], object]] = attrs.field(factory=list, init=False)
    _loads: dict[tuple[str, ...], EndpointLoad] = attrs.field(factory=dict, init=False)
    _places: dict[str, asyncio.Semaphore] = attrs.field(factory=dict, init=False)

    @classmethod
    def of(cls, manifest: Manifest) -> RunLimits:
        """Return the limits of the run of a manifest."""
        return cls(Retry(**manifest.config["execution"]["retry"]))

    def load(self, endpoint: Endpoint) -> EndpointLoad:
        """Return the load of an endpoint."""
        return self.load_at(endpoint.place)

    def load_at(self, place: tuple[str, ...]) -> EndpointLoad:
        """Return the load of an endpoint by its `place`."""
        if place not in self._loads:
            self._loads[place] = EndpointLoad(place[0], self.retry, self._changed)
        return self._loads[place]

    def place(self, name: str, most: int) -> AbstractAsyncContextManager[object]:
        """Wait for a place and hold it."""
        if name not in self._places:
            self._places[name] = asyncio.Semaphore(most)
        return self._places[name]

    def _changed(self, model: str, at_once: int | None, down: bool) -> None:
        for watcher in self.watchers:
            watcher(model, at_once, down)
