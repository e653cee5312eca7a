"""The limits of a run, held in this process for all its workers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import attrs

from keval.config.evaluation import Retry
from keval.execute.models.load import EndpointLoad
from keval.records.models import Endpoint


@attrs.frozen
class RunLimits:
    """See `keval.seams.distribution.Limits`. `watchers` are told of endpoints as those of EndpointLoad are."""

    retry: Retry = attrs.field(factory=Retry)
    watchers: list[Callable[[str, int | None, bool], object]] = attrs.field(factory=list, init=False)
    _loads: dict[tuple[str, ...], EndpointLoad] = attrs.field(factory=dict, init=False)
    _places: dict[str, asyncio.Semaphore] = attrs.field(factory=dict, init=False)

    def load(self, endpoint: Endpoint) -> EndpointLoad:
        """Return the load of an endpoint."""
        there = (endpoint.model, *sorted(endpoint.urls.values()))
        if there not in self._loads:
            self._loads[there] = EndpointLoad(endpoint.model, self.retry, self._changed)
        return self._loads[there]

    def place(self, name: str, most: int) -> AbstractAsyncContextManager[object]:
        """Wait for a place and hold it."""
        if name not in self._places:
            self._places[name] = asyncio.Semaphore(most)
        return self._places[name]

    def _changed(self, model: str, at_once: int | None, down: bool) -> None:
        for watcher in self.watchers:
            watcher(model, at_once, down)
