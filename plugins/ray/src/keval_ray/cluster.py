"""The connection to Ray: started or reached, its nodes compared with this machine, and left again."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import attrs

from keval import Manifest
from keval.errors import PreflightError
from keval.execute.shielding import in_thread

# Before Ray is imported: it reports nothing of its use, takes no virtual environment from `uv run`, gives workers of a
# local Ray the priority of keval, and prints nothing of its own on stdout, as the crew tells of lost workers.
os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_worker_niceness", "0")
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from keval_ray import installed

_ray: Any = ray  # much of it is not typed
_STORE_BYTES = 256 << 20
"""The object store of a local Ray: trials are in it only while they are handed over."""
_SHORT = "/tmp" if os.path.isdir("/tmp") else None  # noqa: S108 - for mkdtemp, which makes a new folder
"""Where the folder of a local Ray is: sockets are in it, whose paths must be short."""
_REACHING = 10.0
"""Seconds for the address of a cluster to answer."""
_PROBING = 60.0
"""Seconds for a node to say what is installed there."""


@attrs.frozen
class Demand:
    """What a run wants of a cluster: how many workers, if it says so, and what each of them reserves."""

    workers: int | None
    cpus: float
    resources: Mapping[str, float]

    def places(self) -> int:
        """Return how many workers are to be up: as many as are wanted, or as all nodes have place for, used or not."""
        if self.workers is not None:
            return self.workers
        nodes = [node["Resources"] for node in _ray.nodes() if node["Alive"]]
        each = {"CPU": self.cpus, **self.resources}
        return sum(min(math.floor(node.get(name, 0.0) / most) for name, most in each.items()) for node in nodes)

    @property
    def actor_options(self) -> dict[str, Any]:
        """What the actor of a worker reserves."""
        return {"num_cpus": self.cpus, "resources": dict(self.resources) or None}

    def __str__(self) -> str:
        return ", ".join((f"{self.cpus:g} CPUs", *(f"{most:g} {name}" for name, most in self.resources.items())))


def actor(cls: type, **options: Any) -> Any:
    """Return a new actor of a class, which is not started again when it ends, nor called again."""
    return _ray.remote(max_restarts=0, max_task_retries=0, **options)(cls)


def here() -> NodeAffinitySchedulingStrategy:
    """Where the driver is: an actor there is lost with it, and with no other node."""
    return NodeAffinitySchedulingStrategy(_ray.get_runtime_context().get_node_id(), soft=False)


@asynccontextmanager
async def connected(address: str | None, demand: Demand, manifest: Manifest) -> AsyncIterator[None]:
    """Reach or start Ray for the block, and check that its nodes have what this machine has.

    Raises PreflightError: it cannot be reached or started, or something differs; with every difference.
    """
    logging.getLogger("ray").setLevel(logging.ERROR)
    folder = tempfile.mkdtemp(prefix="keval-ray-", dir=_SHORT) if address is None else None
    try:
        try:
            # In a thread, as it blocks, and as it would handle SIGTERM in place of keval in the main one.
            await in_thread(_init, address, demand, folder)
            await _check_nodes(manifest)
            yield
        finally:
            await in_thread(ray.shutdown)  # also if this was cancelled while Ray started
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _init(address: str | None, demand: Demand, folder: str | None) -> None:
    started: dict[str, Any] = {}
    if folder is not None:
        # Ray listens on all interfaces. It admits who has the token, for which it would make a file in the user's home.
        # It reads the token once, so a second run in this process has the same.
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        count = demand.workers or max(1, math.floor((os.cpu_count() or 1) / demand.cpus))
        started = {
            # Ray only counts CPUs, so that there may be more `workers` than cores.
            "num_cpus": max(os.cpu_count() or 1, math.ceil(count * demand.cpus)),
            "resources": {name: most * count for name, most in demand.resources.items()} or None,
            "object_store_memory": _STORE_BYTES,
            "include_dashboard": False,
            "_temp_dir": folder,
        }
    try:
        _check_address(address)
        ray.init(
            address="local" if folder is not None else address,
            log_to_driver=False,
            logging_level=logging.ERROR,
            configure_logging=False,
            namespace="keval",
            **started,
        )
    except (RayError, OSError, RuntimeError, ValueError) as error:
        where = "a local Ray does not start" if folder is not None else f"the Ray at {address} is not reached"
        remedy = "" if folder is not None else "; start it, correct `address`, or leave it out for a local one"
        raise PreflightError([f"{where}: {error}{remedy}"]) from error


def _check_address(address: str | None) -> None:
    """Raise OSError where nothing listens, which Ray would find out in minutes; ValueError for a client's address."""
    if address is None or address == "auto":
        return
    if "://" in address:
        raise ValueError("keval is a driver on a node of the cluster, and no client; submit it as a job, with `auto`")
    host, _, port = address.rpartition(":")
    socket.create_connection((host, int(port)), _REACHING).close()


async def _check_nodes(manifest: Manifest) -> None:
    """Compare Python, keval, the plugins of the run and what these require, on every node."""
    wanted = installed.installed(manifest.versions)
    # By value, as a node on which keval is missing could not import the function.
    _ray.cloudpickle.register_pickle_by_value(installed)
    # Without a CPU, so that a node that is fully reserved answers, too.
    probe = _ray.remote(num_cpus=0, max_retries=0)(installed.installed)
    nodes = {node["NodeID"]: node["NodeManagerAddress"] for node in _ray.nodes() if node["Alive"]}
    asked = [_asked(probe, node, list(wanted)) for node in nodes]
    problems: dict[str, None] = {}  # several nodes may have one address
    for address, found in zip(nodes.values(), await asyncio.gather(*asked), strict=True):
        differing = [found] if isinstance(found, str) else installed.differences(wanted, found)
        problems.update(dict.fromkeys(f"the node {address}: {each}" for each in differing))
    if problems:
        *others, last = problems
        remedy = "install the same versions everywhere, as one image for all nodes does"
        raise PreflightError([*others, f"{last}; {remedy}"])


async def _asked(probe: Any, node: str, names: list[str]) -> Mapping[str, str | None] | str:
    """Return what is installed on a node, or why that is unknown."""
    strategy = NodeAffinitySchedulingStrategy(node, soft=False)
    try:
        async with asyncio.timeout(_PROBING):
            found: dict[str, str | None] = await probe.options(scheduling_strategy=strategy).remote(names)
            return found
    except (RayError, TimeoutError) as error:
        return f"it does not say what is installed there: {type(error).__name__}"
