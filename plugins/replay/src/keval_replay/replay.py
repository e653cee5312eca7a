"""Replaying a run: an evaluation as it is now is played the traffic of a recorded run, and scored.

Nothing is connected to, unless misses are asked live: no provider of models and no server. Recorded samples have the
facts that they had, and hook plugins are told of trials, but prepare none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from keval.config.evaluation import Budget
from keval.execute.bringup.preflight import Ready, preflight
from keval.execute.models.prices import find_prices
from keval.files import read_kept, replacing
from keval.plan.plan import Plan
from keval.records.manifest import Manifest, ReplayEntry
from keval.records.models import Price
from keval.records.trial import Sample
from keval.redaction import Redactor
from keval.run import steps
from keval.run.active_run import BroughtUp, RunOptions, RunStart
from keval.run.conclusion import Summary
from keval.run.resumption import changes, sample_changes
from keval.seams.hooks import Hooks
from keval.store.run import Run
from keval.store.writer import RunWriter
from keval_analysis.labels.anchors import anchors_file
from keval_replay.cassette import Player, volatile_of
from keval_replay.played_gate import PlayedGate
from keval_replay.recorder import Recorder
from keval_replay.replay_plan import Replay
from keval_replay.replay_workers import LiveSide, replaying_backend
from keval_replay.scorer_changes import scorer_changes

_LABELLED = ("agents", "contexts", "conditions")


async def replay_run(replay: Replay, plan: Plan, root: Path, options: RunOptions | None = None) -> tuple[Run, Summary]:
    """Replay a recorded run by a plan of its samples, score it and write its summary.

    Trials that were not recorded are left out, or run live with those that ask for what the recording does not have.
    Prices are those of the recorded run, and budgets are not applied.

    Raises PreflightError, RunError: the run's directory cannot be written, the recording is damaged, or what is to be
    run live cannot be; and StoppedError when the run was asked to stop while trials were run.
    """
    recording, is_live = replay.recording, replay.misses == "live"
    async with RunStart.open(plan, options or RunOptions()) as opened:
        redact = opened.redact
        live = LiveSide(plan, recording, opened.scope, redact) if is_live else None
        start = attrs.evolve(opened, budget=Budget(), backend=replaying_backend(recording, live))
        # Hook plugins prepare nothing.
        player = Player(recording, redact, volatile_of(plan), Recorder(redact) if is_live else None)
        ready = await preflight(plan, start.scope, redact, Hooks.of(()), traffic=player, gate=PlayedGate)
        prices = _prices(plan, ready, recording.manifest, is_live=is_live)
        writer = start.create(root)
        asked = await _freeze(start, writer, replay, plan)
        async with start.writing(writer):
            run = steps.describe(start, writer, BroughtUp(ready, prices), plan, asked=asked)
            before, differing = recording.manifest, tuple(_changes(replay, plan, run.manifest, redact))
            entry = ReplayEntry(before.run, _recorded(before), replay.misses, changes=differing)
            run.amend(replay=entry)
            if live is not None:
                run.record_from(start.at.isoformat(timespec="seconds"))
            left_out = () if live else {key for key in plan.trials() if key.id not in recording.trials}
            return run.run, await steps.complete(run, plan, done=left_out)


def _prices(plan: Plan, ready: Ready, before: Manifest, *, is_live: bool) -> dict[str, Price]:
    """Return what models cost: as in the recorded run, unless some are asked."""
    if is_live:
        unbounded = attrs.evolve(plan.evaluation, budget=Budget())
        return find_prices(unbounded, plan.askers, ready.endpoints, before)
    models = {name for item in plan.askers for name in item.model_names}
    return {model: price for model, price in before.prices.items() if model in models}


async def _freeze(start: RunStart, writer: RunWriter, replay: Replay, plan: Plan) -> dict[str, Sample]:
    """Write the samples as they were recorded, and those that are renewed with what hook plugins know of them now.

    Returns those of the latter that hold a secret, by id.
    """
    if (kept := anchors_file(replay.recording.run.path)).exists():
        with replacing(anchors_file(writer.path)) as file:
            file.write(read_kept(kept))
    with writer.freezing(start.redact) as write:
        renewed = plan.samples.pick([at for at, name in enumerate(plan.samples.ids) if name in replay.renewed])
        asked = start.hooks.with_facts(renewed, plan.evaluation.execution.max_concurrent)
        found = {sample.id: sample async for sample in asked}
        redacted = [sample.id for sample in plan.samples if write(found.get(sample.id, sample))]
        return {name: found[name] for name in redacted if name in found}


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
