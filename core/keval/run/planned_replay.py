"""Planning a replay: of a config, or of what the recorded run was made of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import attrs

from keval.config.evaluation import Evaluation
from keval.config.load import load, rebuild
from keval.config.secrets import learn_config
from keval.config.select import Selection, select
from keval.config.variables import filling, remembered
from keval.dataset.read import Dataset, read_dataset
from keval.execute.bringup.resumption import changed_samples
from keval.execute.replaying import Replay
from keval.plan.plan import Plan
from keval.plan.replayed import make_replay_plan, narrowed, recorded_selection
from keval.recording.recording import Recording
from keval.redaction import Redactor
from keval.store.run import Run


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


def _renewed(recording: Recording, dataset: Dataset, redactor: Redactor) -> list[str]:
    """Return the ids of samples that the dataset has otherwise than the recording, or alone, in its order."""
    frozen = recording.run.samples
    changed, had = {*changed_samples(frozen, dataset.samples, redactor)}, {*frozen.ids}
    return [name for name in dataset.samples.ids if name in changed or name not in had]


def _rebuilt(run: Run) -> Evaluation:
    """Return the evaluation that a run was made of, under the name that it had: that of its file, if it gave none."""
    evaluation = rebuild(run.manifest, str(run.path / "manifest.json"))
    return attrs.evolve(evaluation, header=attrs.evolve(evaluation.header, name=run.manifest.evaluation))
