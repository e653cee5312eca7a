"""Narrowing a recorded run to a few samples: a run directory of its own, small enough to be committed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import TypeVar

import attrs

from keval.errors import RunError, suggestion
from keval.files import read_lines, replacing
from keval.records.manifest import LookingEntry, Manifest, SelectionEntry
from keval.records.scores import ScoreLine
from keval.records.transcript import Blob
from keval.records.trial import Trial
from keval.store.run import Run
from keval.store.serialization import read_sample, read_score, to_json
from keval.store.writer import RunWriter
from keval_analysis.expectations import ExpectationCheck
from keval_analysis.findings.anchors import ANCHOR_SCORES, ANCHORS
from keval_analysis.findings.draws import read_draw
from keval_analysis.findings.reviews import read_review
from keval_analysis.gates import with_gates
from keval_analysis.labels.anchors import is_anchor, read_anchor
from keval_analysis.seal import SealCheck, sealed
from keval_replay.frames import FrameFile, FrameKey, Frames, traffic_file

T = TypeVar("T")

_SHA256 = re.compile(rb"\b[0-9a-f]{64}\b")


@attrs.frozen
class TrimSelection:
    """What of a run is kept: samples, agents and conditions, and the first `repetitions`. Empty means all of them."""

    samples: Collection[str] = ()
    agents: Collection[str] = ()
    conditions: Collection[str] = ()
    repetitions: int | None = None


@attrs.frozen
class Trimmed:
    """A recording that was narrowed: where it is, how many trials it has, and which of them it cannot replay.

    Those `without_traffic` were run before the run was recorded.
    """

    run: Run
    trials: int
    without_traffic: tuple[str, ...]


def trim(run: Run, wanted: TrimSelection, to: Path) -> Trimmed:
    """Copy a part of a recorded run to a new directory, with its traffic, scores and blobs, and its summary anew.

    The copy names no folder of this machine: relative paths of its config start where it is used.

    Raises RunError: the run has no recording, or lacks what is wanted; or the directory has files already, or cannot be
    written.
    """
    if run.manifest.recording is None:
        raise RunError(f"{run.path} has no recording; `keval run CONFIG --record` makes a run with one")
    manifest = _narrowed(run, wanted)
    frames = Frames(traffic_file(run.path))
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise RunError(f"{to} is there already; name another directory with -o, or remove it")
    try:
        to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{to} cannot be made: {error.strerror}; name another directory with -o") from error
    try:
        return _copied(run, manifest, frames, RunWriter(to))
    # Half a copy would look like an interrupted run.
    except BaseException:
        shutil.rmtree(to)
        raise


def _copied(run: Run, manifest: Manifest, frames: Frames, writer: RunWriter) -> Trimmed:
    samples = {*manifest.selection.sample_ids}
    repetitions = manifest.repetitions

    def kept(sample: str, of: Trial | ScoreLine) -> bool:
        return (
            sample in samples
            and of.agent in manifest.agents
            and of.condition in manifest.conditions
            and of.repetition <= repetitions
        )

    _copy_lines(run, writer, "samples.jsonl", read_sample, lambda sample: sample.id in samples)
    _copy_lines(run, writer, "trials.jsonl", run.read_trial, lambda trial: kept(trial.sample.id, trial))
    _copy_lines(run, writer, "scores.jsonl", read_score, lambda score: kept(score.sample, score))
    # Before anything is read from the copy, as a run is known by its manifest.
    writer.write_manifest(manifest)
    trials = writer.run.trial_ids()
    if run.reviews_file.path.exists():
        _copy_lines(run, writer, "reviews.jsonl", read_review, lambda review: review.trial in trials)
    if (run.path / "draws.jsonl").exists():
        _copy_lines(run, writer, "draws.jsonl", read_draw, lambda draw: trials >= {each.trial for each in draw.answers})
    if (anchors := run.path / ANCHORS).exists():
        _copy_lines(run, writer, anchors.name, read_anchor, lambda _: True)
    if (run.path / ANCHOR_SCORES).exists():
        _copy_lines(run, writer, ANCHOR_SCORES, read_score, lambda _: True)
    if len(trials) == manifest.trials:
        # What the run was stopped before is not wanted here.
        manifest = attrs.evolve(manifest, stopped=None)
        writer.write_manifest(manifest)
    writer.write_blobs(_blobs(run, [to_json(manifest), *read_lines(writer.run.trials_file, bytes)]))
    with FrameFile(traffic_file(writer.path)) as file:
        for key in frames.keys:
            if _belongs(key, trials, manifest):
                file.write(frames.raw(key))
        # Nothing more, but waits until all that was written is on disk.
        file.append(b"")
    asked = {key.trial for key in frames.keys if key.role == "agent"}
    asked |= {trial.id for trial in writer.run.trials() if manifest.agents[trial.agent].recording}  # asks no model
    expectations = ExpectationCheck.of(manifest)
    summary = writer.run.summary(expectations.watch(writer.run.trials()))
    writer.write_summary(with_gates(writer.run, summary, expectations))
    # Last, as the seal has the digests of all files before it.
    writer.write_manifest(sealed(writer.run, manifest))
    return Trimmed(writer.run, len(trials), tuple(sorted(trials - asked)))


def _narrowed(run: Run, wanted: TrimSelection) -> Manifest:
    """Return the manifest as if only what is wanted had been run. Raises RunError."""
    manifest = run.manifest
    samples = _chosen(run, "sample", run.samples.ids, wanted.samples)
    agents = _chosen(run, "agent", manifest.agents, wanted.agents)
    conditions = _chosen(run, "condition", manifest.conditions, wanted.conditions)
    config = dict(manifest.config)
    execution = dict(config.get("execution") or {})
    execution["num_repetitions"] = min(manifest.repetitions, wanted.repetitions or manifest.repetitions)
    execution["until"] = None
    config["execution"] = execution
    config["agents"] = _only(config["agents"], agents)
    config["conditions"] = _only(config["conditions"], conditions)
    if isinstance(ablated := config.get("ablated"), dict):
        config["ablated"] = _only(ablated, conditions)
    baseline = manifest.baseline if manifest.baseline in conditions else conditions[0]
    if "baseline" in config:
        config["baseline"] = baseline
    kept = _only(manifest.agents, agents)
    models = {entry.model for entry in kept.values()} | {entry.model for entry in manifest.judges.values()}
    return attrs.evolve(
        manifest,
        config=config,
        config_folder=".",
        elapsed=None,
        sealed={},
        changed=SealCheck(run).changed(),
        dataset=attrs.evolve(manifest.dataset, path=PurePath(manifest.dataset.path).name, samples=len(samples)),
        selection=SelectionEntry(sample_ids=tuple(samples)),
        agents=kept,
        conditions=_only(manifest.conditions, conditions),
        baseline=baseline,
        looking=manifest.looking and LookingEntry(manifest.looking.effect, questions=len(samples)),
        trials=len(agents) * len(conditions) * len(samples) * execution["num_repetitions"],
        simulated=tuple(model for model in manifest.simulated if model in models),
        prices={model: price for model, price in manifest.prices.items() if model in models},
        recording=attrs.evolve(manifest.recording, samples=tuple(samples)) if manifest.recording else None,
    )


def _chosen(run: Run, kind: str, known: Iterable[str], wanted: Collection[str]) -> list[str]:
    """Return what is wanted in the order of the run; everything if nothing is. Raises RunError."""
    there = [*known]
    for name in wanted:
        if name not in there:
            hint = suggestion(name, there) or f"; it has {', '.join(there[:10])}{', …' if len(there) > 10 else ''}"
            raise RunError(f"{run.path} has no {kind} {name!r}{hint}")
    return [name for name in there if not wanted or name in wanted]


def _only(entries: Mapping[str, T], labels: Collection[str]) -> dict[str, T]:
    return {label: entry for label, entry in entries.items() if label in labels}


def _copy_lines(run: Run, writer: RunWriter, name: str, read: Callable[[bytes], T], kept: Callable[[T], bool]) -> None:
    """Copy the lines of a file whose records are kept, as they stand there. Raises RunError at a damaged line."""
    lines = read_lines(run.path / name, lambda line: (line, kept(read(line))))
    with replacing(writer.path / name) as file:
        file.writelines(line for line, is_kept in lines if is_kept)


def _blobs(run: Run, texts: Iterable[bytes]) -> Iterator[Blob]:
    """Yield the blobs of a run that any of the texts names by their SHA-256."""
    # Wherever a digest stands, so that no list of fields must be kept up; other digests name no blob.
    named = {found.decode() for text in texts for found in _SHA256.findall(text)}
    for sha256 in sorted(named):
        if run.has_blob(sha256):
            yield Blob(sha256, "", run.blob(sha256))


def _belongs(key: FrameKey, trials: Collection[str], manifest: Manifest) -> bool:
    if key.trial is not None:
        return key.trial in trials or is_anchor(key.trial)
    return key.condition is None or key.condition in manifest.conditions
