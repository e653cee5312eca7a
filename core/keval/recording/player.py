"""The player: finds the tape of each attempt at a trial or judgement that asks again."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, get_args

import attrs

from keval.recording.playback import Course
from keval.recording.recording import Recording
from keval.recording.tape import AttemptTape, PlayedServer, RecordedAttempt
from keval.recording.volatile import Compared, canonical
from keval.records.cassettes import ServerTape, Volatile
from keval.records.models import Asker, Endpoint, ModelRequest, Wire
from keval.redaction import Redactor

_NOWHERE = "http://recording.invalid"
"""An address that no name server knows (RFC 2606, section 2)."""


@attrs.frozen(eq=False)
class Player:
    """Plays a recording. `volatile` is what agents and judges declare, by role and label.

    With `asks_live`, what the recording does not have is asked anew, which is not the player's task.
    """

    recording: Recording
    redact: Redactor
    volatile: Mapping[tuple[str, str], Sequence[Volatile]] = attrs.field(factory=dict)
    asks_live: bool = False

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

    def listing(self, condition: str, server: str) -> ServerTape:
        """Return what plays a server before the first trial, which is only what it lists."""
        course = Course((), is_late=False, expire=lambda: None, scrubbed=self.redact.data)
        return PlayedServer(course, server, [], partial(self.recording.listed, condition, server))

    def plays(self, model: str) -> bool:
        """Return whether a model needs no provider: it was recorded, or the first request to it fails as a miss."""
        return not self.asks_live or model in self.recording.endpoints

    def endpoint(self, model: str) -> Endpoint:
        """Return an endpoint in place of the recorded one, at which nothing is ever sent.

        A model that was not recorded has one, too, so that the first request to it is named by the miss.
        """
        known = self.recording.endpoints.get(model)
        urls = known.urls if known is not None else dict.fromkeys(get_args(Wire), _NOWHERE)
        name = known.name if known is not None else None
        return Endpoint(
            name or model.partition("/")[2],
            urls,
            secrets.token_urlsafe(24),
            simulated=known is not None and known.simulated,
            wants_trial=known is not None and known.wants_trial,
        )

    def _compared(self, volatile: tuple[Volatile, ...], request: ModelRequest) -> Compared:
        body, path = self.redact.content(request.body), self.redact.text(request.path)
        return canonical(attrs.evolve(request, body=body, path=path), volatile)

    def _listed(self, trial: str, server: str) -> Mapping[str, Any]:
        return self.recording.listed(self.recording.trial(trial).condition, server)
