"""Looking at a run while it runs: who looks touches `.watched`, and the run tells in `live.json` what happens just now.

Neither file is a part of the run; it removes both when it ends.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

import attrs

from keval.records.manifest import WorkerEntry
from keval.records.trial import FailureTally
from keval.seams.live_events import EventKind
from keval.store.serialization import dump

LIVE_FILE = "live.json"
WATCHED_FILE = ".watched"


@attrs.frozen
class TrialInFlight:
    """A trial that has begun, at the Unix time `since`, and is not on disk yet.

    `attempt` counts from 1, `doing` is the kind of the latest live event, of the Unix time `at`, and `tool` the tool
    that is being called; all are `None` as long as nothing was heard of the trial.
    """

    trial: str
    agent: str
    condition: str
    sample: str
    repetition: int
    since: float
    attempt: int | None = None
    doing: EventKind | None = None
    at: float | None = None
    tool: str | None = None


@attrs.frozen
class ErrorCount:
    """Something that went wrong so many times: its kind, and what it said the first time."""

    kind: str
    count: int
    message: str = ""


@attrs.frozen
class EndpointPace:
    """How many requests at once the endpoint of a model is given (`None`: any number), and why it does not answer."""

    model: str
    at_once: int | None = None
    down: bool = False
    trouble: str | None = None


@attrs.frozen
class LiveState:
    """What a running run is doing, at the Unix time `at`.

    Its stage is `trials` until the last one has ended, then `scoring`. Since it was begun or resumed, `finished` trials
    were written, `failed` ones among them, and `scored` ones have their scores. `retries` are attempts that failed and
    `refusals` model requests that were refused, of the trials in flight, since somebody has been looking: those of
    finished trials are in trials.jsonl. `paces` are of the endpoints that were given fewer requests, or went down, and
    `workers` those of an executor that runs trials elsewhere.
    """

    at: float
    stage: Literal["trials", "scoring"]
    finished: int
    failed: int
    scored: int
    in_flight: tuple[TrialInFlight, ...] = ()
    retries: tuple[ErrorCount, ...] = ()
    refusals: tuple[ErrorCount, ...] = ()
    paces: tuple[EndpointPace, ...] = ()
    workers: tuple[WorkerEntry, ...] = ()


def refusal_kind(status: int | None) -> str:
    """Name the kind of a model request that was refused, by its HTTP status."""
    return "no response" if status is None else f"HTTP {status}"


def error_counts(*tallies: FailureTally) -> tuple[ErrorCount, ...]:
    """Return what tallies counted, the most frequent first."""
    counts: Counter[str] = Counter()
    messages: dict[str, str] = {}
    for tally in tallies:
        counts.update(tally.counts)
        messages = {**tally.messages, **messages}
    return tuple(ErrorCount(kind, count, messages.get(kind, "")) for kind, count in counts.most_common())


def remove_live_files(folder: Path) -> None:
    """Remove both files. Raises OSError."""
    for name in (LIVE_FILE, WATCHED_FILE):
        (folder / name).unlink(missing_ok=True)


def write_live(folder: Path, state: LiveState) -> None:
    """Write what a run is doing, whole or not at all; that survives no power cut, and need not. Raises OSError."""
    unfinished = folder / f".{LIVE_FILE}.unfinished"
    unfinished.unlink(missing_ok=True)
    with unfinished.open("xb") as file:
        file.write(dump(state))
    unfinished.replace(folder / LIVE_FILE)
