"""Hooks, in the order they are called. A plugin implements any of them with `@keval.plugin.hookimpl`.

Hook plugins are found in the entry-point group `keval` and loaded only when `plugins:` or `-p NAME` selects them.
`Hooks` calls them one by one; one that fails stops no other.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import attrs
import pluggy
from pluggy import HookImpl

from keval.errors import KevalError, PluginError, PluginWarning, PreflightError, TrialError
from keval.records.manifest import Manifest, WorkerEntry
from keval.records.scores import ScoreLine
from keval.records.trial import Failure, Sample, Trial, TrialKey
from keval.redaction import Redactor
from keval.seams.contexts import TrialInfo
from keval.seams.live_events import LiveEvent

hookspec = pluggy.HookspecMarker("keval")
hookimpl = pluggy.HookimplMarker("keval")


@hookspec
def keval_check_plan(check: Any) -> None:
    """Called once per plan, when its plugins are constructed; `check` is a `keval.plugin.PlanCheck`.

    What is wrong is told to `check.problem`, and what a user should know to `check.notice`. What is raised ends the
    command, as in all hooks that are handed a `run`: a `keval.plugin.ActiveRun`, whose manifest they may replace.
    """


@hookspec
def keval_run_described(run: Any) -> None:
    """Called once per run, when its manifest is made and not yet written."""


@hookspec
def keval_run_begins(run: Any) -> None:
    """Called once per start or resumption, when trials are about to be run."""


@hookspec
def keval_scoring_began(run: Any, late: Collection[str]) -> Awaitable[None] | None:
    """Called once per start or resumption, before the first trial; the judges `late` grade after the last one.

    It is awaited, and may be a coroutine.
    """


@hookspec
def keval_trials_done(run: Any, missing: bool) -> Awaitable[None] | None:
    """Called once per pass, when all trials are scored; with `missing`, only scores that were lacking are made.

    It is awaited, and may be a coroutine.
    """


@hookspec
def keval_run_ending(run: Any) -> str | None:
    """Called once per pass, before the manifest is written for the last time; returns why it ended early, if so."""


@hookspec
def keval_run_summarised(run: Any) -> Mapping[str, Any] | None:
    """Called once per pass, when a run is summarised; returns parts of the summary, by name, as plain data.

    A part of a report is shown by what the group `keval.report_parts` has of its name.
    """


@hookspec
def keval_run_started(directory: Path, manifest: Manifest) -> None:
    """Called once per run, after preflight and before the first trial; `manifest` is the content of manifest.json."""


@hookspec
def keval_sample_facts(sample: Sample) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]] | None:
    """Called once per sample, before the first trial, all samples of a run at once up to `max_concurrent`.

    The mapping that is returned is added to `sample.facts` and kept in the run, so that every arm is scored against the
    same facts. A fact that the sample already has is not replaced. `None` adds nothing.
    """


@hookspec
def keval_trial_started(trial: TrialInfo) -> Awaitable[None] | None:
    """Called once per attempt at a trial, before its contexts are opened; it is awaited, and may be a coroutine.

    What it raises fails the attempt with kind `hook_failed`. While a plugin implements this, no server is started ahead
    of its trial.
    """


@hookspec
def keval_trial_ended(trial: TrialInfo, failure: Failure | None) -> Awaitable[None] | None:
    """Called once per attempt whose `keval_trial_started` was called, when its contexts are closed; it is awaited.

    It is called however the attempt ends. `failure` says why it failed.
    """


@hookspec
def keval_live_event(event: LiveEvent) -> None:
    """Called once per event while trials run and are scored; events are only made while somebody listens."""


@hookspec
def keval_endpoint_changed(model: str, at_once: int | None, down: bool, trouble: str | None) -> None:
    """Called once per change of a model's endpoint: it gets more or fewer requests at once, goes down, or comes back.

    `at_once` is how many it is given; `None` if nothing but the run bounds them. `trouble` says with status, address
    and text why it answers no requests at present; it is told of the first failure of a kind, and if it lasts.
    """


@hookspec
def keval_worker_changed(worker: WorkerEntry) -> None:
    """Called once per change of a worker of a crew: it came up, ran or scored trials, was lost, or ended."""


@hookspec
def keval_trial_finished(trial: Trial) -> None:
    """Called once per trial, when it is on disk."""


@hookspec
def keval_trial_scored(trial: Trial, scores: Sequence[ScoreLine], late: bool) -> None:
    """Called once per trial and scoring pass, when its scores are written, which may be while other trials run.

    `scores` is empty for a trial that failed, or that already had all its scores. Where judges grade only after the
    last trial, this is called a second time with their scores, which are `late`.
    """


@hookspec
def keval_run_finished(directory: Path, summary: Any) -> None:
    """Called once per run, when its summary is written."""


_BATCH = 1_000
"""How many samples are in memory while their facts are looked up."""
_FACTS = "keval_sample_facts"
_TRIAL_STARTED, _TRIAL_ENDED = "keval_trial_started", "keval_trial_ended"
_LIVE_EVENT = "keval_live_event"
_AWAITED = (_FACTS, _TRIAL_STARTED, _TRIAL_ENDED, "keval_scoring_began", "keval_trials_done")


class HookPlugin(NamedTuple):
    """A hook plugin: its name in the config, the object, and the distribution and version that it comes from."""

    name: str
    plugin: object
    origin: str = "keval"


class _Manager(pluggy.PluginManager):
    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        # Most names of an object are Python's own, and pluggy takes its time for each.
        return None if name.startswith("__") else super().parse_hookimpl_opts(plugin, name)


@attrs.frozen
class Hooks:
    """The hook plugins of a run, in the order of the config.

    `listeners` hear live events beside those plugins that implement `keval_live_event`. They come and go while the run
    goes on, and hear events as they are made: with their secrets.
    """

    _calls: Mapping[str, Sequence[HookImpl]]
    _origins: Mapping[str, str]
    listeners: list[Callable[[LiveEvent], object]] = attrs.field(factory=list, init=False)

    @classmethod
    def of(cls, plugins: Sequence[HookPlugin]) -> Hooks:
        """Register plugins. Raises PluginError if one implements an unknown hook, or a hook with other parameters."""
        manager = _Manager("keval")
        manager.add_hookspecs(sys.modules[__name__])
        try:
            # pluggy calls the plugin that was registered last first, and the config's first plugin comes first.
            for name, plugin, _ in reversed(plugins):
                manager.register(plugin, name)
            manager.check_pending()
        except pluggy.PluginValidationError as error:
            told = f"a hook plugin does not fit this version of keval: {' '.join(str(error).split())}"
            raise PluginError(f"{told}; see docs/plugins.md") from error
        calls = {
            name: tuple(reversed(getattr(manager.hook, name).get_hookimpls()))
            for name in [*globals()]
            if name.startswith("keval_")
        }
        for name, implementations in calls.items():
            for call in implementations:
                # keval calls implementations itself, one by one, and only pluggy knows how to call a wrapper.
                if call.hookwrapper or call.wrapper:
                    raise PluginError(f"{call.plugin_name}: {name} is a wrapper; write it as a plain function")
                if name not in _AWAITED and inspect.iscoroutinefunction(call.function):
                    raise PluginError(f"{call.plugin_name}: {name} is not awaited; write it as a plain function")
        return cls(calls, {plugin.name: plugin.origin for plugin in plugins})

    def implemented(self, hook: str) -> bool:
        """Return whether any plugin implements a hook."""
        return bool(self._calls[hook])

    @property
    def wants_events(self) -> bool:
        """Whether anybody listens to live events just now; nobody makes any otherwise."""
        return bool(self.listeners or self._calls[_LIVE_EVENT])  # it is asked for each event that may be made

    @property
    def prepare_trials(self) -> bool:
        """Whether any plugin prepares trials, or cleans up after them."""
        return self.implemented(_TRIAL_STARTED) or self.implemented(_TRIAL_ENDED)

    async def trial_started(self, trial: TrialInfo) -> None:
        """Let every plugin prepare an attempt at a trial, one after the other.

        Raises:
            TrialError: of kind `hook_failed`; a plugin fails. It is retryable if the plugin says that its error is.
        """
        for call in self._calls[_TRIAL_STARTED]:
            try:
                await _awaited(call, trial=trial)
            except Exception as error:
                again = isinstance(error, TrialError) and error.retryable
                told = self._problem(call, f"failed in {_TRIAL_STARTED}", error)
                raise TrialError(told, stage="context", kind="hook_failed", retryable=again) from error

    async def trial_ended(self, trial: TrialInfo, failure: Failure | None) -> None:
        """Let every plugin clean up after an attempt; one that raises is named in a warning."""
        for call in self._calls[_TRIAL_ENDED]:
            try:
                await _awaited(call, trial=trial, failure=failure)
            except Exception as error:  # noqa: BLE001 - a seam: the attempt is over, and other plugins clean up, too
                told = self._problem(call, f"failed in {_TRIAL_ENDED} of {trial.id}", error)
                warnings.warn(told, PluginWarning, stacklevel=2)

    def step(self, hook: str, **news: Any) -> list[Any]:
        """Let every plugin take part in a step of a run; returns what they return. What one raises is raised."""
        return [call.function(*(news[name] for name in call.argnames)) for call in self._calls[hook]]

    async def awaited_step(self, hook: str, **news: Any) -> None:
        """Let every plugin take part in a step that is awaited, one after the other. What one raises is raised."""
        for call in self._calls[hook]:
            await _awaited(call, **news)

    def announce(self, hook: str, **news: Any) -> None:
        """Tell every plugin. One that raises is named in a warning, and the others are told all the same."""
        for call in self._calls[hook]:
            try:
                call.function(*(news[name] for name in call.argnames))
            except Exception as error:  # noqa: BLE001 - a seam: a plugin that watches a run must not end it
                warnings.warn(self._problem(call, f"failed in {hook}", error), PluginWarning, stacklevel=2)

    def tell(self, event: LiveEvent, redact: Redactor) -> None:
        """Tell everybody who listens of a live event; plugins get it without secrets."""
        for listener in self.listeners:
            listener(event)
        if self._calls[_LIVE_EVENT]:
            self.announce(_LIVE_EVENT, event=attrs.evolve(event, data=redact.data(dict(event.data))))

    async def with_facts(self, samples: Sequence[Sample], max_concurrent: int) -> AsyncIterator[Sample]:
        """Ask every plugin for facts about every sample and yield the samples with them.

        A sample's own facts win over those of plugins; earlier plugins win over later ones.

        Raises:
            PreflightError: a plugin fails, or returns something other than a mapping.
        """
        if not self.implemented(_FACTS):
            for sample in samples:
                yield sample
            return
        limit = asyncio.Semaphore(max_concurrent)

        async def prepared(sample: Sample) -> Sample:
            async with limit:
                facts: dict[str, Any] = dict(sample.facts)
                for call in self._calls[_FACTS]:
                    facts = {**await self._facts(call, sample), **facts}
                added = tuple(name for name in facts if name not in sample.facts)
                return attrs.evolve(sample, facts=facts, withheld=added) if added else sample

        for start in range(0, len(samples), _BATCH):
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(prepared(sample)) for sample in samples[start : start + _BATCH]]
            except ExceptionGroup as error:
                # A task group wraps what is raised, and callers expect PreflightError itself.
                raise error.exceptions[0] from None
            for task in tasks:
                yield task.result()

    async def _facts(self, call: HookImpl, sample: Sample) -> Mapping[str, Any]:
        """Ask one plugin about one sample. Raises PreflightError."""
        try:
            given = await _awaited(call, sample=sample)
            if not isinstance(given, Mapping | None):
                raise TypeError(f"expected a mapping of facts, got {type(given).__name__}")
        except KevalError:
            raise
        except Exception as error:
            told = self._problem(call, f"failed to look up facts for sample {sample.id!r}", error)
            raise PreflightError(told) from error
        return given or {}

    def _problem(self, call: HookImpl, problem: str, error: Exception) -> str:
        plugin = f"the hook plugin {call.plugin_name!r} of {self._origins.get(call.plugin_name, 'keval')}"
        return f"{plugin} {problem}: {type(error).__name__}: {error}"


async def _awaited(call: HookImpl, **news: Any) -> Any:
    """Call a hook, which may be a coroutine, with what it takes of `news`; returns what it returns."""
    found = call.function(*(news[name] for name in call.argnames))
    return await found if inspect.isawaitable(found) else found


class RunWatcher(Protocol):
    """A hook plugin that every run has, constructed for it without arguments. Group `keval.run_watchers`."""

    def publishing(self, folder: Path, hooks: Hooks, redact: Redactor) -> AbstractAsyncContextManager[None]:
        """Tell of the run in its folder, without secrets, while the block runs; `hooks` may be listened to."""
        ...

    def begins(self, key: TrialKey) -> None:
        """Be told that a trial begins."""
        ...

    def ends(self) -> None:
        """Be told that nothing of the run is up any more; also if it could not begin, and was not published."""
        ...
