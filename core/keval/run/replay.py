"""Replaying a run: an evaluation as it is now is played the traffic of a recorded run, and scored.

Nothing is connected to, unless misses are asked live: no provider of models and no server. Recorded samples have the
facts that they had, and hook plugins are told of trials, but prepare none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import attrs

from keval.config.evaluation import Budget, Evaluation
from keval.config.load import load, rebuild
from keval.config.secrets import learn_config
from keval.config.select import Selection, select
from keval.config.variables import filling, remembered
from keval.dataset.read import Dataset, read_dataset
from keval.execute.bringup.preflight import preflight
from keval.execute.bringup.resumption import changed_samples, changes, sample_changes, scorer_changes
from keval.execute.models.prices import find_prices
from keval.execute.replaying import LiveSide, Replay
from keval.plan.hooks import Hooks
from keval.plan.plan import Plan
from keval.plan.replayed import make_replay_plan, narrowed, recorded_selection
from keval.recording.recording import Recording
from keval.records.manifest import Manifest, ReplayEntry
from keval.records.prices import Price
from keval.records.summary import Summary
from keval.redaction import Redactor
from keval.run import steps
from keval.run.active_run import ActiveRun, RunOptions
from keval.score.replaying import Replaying
from keval.store.run import Run

_LABELLED = ("agents", "contexts", "conditions")


@contextmanager
def planned_replay(
    config: Path | None, selection: Selection, run: Run, misses: Literal["fail", "live"], redactor: Redactor
) -> Iterator[tuple[Plan, Replay]]:
    """Yield the plan of a replay of a recorded run, with the variables that run had while the block runs.

    Raises ConfigError, RunError.
    """
    recording = Recording.open(run)
    manifest = recording.manifest
    with filling(remembered(manifest, asks_live=misses == "live")):
        evaluation = load(config) if config is not None else _rebuilt(run)
        learn_config(redactor, evaluation)
        live = misses == "live"
        selected = select(evaluation, recorded_selection(selection, manifest, live=live))
        # The config may name another dataset than the recorded one, whose samples are asked unless that is done live.
        dataset = read_dataset(selected.dataset) if config is not None and selected.dataset is not None else None
        renewed = _renewed(recording, dataset, redactor) if live and dataset is not None else ()
        plan = make_replay_plan(narrowed(selected, recording), recording, dataset, renewed)
        yield plan, Replay(recording, misses, dataset, frozenset(renewed))


async def replay_run(replay: Replay, plan: Plan, root: Path, options: RunOptions | None = None) -> tuple[Run, Summary]:
    """Replay a recorded run by a plan of its samples, score it and write its summary.

    Trials that were not recorded are left out, or run live with those that ask for what the recording does not have.
    Prices are those of the recorded run, and budgets are not applied.

    Raises PreflightError, RunError: the run's directory cannot be written, the recording is damaged, or what is to be
    run live cannot be; and StoppedError when the run was asked to stop while trials were run.
    """
    recording, is_live = replay.recording, replay.misses == "live"
    async with ActiveRun.open(plan, options or RunOptions()) as run:
        run.budget = Budget()
        # Hook plugins prepare nothing.
        run.ready = await preflight(plan, run.scope, run.redact, Hooks.of(()), recording=recording, asks_live=is_live)
        run.prices = _prices(run, recording.manifest, is_live=is_live)
        run.create(root)
        await _freeze(run, replay, plan)
        async with run.writing():
            steps.describe(run, plan)
            live = LiveSide(plan, recording, run.scope, run.redact) if is_live else None
            run.replaying = Replaying(recording, live)
            before, differing = recording.manifest, tuple(_changes(replay, plan, run.manifest, run.redact))
            entry = ReplayEntry(before.run, _recorded(before), replay.misses, changes=differing)
            run.manifest = attrs.evolve(run.manifest, replay=entry)
            if live is not None:
                run.record_from(run.started.isoformat(timespec="seconds"))
            left_out = () if live else {key.id for key in plan.trials()} - recording.trials
            return run.run, await steps.complete(run, plan, done=left_out)


def _prices(run: ActiveRun, before: Manifest, *, is_live: bool) -> dict[str, Price]:
    """Return what models cost: as in the recorded run, unless some are asked."""
    plan = run.plan
    if is_live:
        unbounded = attrs.evolve(plan.evaluation, budget=run.budget)
        return find_prices(unbounded, plan.askers, run.ready.endpoints, before)
    models = {name for item in plan.askers for name in item.model_names}
    return {model: price for model, price in before.prices.items() if model in models}


async def _freeze(run: ActiveRun, replay: Replay, plan: Plan) -> None:
    """Write the samples as they were recorded, and those that are renewed with what hook plugins know of them now."""
    with run.writer.freezing(run.redact) as write:
        renewed = plan.samples.pick([at for at, name in enumerate(plan.samples.ids) if name in replay.renewed])
        asked = run.hooks.with_facts(renewed, plan.evaluation.execution.max_concurrent)
        found = {sample.id: sample async for sample in asked}
        for sample in plan.samples:
            if write(found.get(sample.id, sample)) and sample.id in found:
                run.samples[sample.id] = found[sample.id]


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


def _renewed(recording: Recording, dataset: Dataset, redactor: Redactor) -> list[str]:
    """Return the ids of samples that the dataset has otherwise than the recording, or alone, in its order."""
    frozen = recording.run.samples
    changed, had = {*changed_samples(frozen, dataset.samples, redactor)}, {*frozen.ids}
    return [name for name in dataset.samples.ids if name in changed or name not in had]


def _rebuilt(run: Run) -> Evaluation:
    """Return the evaluation that a run was made of, under the name that it had: that of its file, if it gave none."""
    evaluation = rebuild(run.manifest, str(run.path / "manifest.json"))
    return attrs.evolve(evaluation, header=attrs.evolve(evaluation.header, name=run.manifest.evaluation))
