"""Packing: a finished trial becomes what its run keeps, without secrets, in the process that ran it."""

from __future__ import annotations

import re

import attrs

from keval.files import MOST_BYTES
from keval.records.transcript import Blob
from keval.records.trial import Failure, Trial
from keval.redaction import Redactor
from keval.seams.distribution import PackedTrial
from keval.store.serialization import trial_line

_SHA256 = re.compile(rb"\b[0-9a-f]{64}\b")
_MOST_BYTES = MOST_BYTES // 2
"""Of a line, which may grow where secrets are replaced in it."""


@attrs.define(eq=False)
class TrialPacker:
    """Packs trials with the content and the traffic that was handed over before."""

    _redact: Redactor
    _blobs: dict[str, Blob] = attrs.field(factory=dict, init=False)
    # Kept for the whole run: content may be packed with another trial than the one that refers to it.
    _renamed: dict[bytes, bytes] = attrs.field(factory=dict, init=False)
    _frames: dict[str, bytes] = attrs.field(factory=dict, init=False)

    def blob(self, blob: Blob) -> None:
        """Keep content until the next trial is packed. Without its secrets, it has another SHA-256."""
        content = self._redact.content(blob.content)
        # `content` returns the same object if it has nothing to replace.
        if content is not blob.content:
            kept = Blob.of(content, blob.media_type)
            self._renamed[blob.sha256.encode()] = kept.sha256.encode()
            blob = kept
        self._blobs[blob.sha256] = blob

    def traffic(self, trial: str, frame: bytes) -> None:
        """Keep the traffic of a trial until that is packed."""
        self._frames[trial] = frame

    def pack(self, trial: Trial) -> tuple[PackedTrial, bool]:
        """Return a packed trial, and whether its line differs from the trial, as it had secrets or was unwritable."""
        blobs, self._blobs = self._blobs, {}
        told, kept = _line(trial)
        line = self._redact.line(told)
        if self._renamed:
            line = _SHA256.sub(lambda found: self._renamed.get(found[0], found[0]), line)
        failure = kept.failure.kind if kept.failure is not None else None
        packed = PackedTrial(line, failure, tuple(blobs.values()), self._frames.pop(trial.id, b""))
        return packed, kept is not trial or line != told


def _line(trial: Trial) -> tuple[bytes, Trial]:
    """Return a trial as a line; one that cannot be written as JSON, or is too long to be read, becomes a failure."""
    try:
        if len(line := trial_line(trial)) <= _MOST_BYTES:
            return line, trial
        problem = f"it has {len(line):,} bytes, and a run keeps {_MOST_BYTES:,} at most; let the agent tell less"
    except (TypeError, ValueError, RecursionError) as error:
        problem = str(error)
    failure = trial.failure or Failure("agent", "unwritable", f"the transcript cannot be written: {problem}")
    # Earlier attempts have transcripts, too, any of which may be what cannot be written.
    trial = attrs.evolve(trial, transcript=None, attempts=(), failure=failure)
    return trial_line(trial), trial
