"""The player: finds the tape of each attempt at a trial or judgement that asks again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import attrs

from keval.models import Asker, ModelRequest
from keval.recording.recording import Recording
from keval.recording.tape import AttemptTape, RecordedAttempt
from keval.recording.volatile import Compared, canonical
from keval.redaction import Redactor
from keval.tapes import Volatile

__all__ = ["Player"]


@attrs.frozen(eq=False)
class Player:
    """Plays a recording. `volatile` is what agents and judges declare, by role and label."""

    recording: Recording
    redact: Redactor
    volatile: Mapping[tuple[str, str], Sequence[Volatile]] = attrs.field(factory=dict)

    @contextmanager
    def attempt(self, asker: Asker, expire: Callable[[], object]) -> Iterator[AttemptTape]:
        """Yield the tape of an attempt; one that was never made has no traffic. Raises RunError: it is damaged.

        `expire` ends the attempt as if its time were over.
        """
        trial, number, repetition = asker.trial or "", asker.attempt or 1, asker.repetition or 1
        if asker.role == "agent":
            recorded = self.recording.attempt(trial, number)
        else:
            recorded = self.recording.judgement(trial, asker.label, repetition, number)
        compared = partial(self._compared, tuple(self.volatile.get((asker.role, asker.label), ())))
        tape = AttemptTape(
            recorded or RecordedAttempt(), compared, self.redact.data, expire, partial(self._listed, trial)
        )
        try:
            yield tape
        finally:
            tape.close()

    def _compared(self, volatile: tuple[Volatile, ...], request: ModelRequest) -> Compared:
        body, path = self.redact.content(request.body), self.redact.text(request.path)
        return canonical(attrs.evolve(request, body=body, path=path), volatile)

    def _listed(self, trial: str, server: str) -> Mapping[str, Any]:
        return self.recording.listed(self.recording.trial(trial).condition, server)
