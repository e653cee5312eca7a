"""The limits of a run, held in this process for all its workers."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import attrs

from keval.config.evaluation import Rate, Retry
from keval.execute.models.load import EndpointLoad
from keval.records.manifest import Manifest
from keval.records.models import Endpoint

if TYPE_CHECKING:  # few runs have rates
    from keval.execute.models.rate import RateLimit

_log = logging.getLogger("keval")
# a password before the host, and a query, which may hold a key: addresses are shown
_SECRET_PARTS = re.compile(r"(?<=//)[^/@]*@|\?.*")


@attrs.frozen
class RunLimits:
    """See `keval.seams.distribution.Limits`. `watchers` are told of endpoints as those of EndpointLoad are."""

    retry: Retry = attrs.field(factory=Retry)
    rates: Mapping[str, Rate] = attrs.field(factory=dict)
    watchers: list[Callable[[str, int | None, bool, str | None], object]] = attrs.field(factory=list, init=False)
    _loads: dict[tuple[str, ...], EndpointLoad] = attrs.field(factory=dict, init=False)
    _rates: dict[str, RateLimit] = attrs.field(factory=dict, init=False)
    _places: dict[str, asyncio.Semaphore] = attrs.field(factory=dict, init=False)

    @classmethod
    def of(cls, manifest: Manifest) -> RunLimits:
        """Return the limits of the run of a manifest."""
        execution = manifest.config["execution"]
        rates = {name: Rate(**rate) for name, rate in execution.get("rates", {}).items()}
        return cls(Retry(**execution["retry"]), rates)

    def load(self, endpoint: Endpoint, model: str = "") -> EndpointLoad:
        """Return the load of an endpoint; `model` is `provider/name`, by which it may have a rate."""
        return self.load_at(endpoint.place, model)

    def load_at(self, place: tuple[str, ...], model: str = "") -> EndpointLoad:
        """Return the load of an endpoint by its `place`."""
        if place not in self._loads:
            name, *urls = place
            address = ", ".join(dict.fromkeys(_SECRET_PARTS.sub("", url) for url in urls))
            self._loads[place] = EndpointLoad(name, self.retry, self._changed, address, rate=self._rate(model))
        return self._loads[place]

    def _rate(self, model: str) -> RateLimit | None:
        """Return the rate of a model, or the one that all models of its provider share."""
        name = next((each for each in (model, model.partition("/")[0]) if each in self.rates), None)
        if name is None:
            return None
        from keval.execute.models.rate import RateLimit  # few runs have rates

        return self._rates.setdefault(name, RateLimit(self.rates[name]))

    def place(self, name: str, most: int) -> AbstractAsyncContextManager[object]:
        """Wait for a place and hold it."""
        if name not in self._places:
            self._places[name] = asyncio.Semaphore(most)
        return self._places[name]

    def _changed(self, model: str, at_once: int | None, down: bool, trouble: str | None) -> None:
        for watcher in self.watchers:
            watcher(model, at_once, down, trouble)
        if trouble is not None and not self.watchers:  # no run: questions are generated, or asked one by one
            _log.warning("%s", trouble)
