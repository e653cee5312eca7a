"""Resuming a run: what it has, what has changed since it began, and what its manifest says afterwards."""

from __future__ import annotations

from pathlib import Path

import attrs

from keval.dataset.samples import Samples
from keval.errors import RunError
from keval.execute.changes import as_written, changes, sample_changes
from keval.manifest import Manifest, ResumeEntry
from keval.records import Sample
from keval.redaction import Redactor

__all__ = ["Resumption", "check_resumable"]


def check_resumable(run: Path, manifest: Manifest) -> None:
    """Raise RunError if a run cannot go on: one that was replayed would ask models what it took from a recording."""
    if manifest.replay is not None:
        raise RunError(
            f"{run} was replayed from {manifest.replay.run}, and does not go on: that would mix recorded answers with"
            " others; replay again with `keval run --replay`"
        )
    if manifest.play:
        raise RunError(f"{run} was played: a person asked its questions, and it has no others; begin another play")


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
        had = {name: position for position, name in enumerate(frozen.ids)}
        found = {name: position for position, name in enumerate(samples.ids)}
        changed = changes(before, now, extended=self.extended)
        changed += [f"sample {name}: it is gone" for name in had if name not in found]
        # With one digest, a dataset has the same samples.
        if before.dataset.sha256 is None or before.dataset.sha256 != now.dataset.sha256:
            changed += sample_changes(frozen, samples, redact)
        new = samples.pick([position for name, position in found.items() if name not in had])
        return new, tuple(changed)

    def originals(self, frozen: Samples, samples: Samples, redact: Redactor) -> dict[str, Sample]:
        """Return the samples that hold a secret, by id: they are asked as the dataset has them."""
        had = {name: position for position, name in enumerate(frozen.ids)}
        found: dict[str, Sample] = {}
        for sample in samples:
            if sample.id in had and as_written(sample, redact) != sample:
                kept = frozen[had[sample.id]]
                found[sample.id] = attrs.evolve(sample, facts={**kept.facts, **sample.facts}, withheld=kept.withheld)
        return found

    def refusal(self, run: Path, changed: tuple[str, ...]) -> str:
        """Return the error for a run that cannot go on as it began."""
        lines = "".join(f"\n  {line}" for line in changed)
        return (
            f"{run} cannot go on as it began, because this has changed:{lines}\n"
            "restore it, start a new run, or mix the two with --force, which the manifest will say"
        )

    def manifest(self, before: Manifest, now: Manifest, retried: int, changed: tuple[str, ...]) -> Manifest:
        """Return the manifest of the resumed run: as it was, with what was added and when."""
        assert now.started is not None  # noqa: S101 - a manifest that is made now says when
        entry = ResumeEntry(now.started, retried, changed)
        extra = {**before.extra, **now.extra}
        resumed = (*before.resumed, entry)
        return attrs.evolve(now, started=before.started, resumed=resumed, recording=before.recording, extra=extra)
