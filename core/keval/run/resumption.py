"""Resuming a run: what it has, what has changed since it began, and what its manifest says afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import orjson

from keval.dataset.samples import Samples
from keval.errors import RunError, typed
from keval.files import explained, open_added, read_lines, replacing
from keval.records.manifest import LookingEntry, Manifest, ResumeEntry
from keval.records.trial import Sample
from keval.redaction import Redactor
from keval.store.run import Run
from keval.store.serialization import read_sample, sample_line, to_plain

_GROWING = ("agents", "contexts", "conditions")
"""Sections of a config to which another config may add labels."""
_FREE = {
    *("name", "version", "description", "baseline", "neutral", "metrics", "judges", "rubrics", "budget", "prices"),
    *("providers", "gates", "ablate", "ablated"),
}
"""Keys of a config that change no trial. Scores have digests of their own."""
_FREE_EXECUTION = {
    *("num_repetitions", "judge_repetitions", "max_concurrent", "max_failures", "until", "grace_seconds", "executor"),
    *("rates", "seed"),
}
"""Keys of `execution` that change no trial, or that are compared by themselves."""


_LONG, _BEFORE = 100, 30
"""Characters of a text that are shown, and how many of them stand before the first difference."""


def set_failures_aside(run: Run) -> int:
    """Move failed trials to retried.jsonl, so that they can be run again; returns how many.

    The run has to be locked. Raises RunError.
    """
    trials, retried = run.trials_file, run.path / "retried.jsonl"
    failed = [line for line, is_failed in read_lines(trials, _with_outcome) if is_failed]
    if failed:
        # Synced first: cut off in between, a failure stands in both files, and in none never.
        with explained(retried), os.fdopen(open_added(retried), "ab") as file:
            file.writelines(failed)
            file.flush()
            os.fsync(file.fileno())
        # Read a second time and not held, as it is most of a run that may have a million trials.
        with replacing(trials) as kept:
            kept.writelines(line for line, is_failed in read_lines(trials, _with_outcome) if not is_failed)
        run.complete_indexes()
    return len(failed)


def _with_outcome(line: bytes) -> tuple[bytes, bool]:
    """Return the line of a trial, and whether that failed."""
    return line, orjson.loads(line)["failure"] is not None


def changes(before: Manifest, now: Manifest, *, extended: bool = False) -> Iterator[str]:
    """Yield every difference that could make new trials unlike those that a run has, one line each.

    If the run is `extended` by another config, that may add agents, conditions and samples, and name another dataset
    file; the samples themselves are compared elsewhere.
    """
    if not extended:
        yield from _difference(f"dataset {before.dataset.path}: SHA-256", before.dataset.sha256, now.dataset.sha256)
    yield from _difference("seed", before.seed, now.seed)
    for label, agent in before.agents.items():
        if label not in now.agents:
            yield f"agent {label}: it is missing now"
            continue
        for name in ("type", "model", "recording"):
            yield from _difference(f"agent {label}: {name}", getattr(agent, name), getattr(now.agents[label], name))
        for name, digest in agent.files.items():
            if now.agents[label].files.get(name) != digest:
                yield f"agent {label}: the file {name} has changed"
    for label, condition in before.conditions.items():
        if label not in now.conditions:
            yield f"condition {label}: it is missing now"
            continue
        for name, server in condition.servers.items():
            there = now.conditions[label].servers.get(name)
            if there is None:
                yield f"condition {label}: the server {name} is gone"
            else:
                yield from _difference(f"condition {label}: tools of the server {name}", server.tools, there.tools)
                if server.tools == there.tools and server.sha256 != there.sha256:
                    yield f"condition {label}: the server {name} has other tool descriptions"
                if server.shared is not None:  # older runs do not say
                    yield from _difference(f"condition {label}: trials share {name}", server.shared, there.shared)
        for name, text in condition.texts.items():
            there_now = now.conditions[label].texts.get(name)
            if there_now is not None and text.sha256 != there_now.sha256:
                yield f"condition {label}: the {text.part}s of {name} have changed"
        for key in ("digest", "commit"):
            of = condition.workspace.get(key), now.conditions[label].workspace.get(key)
            yield from _difference(f"condition {label}: the {key} of the workspace", *of)
    yield from _config_changes(before.config, now.config)
    for name, version in before.plugins.items():
        # One that is missing only scored, or the section of the config that named it is among the differences.
        yield from _difference(f"plugin {name}", version, now.plugins.get(name, version))
    for name, version in before.versions.items():
        if name != "python":
            yield from _difference(f"version of {name}", version, now.versions.get(name, version))
    for name, value in before.variables.items():
        yield from _difference(f"variable {name}", value, now.variables.get(name, value))


def sample_changes(frozen: Samples, samples: Samples, redact: Redactor) -> Iterator[str]:
    """Yield which samples are others than those that a run has frozen, one line each; one of them may lack some."""
    for name in changed_samples(frozen, samples, redact):
        yield f"sample {name}: it asks something else, or has other facts or expectations"


def changed_samples(frozen: Samples, samples: Samples, redact: Redactor) -> Iterator[str]:
    """Yield the ids of samples that are others than those that a run has frozen, where both have one of that id."""
    positions = samples.positions
    for number, name in enumerate(frozen.ids):
        if name in positions and not _is_same(frozen[number], as_written(samples[positions[name]], redact)):
            yield name


def as_written(sample: Sample, redact: Redactor) -> Sample:
    """Return a sample as it is when it is written and read again."""
    return read_sample(redact.line(sample_line(sample)))


def _is_same(frozen: Sample, sample: Sample) -> bool:
    """Return whether a sample is the one that was frozen, to which hook plugins may have added facts."""
    added = set(frozen.withheld) - set(sample.withheld)
    facts = {name: value for name, value in frozen.facts.items() if name not in added}
    return attrs.evolve(frozen, facts=facts, withheld=sample.withheld) == attrs.evolve(sample, facts=dict(sample.facts))


def _config_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(before.keys() - _FREE - {"dataset", "execution"}):
        there = now.get(key)
        if key in _GROWING and isinstance(there, Mapping):
            there = {label: there[label] for label in before[key] if label in there}
        yield from _leaves(key, before[key], there)
    yield from _leaves("execution", _bound(before.get("execution", {})), _bound(now.get("execution", {})))


def _bound(execution: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in execution.items() if key not in _FREE_EXECUTION}


def _leaves(path: str, before: Any, now: Any) -> Iterator[str]:
    """Yield the differences of two values, each at its path."""
    # As JSON gives them back: where the manifest on disk has lists, a new one has tuples.
    before, now = to_plain(before), to_plain(now)
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*before, *now]):
            yield from _leaves(f"{path}.{key}", before.get(key), now.get(key))
    else:
        yield from _difference(path, before, now)


def _difference(what: str, before: Any, now: Any) -> Iterator[str]:
    if to_plain(before) != to_plain(now):
        if isinstance(before, str) and isinstance(now, str):
            before, now = _excerpts(before, now)
        yield f"{what}: was {_shown(before)}, is {_shown(now)}"


def _excerpts(*texts: str) -> list[str]:
    """Return texts on one line each; of long ones, what stands around their first difference."""
    lines = [text.replace("\n", "\\n") for text in texts]
    if max(map(len, lines)) <= _LONG:
        return lines
    pairs = enumerate(zip(*lines, strict=False))
    same = next((index for index, (one, other) in pairs if one != other), min(map(len, lines)))
    start = max(0, same - _BEFORE)
    cut = [line[start : start + _LONG] for line in lines]
    return [
        f"{'…' if start else ''}{part}{'…' if len(line) > start + _LONG else ''}"
        for line, part in zip(lines, cut, strict=True)
    ]


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    return ", ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else str(value)


def check_resumable(run: Path, manifest: Manifest, *, extended: bool = False) -> None:
    """Raise RunError if a run cannot go on: one that was replayed would ask models what it took from a recording.

    One that ended early only goes on if it is `extended` by another config.
    """
    if manifest.looking is not None and manifest.looking.ended is not None and not extended:
        raise RunError(
            f"{run} {manifest.looking.ended}; to ask the others as well, write a config without `until` and use"
            f" `{typed('resume', run, '--extend', 'CONFIG')}`"
        )
    if manifest.replay is not None:
        raise RunError(
            f"{run} is a replay of {manifest.replay.run} and cannot be resumed, because that would mix recorded and new"
            " answers; replay again with `keval run --replay RUN`"
        )
    if manifest.play:
        raise RunError(f"{run} is a play, whose questions a person asked; it cannot be resumed; start a new play")


@attrs.frozen
class Resumption:
    """How a run is resumed.

    With `retry_failed`, trials that failed are run again, too. An `extended` run gets the samples, agents and
    conditions that another config adds. With `force`, it goes on although something changed.
    """

    retry_failed: bool = False
    extended: bool = False
    force: bool = False

    def compare(
        self, before: Manifest, now: Manifest, frozen: Samples, samples: Samples, redact: Redactor
    ) -> tuple[Samples, tuple[str, ...]]:
        """Return the samples that the run does not have, and what changed since it began, one line each."""
        had, found = frozen.positions, samples.positions
        changed = [*changes(before, now, extended=self.extended)]
        changed += [f"sample {name}: it is missing now" for name in had if name not in found]
        # With one digest, a dataset has the same samples.
        if before.dataset.sha256 is None or before.dataset.sha256 != now.dataset.sha256:
            changed += sample_changes(frozen, samples, redact)
        new = samples.pick([position for name, position in found.items() if name not in had])
        return new, tuple(changed)

    def originals(self, frozen: Samples, samples: Samples, redact: Redactor) -> dict[str, Sample]:
        """Return the samples that hold a secret, by id: they are asked as the dataset has them."""
        had = frozen.positions
        found: dict[str, Sample] = {}
        for sample in samples:
            if sample.id in had and as_written(sample, redact) != sample:
                kept = frozen[had[sample.id]]
                # What hook plugins looked up when the run began stays; what the dataset says has its secrets again.
                found[sample.id] = attrs.evolve(sample, facts={**kept.facts, **sample.facts}, withheld=kept.withheld)
        return found

    def refusal(self, run: Path, changed: tuple[str, ...]) -> str:
        """Return the error for a run that cannot go on as it began."""
        lines = "".join(f"\n  {line}" for line in changed)
        return (
            f"{run} cannot be resumed, because this changed:{lines}\n"
            "restore it, start a new run, or resume with --force, which is noted in the manifest"
        )

    def manifest(
        self, before: Manifest, now: Manifest, retried: int, changed: tuple[str, ...], looked_at: int | None = None
    ) -> Manifest:
        """Return the manifest of the resumed run: as it was, with what was added and when.

        `looked_at` is how many questions it had, if all its trials were run, so that somebody may go on because of what
        they found.
        """
        assert now.started is not None  # noqa: S101 - a manifest that is made now says when
        entry = ResumeEntry(now.started, retried, changed)
        # Keys that another version wrote into the manifest stay there.
        extra = {**before.extra, **now.extra}
        looking = before.looking
        if looking is not None and before.trials != now.trials:  # what was declared is no longer what is done
            looking = LookingEntry(looking.effect, questions=looking.questions, before=looking.before)
        if looked_at is not None and now.trials > before.trials:
            looking = looking or LookingEntry()
            looking = attrs.evolve(looking, before=(*looking.before, looked_at))
        resumed = (*before.resumed, entry)
        return attrs.evolve(
            now,
            started=before.started,
            note=now.note or before.note,
            resumed=resumed,
            recording=before.recording,
            looking=looking,
            changed=before.changed,
            extra=extra,
        )
