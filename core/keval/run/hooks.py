"""The hooks of a run: the plugins that take part, and the facts they give to samples."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs
import pluggy

from keval import hookspecs
from keval.errors import KevalError, PluginError, PreflightError
from keval.records import Sample

__all__ = ["announce", "hook_manager", "with_facts"]

_AT_ONCE = 1_000
"""How many samples are in memory while their facts are looked up."""


def hook_manager(plugins: Iterable[tuple[str, object]]) -> pluggy.PluginManager:
    """Register plugins by name. Raises PluginError when one implements a hook that is none, or takes what it lacks."""
    manager = pluggy.PluginManager("keval")
    manager.add_hookspecs(hookspecs)
    try:
        # pluggy calls the one that was registered last first; a config's first plugin is to come first.
        for name, plugin in reversed(list(plugins)):
            manager.register(plugin, name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise PluginError(f"a hook plugin does not fit this version of keval: {error}; see docs/plugins.md") from error
    for hook in (hook for name, hook in vars(manager.hook).items() if name.startswith("keval_")):
        for implementation in hook.get_hookimpls():
            if hook.name != "keval_sample_facts" and inspect.iscoroutinefunction(implementation.function):
                raise PluginError(
                    f"{implementation.plugin_name}: {hook.name} is not awaited; write it as a plain function"
                )
    return manager


def announce(hook: Callable[..., Any], **news: Any) -> None:
    """Tell every plugin; one that fails is warned of and costs the run nothing."""
    try:
        hook(**news)
    except Exception as error:  # noqa: BLE001 - a seam: what watches a run must not end it
        warnings.warn(f"a hook plugin failed: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=2)


async def with_facts(
    manager: pluggy.PluginManager, samples: Sequence[Sample], max_concurrent: int
) -> AsyncIterator[Sample]:
    """Ask every plugin for facts about every sample and yield them merged in. Raises PreflightError when one fails.

    A sample's own facts win over those of plugins; earlier plugins win over later ones.
    """
    if not manager.hook.keval_sample_facts.get_hookimpls():
        for sample in samples:
            yield sample
        return
    limit = asyncio.Semaphore(max_concurrent)

    async def prepared(sample: Sample) -> Sample:
        async with limit:
            facts: dict[str, Any] = dict(sample.facts)
            for found in manager.hook.keval_sample_facts(sample=sample):
                given: Mapping[str, Any] | None = await found if inspect.isawaitable(found) else found
                facts = {**(given or {}), **facts}
            added = tuple(name for name in facts if name not in sample.facts)
            return attrs.evolve(sample, facts=facts, withheld=added) if added else sample

    for start in range(0, len(samples), _AT_ONCE):
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(prepared(sample)) for sample in samples[start : start + _AT_ONCE]]
        except ExceptionGroup as error:
            first = error.exceptions[0]
            if isinstance(first, KevalError):
                raise first from None
            problem = f"the facts about the samples cannot be had: {type(first).__name__}: {first}"
            raise PreflightError(problem) from first
        for task in tasks:
            yield task.result()
