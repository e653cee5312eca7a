"""The options of the executor `ray`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import attrs
from attrs.validators import ge, gt, optional

from keval.seams.distribution import Crew, CrewOrder, CrewWatcher


@attrs.frozen
class Ray:
    """Runs and scores trials on the workers of a Ray cluster.

    `address` is that of a cluster, such as `auto` or `ray-head:6379`; without one, a local Ray is started, which uses
    the cores of this machine, and ended with the run. `workers` is how many there are; by default as many as the
    cluster has place for, also on nodes that join later. Each reserves `cpus_per_worker` and `resources`, which name
    how much of what it needs, such as `{accelerator: 1}`.
    """

    address: str | None = None
    workers: int | None = attrs.field(default=None, validator=optional(ge(1)))
    cpus_per_worker: float = attrs.field(default=1.0, validator=gt(0))
    resources: Mapping[str, float] = attrs.field(factory=dict)

    @asynccontextmanager
    async def open(self, order: CrewOrder, watcher: CrewWatcher) -> AsyncIterator[Crew]:
        """Bring workers up; see `keval.plugin.CrewExecutor`."""
        from keval_ray.cluster import Demand, connected  # with Ray, which takes more than a second to import
        from keval_ray.crew import RayCrew

        demand = Demand(self.workers, self.cpus_per_worker, self.resources)
        async with connected(self.address, demand, order.manifest), RayCrew.open(demand, order, watcher) as crew:
            yield crew
