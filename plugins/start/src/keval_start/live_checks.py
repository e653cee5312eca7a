"""`keval validate --live`: whether what a run needs is there, a finding for each, with the remedy where it is not."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from keval.errors import PluginError, PreflightError, RunError
from keval.execute.bringup.preflight import preflight
from keval.execute.bringup.resources import ResourceScope
from keval.plan.plan import Plan
from keval.records.formats import counted, number
from keval.redaction import Redactor
from keval.seams import registry
from keval.seams.results import mirror_of
from keval_start.models_command import Finding, listed_providers

_LITTLE_SPACE = 1_000_000_000


async def examine(results: Path, plan: Plan | None, redactor: Redactor) -> AsyncIterator[Finding]:
    """Look at everything, and with a plan also bring up what it needs, without asking a model."""
    for finding in (*_plugins(), *_keys(), _disk(results), *_mirrored(results)):
        yield finding
    async for finding in _sandboxes():
        yield finding
    if plan is not None:
        async for finding in _brought_up(plan, redactor):
            yield finding


def _plugins() -> Iterator[Finding]:
    components = [component for group in registry.groups() for component in registry.offered(group)]
    broken = 0
    for component in components:
        try:
            registry.load(component)
        except PluginError as error:
            broken += 1
            yield Finding("plugins", False, str(error), f"install {component.distribution} again, or remove it")
    if not broken:
        yield Finding("plugins", True, f"all {len(components)} can be imported")


def _keys() -> Iterator[Finding]:
    """Say of which providers of models a key is set, and name the others. Keys themselves are never shown."""
    without = []
    for provider in listed_providers():
        if provider.key_set is not None:
            yield Finding("keys", True, f"{provider.name}: {provider.key_set} is set")
        elif provider.key_variables and not provider.key_optional:
            without.append(provider.name)
    if without:
        yield Finding("keys", None, f"none for {', '.join(without)}", "`keval models` names the variable of each")


def _disk(results: Path) -> Finding:
    folder = _nearest(results)
    try:
        # By a file, as permissions do not tell of a disk that is mounted read-only.
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except OSError as error:
        return Finding("disk", False, f"{folder} cannot be written: {error.strerror}", "choose another with -o")
    found = f"{folder} can be written, {number(free / 1e9, 1)} GB are free"
    return Finding("disk", free >= _LITTLE_SPACE, found, "make room, or choose another disk with -o")


def _mirrored(results: Path) -> Iterator[Finding]:
    """Write something where the results are mirrored, if they are."""
    try:
        if mirror := mirror_of(results):
            yield Finding("results", True, f"{mirror.url(results)} {mirror.check(results)}")
    except (PluginError, RunError) as error:
        yield Finding("results", False, str(error), "choose another URL with -o")


def _nearest(path: Path) -> Path:
    """Return the folder, or the first above it that exists."""
    return next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())


async def _sandboxes() -> AsyncIterator[Finding]:
    for component in registry.offered("keval.workspaces"):
        try:
            tried = getattr(registry.load(component), "sandboxes", None)
        except PluginError:  # `_plugins` tells of it
            continue
        for name, problem in (await tried()).items() if tried is not None else ():
            yield Finding("sandbox", None if problem else True, problem or f"{name}: works")


async def _brought_up(plan: Plan, redactor: Redactor) -> AsyncIterator[Finding]:
    """Bring up what a plan needs: models are resolved, servers started and their tools listed."""
    scope = ResourceScope()
    try:
        ready = await preflight(plan, scope, redactor)
    except PreflightError as error:
        for problem in error.problems:
            yield Finding("config", False, problem)
    else:
        for arm in plan.arms:
            for tool_listing in ready.tool_listings(arm.label):
                offered = counted(len(tool_listing.tools), "tool")
                yield Finding("servers", True, f"{arm.label}: {tool_listing.server} offers {offered}")
        yield Finding("config", True, f"{counted(plan.trial_count, 'trial')} can begin")
    finally:
        await scope.close()
