"""The plan of a replay: what an evaluation and a recording have in common."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import attrs

from keval.config.evaluation import Evaluation
from keval.config.load import load, rebuild
from keval.config.secrets import learn_config
from keval.config.variables import filling, variable, variables_in
from keval.dataset.read import Dataset, read_dataset
from keval.dataset.samples import Samples
from keval.errors import ConfigError, Problem, RunError
from keval.plan.build import make_plan
from keval.plan.plan import Plan
from keval.records.manifest import Manifest
from keval.redaction import Redactor
from keval.run.resumption import changed_samples
from keval.run.select import Selection, select
from keval.store.run import Run
from keval_replay.recording import Recording


@attrs.frozen
class Replay:
    """How a run is replayed: from which recording, and what becomes of what that does not have.

    `dataset` is the one that the evaluation names now, if it was read: the recorded samples are asked all the same,
    except the `renewed` ones, by id.
    """

    recording: Recording
    misses: Literal["fail", "live"] = "fail"
    dataset: Dataset | None = None
    renewed: frozenset[str] = frozenset()


def recorded_selection(selection: Selection, manifest: Manifest, *, live: bool = False) -> Selection:
    """Return a selection in which that of the recorded run holds where nothing else is asked.

    It leaves no more repetitions than that run had, unless others can be asked `live`.
    """
    recorded, repetitions = manifest.selection, manifest.repetitions
    judged = max((entry.repetitions for entry in manifest.scorers if entry.judge is not None), default=None)
    kept = attrs.evolve(
        selection, limit=selection.limit or recorded.limit, sample_ids=selection.sample_ids or recorded.sample_ids
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

    def left_out(what: str, labels: Iterable[str], known: Collection[str] = ()) -> None:
        if lacking := [label for label in labels if label not in known]:
            told = f"left out: {what} {', '.join(lacking)}, which the recording of {manifest.run} does not have"
            notices.append(Problem("--replay", told))

    left_out("the agent", (spec.label for spec in evaluation.agents), manifest.agents)
    left_out("the condition", evaluation.conditions, manifest.conditions)
    left_out("the judge", (spec.label for spec in evaluation.judges), manifest.judges)
    sections = []
    for section in evaluation.sections:
        played, *without = section.played() if hasattr(section, "played") else (section, "", ())
        sections.append(played)
        left_out(*without)
    conditions = {label: each for label, each in evaluation.conditions.items() if label in manifest.conditions}
    agents = tuple(spec for spec in evaluation.agents if spec.label in manifest.agents)
    if not agents or not conditions:
        # A label may be lacking because the config could not be read: that is to be told first.
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
        header=attrs.evolve(header, baseline=baseline),
        sections=tuple(sections),
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
    frozen = Dataset(
        Path(known.path),
        samples,
        known.sha256 or "",
        range(1, len(samples) + 1),
        checks=known.checks,
        workspaces=known.workspaces,
    )
    if dataset is not None:
        there, had = {*dataset.samples.ids}, {*samples.ids}
        names = [name for name in samples.ids if name in there] + [name for name in renewed if name not in had]
        sources = [dataset.samples if name in renewed else samples for name in names]
        # Read when they are asked for, so that memory does not grow with the dataset.
        mixed = Samples(names, lambda number: sources[number].named(names[number]))
        frozen = attrs.evolve(dataset, samples=mixed, lines=range(1, len(names) + 1), expected={}, waiting=0)
    plan = make_plan(evaluation, frozen, played=True)
    if not any(key.id in recording.trials for key in plan.trials()):
        raise RunError(
            f"the recording of {recording.manifest.run} has no trial of this evaluation, such as"
            f" {next((key.id for key in plan.trials()), 'any')}"
        )
    return plan


@contextmanager
def planned_replay(
    config: Path | None,
    selection: Selection,
    run: Run,
    misses: Literal["fail", "live"],
    redactor: Redactor,
    *,
    changed: Callable[[Evaluation], Evaluation] = lambda evaluation: evaluation,
) -> Iterator[tuple[Plan, Replay]]:
    """Yield the plan of a replay of a recorded run, with the variables that run had while the block runs.

    Flags changed the evaluation as `changed` returns it.

    Raises ConfigError, RunError.
    """
    recording = Recording.open(run)
    manifest = recording.manifest
    with filling(remembered(manifest, asks_live=misses == "live")):
        evaluation = load(config) if config is not None else rebuild(manifest, str(run.path / "manifest.json"))
        learn_config(redactor, evaluation)
        live = misses == "live"
        selected = changed(select(evaluation, recorded_selection(selection, manifest, live=live)))
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


def remembered(manifest: Manifest, *, asks_live: bool = False) -> dict[str, str]:
    """Return the variables of a recorded run's config, with a placeholder for each that was secret and is not set.

    A placeholder can stand where an address is expected, too. There is none if models and servers may be asked live.
    """
    known = {name: value for name, value in manifest.variables.items() if value is not None}
    if asks_live:
        return known
    secret = {*variables_in(manifest.config)} - manifest.variables.keys()
    unset = {name: hashlib.sha256(name.encode()).hexdigest() for name in secret if variable(name) is None}
    return known | {name: f"http://{digest[:12]}.recording.invalid" for name, digest in unset.items()}
