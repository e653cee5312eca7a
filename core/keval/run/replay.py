"""Replaying a run: an evaluation as it is now is played the traffic of a recorded run, and scored.

Nothing is connected to, unless misses are asked live: no provider of models and no server. Recorded samples have the
facts that they had, and hook plugins are told of trials, but prepare none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from keval.analysis.regression import Regression
from keval.config.evaluation import Budget
from keval.config.secrets import learn_config
from keval.execute.admission import Stop
from keval.execute.bringup.preflight import preflight
from keval.execute.bringup.resumption import changes, sample_changes, scorer_changes
from keval.execute.live import Watching
from keval.execute.models.prices import find_prices
from keval.execute.replaying import LiveSide, Replay
from keval.execute.working_time import WorkingTime
from keval.plan.hooks import Hooks
from keval.plan.plan import Plan
from keval.records.manifest import Manifest, RecordingEntry, ReplayEntry
from keval.records.prices import Price
from keval.records.sample import Sample
from keval.records.summary import Summary
from keval.redaction import Redactor
from keval.run.pipeline import Watchers, hooks_of, resources, writing
from keval.run.stages import Running
from keval.score.replaying import Replaying
from keval.store.run import Run
from keval.store.writer import RunWriter

_LABELLED = ("agents", "contexts", "conditions")


async def replay_run(
    replay: Replay,
    plan: Plan,
    root: Path,
    watchers: Watchers = (),
    *,
    redactor: Redactor | None = None,
    stop: Stop | None = None,
    regression: Regression | None = None,
) -> tuple[Run, Summary]:
    """Replay a recorded run by a plan of its samples, score it and write its summary.

    Trials that were not recorded are left out, or run live with those that ask for what the recording does not have.
    Prices are those of the recorded run, and budgets are not applied.

    Raises PreflightError, RunError: the run's directory cannot be written, the recording is damaged, or what is to be
    run live cannot be; and StoppedError when `stop` was asked while trials were run.
    """
    recording, before = replay.recording, replay.recording.manifest
    started, working = datetime.now(UTC), WorkingTime()
    redact = redactor or Redactor()
    learn_config(redact, plan.evaluation)
    async with resources() as scope:
        is_live = replay.misses == "live"
        ready = await preflight(plan, scope, redact, Hooks.of(()), recording=recording, asks_live=is_live)
        unbounded = attrs.evolve(plan, evaluation=attrs.evolve(plan.evaluation, budget=Budget()))
        models = {name for item in plan.askers for name in item.model_names}
        prices: Mapping[str, Price] = {model: price for model, price in before.prices.items() if model in models}
        if is_live:
            prices = find_prices(unbounded.evaluation, plan.askers, ready.endpoints, before)
        writer = RunWriter.create(root, plan.evaluation.folder, started)
        watching = Watching()
        hooks = hooks_of(plan.hooks, [*watchers, watching.plugin])
        samples: dict[str, Sample] = {}
        with writer.freezing(redact) as freeze:
            renewed = plan.samples.pick([at for at, name in enumerate(plan.samples.ids) if name in replay.renewed])
            asked = hooks.with_facts(renewed, plan.evaluation.execution.max_concurrent)
            found = {sample.id: sample async for sample in asked}
            for sample in plan.samples:
                if freeze(found.get(sample.id, sample)) and sample.id in found:
                    samples[sample.id] = found[sample.id]
        async with writing(writer, watching, hooks, redact):
            running = Running.of(
                plan,
                ready,
                writer,
                hooks=hooks,
                prices=prices,
                redact=redact,
                samples=samples,
                regression=regression,
                begins=watching.begins,
            )
            now = running.describe(started)
            live = LiveSide(plan, recording, scope, redact) if is_live else None
            manifest = attrs.evolve(
                now,
                replay=ReplayEntry(
                    before.run,
                    _recorded(before),
                    replay.misses,
                    changes=tuple(_changes(replay, plan, now, redact)),
                ),
                recording=RecordingEntry(started.isoformat(timespec="seconds")) if live else None,
            )
            played = attrs.evolve(running, plan=unbounded, replaying=Replaying(recording, live))
            left_out = () if live else {key.id for key in plan.trials()} - recording.trials
            return writer.run, await played.finish(manifest, working, stop=stop, done=left_out)


def _recorded(manifest: Manifest) -> str:
    """Return since when a run was recorded; of a recording that was renewed in part, when its oldest part was."""
    if manifest.replay is not None:
        return manifest.replay.recorded
    return manifest.recording.since if manifest.recording else ""


def _changes(replay: Replay, plan: Plan, now: Manifest, redact: Redactor) -> Iterator[str]:
    """Yield what differs from the recorded run, in what both have."""
    before = replay.recording.manifest
    config = {key: section for key, section in before.config.items() if key not in _LABELLED or key in now.config}
    labelled = {key: _shared(config[key], now.config[key]) for key in _LABELLED if key in config}
    shared = attrs.evolve(
        before,
        config={**config, **labelled},
        agents=_shared(before.agents, now.agents),
        conditions=_shared(before.conditions, now.conditions),
    )
    yield from changes(shared, now)
    if replay.dataset is not None and before.dataset.sha256 != now.dataset.sha256:
        frozen, asked = replay.recording.run.samples, {*plan.samples.ids}
        both = frozen.pick([at for at, name in enumerate(frozen.ids) if name in asked])
        yield from sample_changes(both, replay.dataset.samples, redact)
    yield from scorer_changes(before, now)


def _shared(before: Any, now: Any) -> Any:
    """Return the labels of a section that both have."""
    if not isinstance(before, Mapping) or not isinstance(now, Mapping):
        return before
    return {label: entry for label, entry in before.items() if label in now}
