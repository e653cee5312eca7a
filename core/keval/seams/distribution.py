"""The seams of executors: what runs trials, on workers here or elsewhere, and what holds for all workers of a run.

A worker is a process that has brought a plan up. Workers elsewhere make lines of what they finish, without secrets, and
only the driver, which is the process of the command, writes these to the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import attrs

from keval.records.manifest import Manifest, WorkerEntry
from keval.records.models import Endpoint
from keval.records.transcript import Blob
from keval.records.trial import Sample, Trial, TrialKey
from keval.seams.live_events import LiveEvent


@runtime_checkable
class Worker(Protocol):
    """A process that has brought a plan up and runs its trials."""

    async def run(self, key: TrialKey, sample: Sample, outbox: Outbox) -> Trial:
        """Run one trial until it is answered or has failed for good. Events and blobs go to `outbox` at once."""
        ...


@attrs.frozen
class PackedTrial:
    """A finished trial as a run keeps it: its line, the content that it refers to, and the frame of its recording.

    Secrets are replaced already; `replaced` counts the lines in which each was found, by its name. `failure` is the
    kind of the trial's failure, if it failed.
    """

    line: bytes
    failure: str | None = None
    blobs: tuple[Blob, ...] = ()
    frame: bytes = b""
    replaced: Mapping[str, int] = attrs.field(factory=dict)


@runtime_checkable
class Outbox(Protocol):
    """Where an executor hands over what its workers produce. Only the driver behind it writes to the run."""

    @property
    def wants_events(self) -> bool:
        """Whether anybody listens to live events just now; it may change at any time."""
        ...

    async def trial(self, trial: Trial) -> None:
        """Hand over a finished trial; returns when it is on disk. Await it for any number of trials at once."""
        ...

    def event(self, event: LiveEvent) -> None:
        """Hand over a live event. It may be dropped."""
        ...

    def blob(self, blob: Blob) -> None:
        """Hand over content that a trial refers to, before the trial itself."""
        ...

    def traffic(self, trial: str, frame: bytes) -> None:
        """Hand over what was kept of all attempts at a trial, before the trial itself; see `RunTraffic.frame`."""
        ...


@runtime_checkable
class JobOutbox(Outbox, Protocol):
    """The outbox of a job, which takes trials from elsewhere, too."""

    async def packed(self, trial: PackedTrial) -> None:
        """Hand over a trial that a worker elsewhere has finished, as `trial` does."""
        ...


@attrs.frozen
class Job:
    """What an executor is to do.

    `keys` are the trials to run, enumerated lazily; they end early when the run is asked to stop, its budget is
    used up or too many trials failed, so take a key only when its trial can begin. `count` is how many there are,
    and `sample` gets a sample by its id, with the facts that hooks added. `worker` is brought up in this process; a
    worker elsewhere can be brought up from `manifest` alone. At most `max_concurrent` trials may run at once.
    """

    manifest: Manifest
    keys: Iterator[TrialKey]
    count: int
    sample: Callable[[str], Sample]
    worker: Worker
    outbox: JobOutbox
    max_concurrent: int


@runtime_checkable
class Executor(Protocol):
    """Runs the trials of a job on workers. Group `keval.executors`; chosen by `execution.executor`."""

    async def execute(self, job: Job) -> None:
        """Run every trial and hand each to `job.outbox`. What the outbox raises ends the run.

        It is called again, with further keys, when trials cost less of a budget than was reserved for them.
        """
        ...


WantedScore: TypeAlias = tuple[str, str | None, int]
"""A score to make: a metric, or a rubric with its judge, and the judge's repetition."""


@attrs.frozen
class PackedScores:
    """New scores of a trial as lines of scores.jsonl, and the frames of the recording of their judgements.

    Secrets are replaced already; see `PackedTrial`.
    """

    lines: tuple[bytes, ...]
    frames: bytes = b""
    replaced: Mapping[str, int] = attrs.field(factory=dict)


@attrs.frozen
class CrewOrder:
    """What a crew is brought up for.

    Each worker is brought up from `manifest`, and if it is for `scoring` only, without agents and contexts. `variables`
    are those of the environment that the config and its model providers name; hand them over explicitly, and where
    nobody reads or keeps them. `sample_ids` are those of the whole dataset, if the plan has recorded answers.
    """

    manifest: Manifest
    variables: Mapping[str, str] = attrs.field(repr=False)
    scoring: bool = False
    sample_ids: Sequence[str] = attrs.field(default=(), repr=False)


@attrs.frozen
class CrewWatcher:
    """Is told of a crew: of a worker that came up, did something, was lost, or ended, and what RunLimits tell."""

    worker_changed: Callable[[WorkerEntry], object]
    endpoint_changed: Callable[[str, int | None, bool, str | None], object]


@runtime_checkable
class Crew(Executor, Protocol):
    """Workers that are up elsewhere, for as long as a run is worked on. They run its trials, and score them."""

    @property
    def workers(self) -> Sequence[WorkerEntry]:
        """Every worker until now, with what it did; also those that were lost."""
        ...

    async def score(
        self, trial: bytes, sample: Sample, wanted: Sequence[WantedScore], against: bytes | None = None
    ) -> PackedScores:
        """Make scores of a trial, given as its line, on some worker.

        `against` is the line of the trial that a `ComparingJudge` compares it with, if there is one.

        Raises:
            TrialError: workers were lost with it again and again.
            RunError: no worker is left.
        """
        ...

    async def reopen(self) -> None:
        """Let judges ask endpoints anew that were given up."""
        ...


@runtime_checkable
class CrewExecutor(Protocol):
    """An executor whose workers are other processes, perhaps on other machines. It is asked for a crew first.

    Hand each trial to `job.outbox.packed` once, also if it was run twice because a worker was lost. What passes between
    processes can be pickled.
    """

    def open(self, order: CrewOrder, watcher: CrewWatcher) -> AbstractAsyncContextManager[Crew]:
        """Bring workers up, and end them with all that they started. Yields when at least one is up.

        Raises:
            PreflightError: no worker can be brought up, or what is installed there differs; with every problem.
        """
        ...


class CrewOpener(Protocol):
    """Works on a run with a crew. Group `keval.crews`; a run whose executor is a CrewExecutor asks for `remote`."""

    def __call__(self, run: Any, executor: CrewExecutor, *, is_new: bool) -> AbstractAsyncContextManager[None]:
        """Bring up the crew of a `keval.run.active_run.ActiveRun` for a block, in which it runs and scores trials.

        A run that `is_new` is removed if that fails. Raises PreflightError.
        """
        ...


Ending: TypeAlias = Literal[
    "answered", "unusable", "throttled", "refused", "rejected", "denied", "unreachable", "untold"
]
"""How a model request ended: with an answer, with one that nobody can use, with status 429 or 529, with another status
that asks for it again, with one that others may get, too (403, 404), as all will until somebody acts (a key that is
wrong or without credit), without a response, or in a way that says nothing of the endpoint."""


@attrs.frozen
class Standing:
    """How an endpoint stands after a request: whether it is down, troubled by many, and why it was given up, if so."""

    down: bool = False
    troubled: bool = False
    given_up: str | None = None


FINE = Standing()
"""How an endpoint stands that has answered."""


@runtime_checkable
class Load(Protocol):
    """Admits the requests of all workers to one endpoint."""

    def admit_now(self) -> bool:
        """Admit a request and return true, if it is known at once that it may be sent."""
        ...

    async def admit(self) -> bool:
        """Admit a request once it may be sent, and return whether it is the one that probes.

        Raises:
            OutageError: the endpoint has been down for too long.
        """
        ...

    async def leave(self, ending: Ending, asker: str, message: str = "", *, probe: bool = False) -> Standing:
        """Note how a request of `asker` ended that was admitted, and what the endpoint said."""
        ...

    async def deny(self, message: str) -> str:
        """Give the endpoint up, as it said within a stream that it refuses until somebody acts; return why."""
        ...

    @property
    def counts_tokens(self) -> bool:
        """Whether `spent` is to be told the tokens of each reply."""
        ...

    def spent(self, tokens: int) -> None:
        """Note the tokens of a reply."""
        ...

    def reopen(self) -> None:
        """Let requests through again, if the endpoint was given up."""
        ...


@runtime_checkable
class Limits(Protocol):
    """What holds for all workers of a run together."""

    def load(self, endpoint: Endpoint, model: str = "") -> Load:
        """Return the load of an endpoint, the same for the same model at the same address.

        `model` is `provider/name`, by which it may have a rate.
        """
        ...

    def place(self, name: str, most: int) -> AbstractAsyncContextManager[object]:
        """Wait for one of the `most` places of this name, such as those of an agent, and hold it for the block."""
        ...
