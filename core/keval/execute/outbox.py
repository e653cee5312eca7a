"""The outbox of a run: writes what executors hand over, and announces it to hook plugins."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs

from keval.execute.admission import Admission
from keval.records.cassettes import Traffic
from keval.records.transcript import Blob
from keval.records.trial import Failure, Trial
from keval.redaction import Redactor
from keval.seams.hooks import Hooks
from keval.seams.live_events import LiveEvent
from keval.store.journal import Journal
from keval.store.serialization import read_trial, trial_line
from keval.store.writer import RunWriter

if TYPE_CHECKING:
    from keval.recording.recording import RecordingWriter

_SHA256 = re.compile(rb"\b[0-9a-f]{64}\b")


@attrs.define(eq=False)
class RunOutbox:
    """Writes trials, their traffic and blobs to a run, and tells hook plugins of trials and live events.

    All is without secrets. `_journal` writes ahead to `_recording`, if the run is recorded. `_written` is handed the id
    and the line of each trial that is on disk.
    """

    _writer: RunWriter
    _journal: Journal
    _redact: Redactor
    _hooks: Hooks
    _admission: Admission
    _recording: RecordingWriter | None = None
    _written: Callable[[str, bytes], None] = lambda trial, line: None
    _blobs: dict[str, Blob] = attrs.field(factory=dict, init=False)
    _renamed: dict[bytes, bytes] = attrs.field(factory=dict, init=False)
    _frames: dict[str, bytes] = attrs.field(factory=dict, init=False)
    _writing: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    @property
    def wants_events(self) -> bool:
        """Whether anybody listens to live events just now."""
        return self._hooks.wants_events

    async def trial(self, trial: Trial) -> None:
        """Write a trial and return when it is on disk, with its traffic and the content that it refers to.

        Raises RunError.
        """
        async with self._writing:  # another trial may be writing this one's content, or the same
            if self._blobs:
                blobs, self._blobs = self._blobs, {}
                await asyncio.to_thread(self._writer.write_blobs, blobs.values())
        self._admission.finished(trial)
        told = _line(trial)
        line = self._redact.line(told)
        if self._renamed:
            line = _SHA256.sub(lambda found: self._renamed.get(found[0], found[0]), line)
        await self._journal.append(line, self._frames.pop(trial.id, b""))
        if line != told:
            trial = read_trial(line, lambda _: trial.sample, lambda _: trial.characteristics)
        self._hooks.announce("keval_trial_finished", trial=trial)
        self._written(trial.id, line)

    def event(self, event: LiveEvent) -> None:
        """Tell hook plugins and other listeners of a live event."""
        self._hooks.tell(event, self._redact)

    def traffic(self, trial: str, traffic: Sequence[Traffic]) -> None:
        """Keep the traffic of a trial until that is written, if the run is recorded."""
        if self._recording is not None:
            self._frames[trial] = self._recording.trial(trial, traffic)

    def blob(self, blob: Blob) -> None:
        """Keep content until the next trial is written. Without its secrets, it has another SHA-256."""
        content = self._redact.content(blob.content)
        if content is not blob.content:
            kept = Blob.of(content, blob.media_type)
            self._renamed[blob.sha256.encode()] = kept.sha256.encode()
            blob = kept
        self._blobs[blob.sha256] = blob


def _line(trial: Trial) -> bytes:
    """Return a trial as a line; a trial that cannot be written as JSON becomes a failure."""
    try:
        return trial_line(trial)
    except (TypeError, ValueError, RecursionError) as error:
        failure = Failure("agent", "unwritable", f"the transcript cannot be written: {error}")
        return trial_line(attrs.evolve(trial, transcript=None, attempts=(), failure=failure))
