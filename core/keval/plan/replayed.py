"""The plan of a replay: what an evaluation and a recording have in common."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from keval.config.evaluation import Evaluation
from keval.config.select import Selection
from keval.dataset.read import Dataset
from keval.dataset.samples import Samples
from keval.errors import ConfigError, Problem, RunError
from keval.plan.build import make_plan
from keval.plan.plan import Plan

if TYPE_CHECKING:  # it reads files that only a replay has
    from keval.recording.recording import Recording
from keval.records.manifest import Manifest


def recorded_selection(selection: Selection, manifest: Manifest, *, live: bool = False) -> Selection:
    """Return a selection in which that of the recorded run holds where nothing else is asked.

    It leaves no more repetitions than that run had, unless others can be asked `live`.
    """
    recorded, execution = manifest.selection, manifest.config.get("execution")
    repetitions = int(execution.get("num_repetitions", 1)) if isinstance(execution, dict) else 1
    judged = max((entry.repetitions for entry in manifest.scorers if entry.judge is not None), default=None)
    kept = attrs.evolve(
        selection,
        limit=selection.limit or recorded.limit,
        sample_ids=selection.sample_ids or recorded.sample_ids,
    )
    if live:
        return kept
    return attrs.evolve(
        kept,
        repetitions=min(selection.repetitions or repetitions, repetitions),
        judge_repetitions=judged and min(selection.judge_repetitions or judged, judged),
    )


def narrowed(evaluation: Evaluation, recording: Recording) -> Evaluation:
    """Return what an evaluation has in common with a recording, with a notice of what is left out.

    Conditions that `ablate` would add are left out, as servers are asked for them: the recorded run's own config has
    them.

    Raises RunError: they have no agent or no condition in common; and ConfigError: the evaluation has problems.
    """
    manifest, notices = recording.manifest, list(evaluation.notices)

    def left_out(what: str, labels: Collection[str]) -> None:
        if labels:
            told = f"left out: {what} {', '.join(labels)}, which the recording of {manifest.run} does not have"
            notices.append(Problem("--replay", told))

    left_out("the agent", [spec.label for spec in evaluation.agents if spec.label not in manifest.agents])
    left_out("the condition", [label for label in evaluation.conditions if label not in manifest.conditions])
    left_out("the judge", [spec.label for spec in evaluation.judges if spec.label not in manifest.judges])
    left_out("the conditions that `ablate` adds to", evaluation.header.ablate)
    conditions = {label: each for label, each in evaluation.conditions.items() if label in manifest.conditions}
    agents = tuple(spec for spec in evaluation.agents if spec.label in manifest.agents)
    if not agents or not conditions:
        if evaluation.problems:
            raise ConfigError(evaluation.problems)
        raise RunError(
            f"the recording of {manifest.run} is of another evaluation: it has the agents {', '.join(manifest.agents)}"
            f" and the conditions {', '.join(manifest.conditions)}"
        )
    header = evaluation.header
    baseline = header.baseline if header.baseline in conditions else None
    return attrs.evolve(
        evaluation,
        header=attrs.evolve(header, baseline=baseline, ablate=()),
        agents=agents,
        conditions=conditions,
        judges=tuple(spec for spec in evaluation.judges if spec.label in manifest.judges),
        notices=tuple(notices),
    )


def make_replay_plan(
    evaluation: Evaluation, recording: Recording, dataset: Dataset | None = None, renewed: Collection[str] = ()
) -> Plan:
    """Make the plan of a replay: samples are those that were recorded, with the facts that hook plugins had added.

    `dataset` is the one that the evaluation names now, and `renewed` are the ids of samples that are taken as it has
    them. Without it, its file is not needed, and the recorded run tells of it.

    Raises:
        ConfigError: the evaluation has problems.
        RunError: it has no trial in common with the recording.
    """
    known = recording.manifest.dataset
    samples = recording.run.samples
    frozen = Dataset(Path(known.path), samples, known.sha256 or "", range(1, len(samples) + 1))
    if dataset is not None:
        there, had = {*dataset.samples.ids}, {*samples.ids}
        names = [name for name in samples.ids if name in there] + [name for name in renewed if name not in had]
        sources = [dataset.samples if name in renewed else samples for name in names]
        mixed = Samples(names, lambda number: sources[number].named(names[number]))
        frozen = Dataset(dataset.path, mixed, dataset.digest, range(1, len(names) + 1))
    plan = make_plan(evaluation, frozen, played=True)
    if not any(key.id in recording.trials for key in plan.trials()):
        raise RunError(
            f"the recording of {recording.manifest.run} has no trial of this evaluation, such as"
            f" {next((key.id for key in plan.trials()), 'any')}"
        )
    return plan
