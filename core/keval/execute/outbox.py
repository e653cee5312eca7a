"""The outbox of a run: writes what executors hand over, and announces it to hook plugins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import attrs

from keval.execute.admission import Admission
from keval.execute.packing import TrialPacker
from keval.records.transcript import Blob
from keval.records.trial import Trial
from keval.redaction import Redactor
from keval.seams.distribution import PackedTrial
from keval.seams.hooks import Hooks
from keval.seams.live_events import LiveEvent
from keval.store.journal import Journal
from keval.store.run import Run
from keval.store.serialization import read_trial
from keval.store.writer import RunWriter


@attrs.define(eq=False)
class RunOutbox:
    """Writes trials, their traffic and blobs to a run, and tells hook plugins of trials and live events.

    All is without secrets. `_written` is handed the id and the line of each trial that is on disk. `_entry` returns
    what the index of trials has of one.
    """

    _writer: RunWriter
    _journal: Journal
    _redact: Redactor
    _hooks: Hooks
    _admission: Admission
    _written: Callable[[str, bytes], None] = lambda trial, line: None
    _entry: Callable[[Trial], int] = lambda trial: 0
    _run: Run = attrs.field(init=False)
    _packer: TrialPacker = attrs.field(init=False)
    _writing: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self._run = self._writer.run
        self._packer = TrialPacker(self._redact)

    @property
    def wants_events(self) -> bool:
        """Whether anybody listens to live events just now."""
        return self._hooks.wants_events

    async def trial(self, trial: Trial) -> None:
        """Write a trial and return when it is on disk, with its traffic and the content that it refers to.

        Raises RunError.
        """
        packed, differs = self._packer.pack(trial)
        # What is announced is what the file says.
        kept = read_trial(packed.line, lambda _: trial.sample, lambda _: trial.characteristics) if differs else trial
        await self._write(packed, trial, self._entry(kept))
        self._tell(kept, packed)

    async def packed(self, trial: PackedTrial) -> None:
        """Write a trial that was packed elsewhere, as `trial` does. Raises RunError."""
        read = self._run.read_trial(trial.line)
        self._redact.replaced.update(trial.replaced)
        await self._write(trial, read, self._entry(read))
        self._tell(read, trial)

    async def _write(self, packed: PackedTrial, trial: Trial, entry: int) -> None:
        # Before any wait: the executor asks for its next key meanwhile.
        self._admission.finished(trial)
        async with self._writing:  # another trial may be writing this one's content, or the same
            if packed.blobs:
                await asyncio.to_thread(self._writer.write_blobs, packed.blobs)
        await self._journal.append(packed.line, packed.frame, entry)

    def _tell(self, trial: Trial, packed: PackedTrial) -> None:
        self._hooks.announce("keval_trial_finished", trial=trial)
        self._written(trial.id, packed.line)

    def event(self, event: LiveEvent) -> None:
        """Tell hook plugins and other listeners of a live event."""
        self._hooks.tell(event, self._redact)

    def traffic(self, trial: str, frame: bytes) -> None:
        """Keep the traffic of a trial until that is written."""
        self._packer.traffic(trial, frame)

    def blob(self, blob: Blob) -> None:
        """Keep content until the next trial is written."""
        self._packer.blob(blob)
