"""The connection to Ray: started or reached, its nodes compared with this machine, and left again."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import attrs

from keval import Manifest
from keval.plugin import PreflightError

# Before Ray is imported: it reports nothing of its use, takes no virtual environment from `uv run`, and prints nothing
# of its own on stdout, as the crew tells of lost workers.
os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from keval_ray import installed

if TYPE_CHECKING:
    from keval_ray.executor import Ray

_ray: Any = ray  # much of it is not typed
_STORE_BYTES = 256 << 20
"""The object store of a local Ray: trials are in it only while they are handed over."""
_SHORT = "/tmp" if os.path.isdir("/tmp") else None  # noqa: S108 - for mkdtemp, which makes a new folder
"""Where the folder of a local Ray is: sockets are in it, whose paths must be short."""
_PROBING = 60.0
"""Seconds for a node to say what is installed there."""


@attrs.frozen
class Cluster:
    """Ray, as far as it is reached. `is_local` says that it was started for this run, on this machine alone."""

    is_local: bool

    def places(self, options: Ray) -> int:
        """Return for how many workers there is place on all nodes together, used or not."""
        nodes = [node["Resources"] for node in _ray.nodes() if node["Alive"]]
        wanted = {"CPU": options.cpus_per_worker, **options.resources}
        return sum(min(math.floor(node.get(name, 0.0) / most) for name, most in wanted.items()) for node in nodes)


def actor(cls: type, **options: Any) -> Any:
    """Return a new actor of a class, which is not started again when it ends, nor called again."""
    return _ray.remote(max_restarts=0, max_task_retries=0, **options)(cls)


def here() -> NodeAffinitySchedulingStrategy:
    """Where the driver is: an actor there is lost with it, and with no other node."""
    return NodeAffinitySchedulingStrategy(_ray.get_runtime_context().get_node_id(), soft=False)


@asynccontextmanager
async def connected(options: Ray, manifest: Manifest) -> AsyncIterator[Cluster]:
    """Reach or start Ray for the block, and check that its nodes have what this machine has.

    Raises PreflightError: it cannot be reached or started, or something differs; with every difference.
    """
    logging.getLogger("ray").setLevel(logging.ERROR)
    folder = tempfile.mkdtemp(prefix="keval-ray-", dir=_SHORT) if options.address is None else None
    try:
        # In a thread, as it blocks, and as it would handle SIGTERM in place of keval in the main one.
        await _in_thread(_init, options, folder)
        try:
            await _check_nodes(manifest)
            yield Cluster(is_local=folder is not None)
        finally:
            await _in_thread(ray.shutdown)
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


async def _in_thread(work: Any, *arguments: Any) -> None:
    """Run something in a thread to its end, also if this is cancelled: half of a start cannot be undone."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _init(options: Ray, folder: str | None) -> None:
    started: dict[str, Any] = {}
    if folder is not None:
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)  # Ray would make one in the user's home
        count = options.workers or max(1, math.floor((os.cpu_count() or 1) / options.cpus_per_worker))
        started = {
            "num_cpus": max(os.cpu_count() or 1, math.ceil(count * options.cpus_per_worker)),
            "resources": {name: most * count for name, most in options.resources.items()} or None,
            "object_store_memory": _STORE_BYTES,
            "include_dashboard": False,
            "_temp_dir": folder,
            "_node_ip_address": "127.0.0.1",
        }
    try:
        ray.init(
            address="local" if folder is not None else options.address,
            log_to_driver=False,
            logging_level=logging.ERROR,
            configure_logging=False,
            namespace="keval",
            **started,
        )
    except (RayError, OSError, RuntimeError, ValueError) as error:
        where = "a local Ray does not start" if folder is not None else f"the Ray at {options.address} is not reached"
        remedy = "" if folder is not None else "; start it, correct `address`, or leave it out for a local one"
        raise PreflightError([f"{where}: {error}{remedy}"]) from error


async def _check_nodes(manifest: Manifest) -> None:
    """Compare Python, keval, the plugins of the run and what these require, on every node."""
    here = installed.installed(manifest.versions)
    _ray.cloudpickle.register_pickle_by_value(installed)
    probe = _ray.remote(num_cpus=0, max_retries=0)(installed.installed)
    nodes = {node["NodeID"]: node["NodeManagerAddress"] for node in _ray.nodes() if node["Alive"]}
    asked = [_asked(probe, node, list(here)) for node in nodes]
    problems: list[str] = []
    for address, found in zip(nodes.values(), await asyncio.gather(*asked), strict=True):
        differing = [found] if isinstance(found, str) else installed.differences(here, found)
        problems += [f"the node {address}: {each}" for each in differing]
    if problems:
        remedy = "install the same versions everywhere, as one image for all nodes does"
        raise PreflightError([*problems[:-1], f"{problems[-1]}; {remedy}"])


async def _asked(probe: Any, node: str, names: list[str]) -> Mapping[str, str | None] | str:
    """Return what is installed on a node, or why that is unknown."""
    strategy = NodeAffinitySchedulingStrategy(node, soft=False)
    try:
        async with asyncio.timeout(_PROBING):
            found: dict[str, str | None] = await probe.options(scheduling_strategy=strategy).remote(names)
            return found
    except (RayError, TimeoutError) as error:
        return f"it does not say what is installed there: {type(error).__name__}"
