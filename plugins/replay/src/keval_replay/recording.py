"""The recording of a run: its traffic by trial and judgement, its servers' listings, its models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs

from keval.errors import PreflightError, RunError, typed
from keval.records.cassettes import ServerTraffic, Traffic
from keval.records.manifest import Manifest
from keval.records.transcript import Refusal
from keval.records.trial import Attempt, Failure, Trial
from keval.redaction import Redactor
from keval.store.run import Run
from keval_analysis.labels.anchors import is_anchor, read_anchor_scores
from keval_replay.frames import FrameKey, Frames, encoded_frame, traffic_file
from keval_replay.traffic_lines import RecordedEndpoint, read_endpoint, read_traffic, traffic_line


@attrs.frozen
class RecordedAttempt:
    """An attempt as it was recorded: its traffic, and what became of it.

    `refusals` are the model requests that were repeated below whoever asked, `None` if only the traffic tells of them.
    `is_last` says that no attempt followed.
    """

    traffic: Sequence[Traffic] = ()
    failure: Failure | None = None
    refusals: Sequence[Refusal] | None = None
    is_last: bool = True

    @property
    def is_late(self) -> bool:
        """Whether its time was over."""
        return self.failure is not None and self.failure.kind == "timeout"


@attrs.frozen(eq=False, slots=False)
class Recording:
    """A run with its traffic."""

    run: Run
    frames: Frames

    @classmethod
    def open(cls, run: Run) -> Recording:
        """Open the recording of a run and check its frames. Raises RunError: it has none, or is damaged or cut off."""
        if run.manifest.recording is None:
            raise RunError(f"{run.path} has no recording; `keval run --record` makes one")
        frames = Frames(traffic_file(run.path))
        if frames.torn is not None:
            raise RunError(
                f"{frames.path} is cut off: the frame that begins at byte {frames.torn} has no end; restore the file,"
                f" or let `{typed('resume', run.path)}` complete an interrupted run"
            )
        # Every frame is decompressed, so that damage ends a replay before its first trial and not in the midst of it.
        for key in frames.keys:
            frames.read(key, len)
        return cls(run, frames)

    @property
    def manifest(self) -> Manifest:
        """The manifest of the run."""
        return self.run.manifest

    @cached_property
    def trials(self) -> frozenset[str]:
        """The ids of the trials that can be played: they were finished, and all that passed was kept.

        Of an agent whose answers existed already, nothing passed.
        """
        answered = tuple(f"{label}/" for label, entry in self.manifest.agents.items() if entry.recording is not None)
        kept = {key.trial for key in self.frames.keys if key.role == "agent"}
        return frozenset(name for name in self.run.trial_ids() if name in kept or name.startswith(answered))

    @cached_property
    def endpoints(self) -> Mapping[str, RecordedEndpoint]:
        """What is known of the endpoint of each model, by `provider/name`. Raises RunError."""
        keys = [key for key in self.frames.keys if key.role == "endpoint"]
        return {each.model: each for key in keys for each in self.frames.read(key, read_endpoint)}

    def of_trial(self, id: str) -> list[Traffic]:
        """Return the traffic of all attempts at a trial. Raises RunError."""
        return _read(self.frames, FrameKey("agent", trial=id))

    def of_judgement(self, id: str, judge: str, repetition: int) -> list[Traffic]:
        """Return the traffic of all attempts at a judgement of a trial. Raises RunError."""
        return _read(self.frames, FrameKey("judge", trial=id, judge=judge, repetition=repetition))

    def attempt(self, id: str, number: int) -> RecordedAttempt | None:
        """Return an attempt at a trial, counted from 1; `None` if nothing of it is known. Raises RunError."""
        if id not in self.trials:
            return None
        trial = self.run.trial(id)
        became: list[Attempt | Trial] = [*trial.attempts, trial]
        if number > len(became):
            return None
        traffic = [each for each in self.of_trial(id) if each.attempt == number]
        transcript = became[number - 1].transcript
        refusals = transcript.refusals if transcript is not None else None
        return RecordedAttempt(traffic, became[number - 1].failure, refusals, number == len(became))

    def judgement(self, id: str, judge: str, repetition: int, number: int) -> RecordedAttempt | None:
        """Return an attempt at a judgement, counted from 1; `None` if nothing of it is known. Raises RunError."""
        traffic = [each for each in self.of_judgement(id, judge, repetition) if each.attempt == number]
        if not traffic:
            return None
        lines = read_anchor_scores(self.run.path, id) if is_anchor(id) else self.run.scores_of(id)
        judged = (line for line in lines if line.judge == judge and line.judgement is not None)
        line = next((each for each in judged if each.judgement and each.judgement.repetition == repetition), None)
        # Any line of the judgement will do, as each repeats its attempts.
        failures = (*line.judgement.attempts, line.failure) if line is not None and line.judgement is not None else ()
        failure = failures[number - 1] if number <= len(failures) else None
        return RecordedAttempt(traffic, failure, is_last=number >= len(failures))

    def listed(self, condition: str, server: str) -> Mapping[str, Any]:
        """Return what a server listed before the first trial.

        Raises PreflightError: this was not kept; and RunError: it is damaged.
        """
        key = FrameKey("server", condition=condition, server=server)
        for each in _read(self.frames, key):
            if isinstance(each, ServerTraffic) and each.result is not None:
                return each.result
        raise PreflightError(
            f"the recording of {self.run.id} has no traffic of the server {server!r} in the condition {condition!r};"
            " replay the recorded contexts, or run live"
        )


def _read(frames: Frames, key: FrameKey) -> list[Traffic]:
    return frames.read(key, read_traffic) if key in frames else []


def traffic_of(run: Run, trial: str) -> list[Traffic]:
    """Return the traffic of all attempts at a trial, without opening the whole recording; empty if it has none.

    Raises RunError: it is damaged.
    """
    if run.manifest.recording is None or not traffic_file(run.path).exists():
        return []
    return _read(Frames(traffic_file(run.path)), FrameKey("agent", trial=trial))


def traffic_frame(key: FrameKey, traffic: Iterable[Traffic], redact: Redactor) -> bytes:
    """Return traffic as a frame, without secrets."""
    return encoded_frame(key, [traffic_line(each, redact) for each in traffic])
