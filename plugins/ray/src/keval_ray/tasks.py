"""What passes between the driver and its workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import attrs

from keval import Sample
from keval.records.trial import TrialKey
from keval.seams.distribution import PackedScores, PackedTrial, WantedScore
from keval.seams.live_events import LiveEvent


@attrs.frozen
class RunTask:
    """A trial to run."""

    key: TrialKey
    sample: Sample


@attrs.frozen
class ScoreTask:
    """Scores to make of a trial, given as its line, perhaps against another one."""

    line: bytes
    sample: Sample
    wanted: Sequence[WantedScore]
    against: bytes | None = None


Task: TypeAlias = RunTask | ScoreTask


@attrs.frozen
class TaskError:
    """Why a task has no result: an endpoint was given up, or a defect. Secrets are replaced in the message."""

    kind: Literal["outage", "defect"]
    message: str


@attrs.frozen
class Usage:
    """What the process of a worker has used: seconds of CPU, also of programs that ended, and its largest memory."""

    cpu_seconds: float
    memory_bytes: int


@attrs.frozen
class Batch:
    """What a worker has done since it was asked before; results are by the number of their task."""

    results: Mapping[int, PackedTrial | PackedScores | TaskError]
    events: Sequence[LiveEvent]
    warnings: Sequence[str]
    usage: Usage


@attrs.frozen
class BringUp:
    """What came of bringing a worker up: on which node it is, or what is wrong."""

    node: str
    problems: Sequence[str] = ()
