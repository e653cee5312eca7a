"""Plugins whose own cost is next to nothing, so that what is measured is keval."""

import asyncio
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from zlib import crc32

import attrs

from keval import Rubric, Sample, Score, Transcript, Trial
from keval.plugin import Context, JudgeContext, hookimpl
from keval.store import journal

PLAIN = Rubric("bench/plain", "Is it there?", {1: "no", 2: "yes"})
_REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}"


@attrs.frozen
class Instant:
    """Answers at once, without a model."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        with context.builder.turn(sample.question):
            context.builder.said("Yes.")
        return context.builder.transcript()


@attrs.frozen
class One:
    """Scores 1."""

    def score(self, trial: Trial) -> Score:
        return Score(1.0, "one")


class Unsynced:
    """Keeps keval from syncing what it writes, to measure what that costs."""

    @hookimpl
    def keval_run_started(self) -> None:
        os.fsync = journal._sync = lambda fd: None


@attrs.define
class Cpu:
    """Writes the CPU time of keval's own process between the first trial and the last score to `cpu.txt`."""

    _began: float = 0.0

    @hookimpl
    def keval_run_started(self) -> None:
        self._began = time.process_time()

    @hookimpl
    def keval_run_finished(self) -> None:
        Path("cpu.txt").write_text(str(time.process_time() - self._began), encoding="utf-8")


@attrs.define
class Clock:
    """Writes when the first and the last trial was there, or was scored, and how many were, to `clock.json`."""

    _times: dict[str, list[float]] = attrs.field(factory=dict)

    @hookimpl
    def keval_trial_finished(self) -> None:
        self._note("finished")

    @hookimpl
    def keval_trial_scored(self) -> None:
        self._note("scored")

    @hookimpl
    def keval_run_finished(self) -> None:
        Path("clock.json").write_text(json.dumps(self._times), encoding="utf-8")

    def _note(self, what: str) -> None:
        first, _, count = self._times.get(what, (time.time(), 0, 0))
        self._times[what] = [first, time.time(), count + 1]


@attrs.define
class _Connections:
    """Kept-alive connections to one port, over plain asyncio."""

    port: int
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = attrs.field(factory=list)

    async def post(self) -> bytes:
        reader, writer = self.idle.pop() if self.idle else await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(_REQUEST)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        self.idle.append((reader, writer))
        return body

    def close(self) -> None:
        for _, writer in self.idle:
            writer.close()


@attrs.define
class OverHttp:
    """Answers after one request to the model at `port`."""

    port: int
    _connections: _Connections = attrs.field(
        default=attrs.Factory(lambda self: _Connections(self.port), takes_self=True), init=False
    )

    async def run(self, sample: Sample, context: Context) -> Transcript:
        with context.builder.turn(sample.question):
            context.builder.said((await self._connections.post()).decode())
        return context.builder.transcript()

    async def aclose(self) -> None:
        self._connections.close()


@attrs.define
class JudgeOverHttp:
    """Grades after one request to the model at `port`."""

    port: int
    _connections: _Connections = attrs.field(
        default=attrs.Factory(lambda self: _Connections(self.port), takes_self=True), init=False
    )

    async def grade(self, trial: Trial, rubrics: Sequence[Rubric], context: JudgeContext) -> Mapping[str, Score]:
        await self._connections.post()
        return {rubric.name: Score(2.0, "there") for rubric in rubrics}

    async def aclose(self) -> None:
        self._connections.close()


@attrs.frozen
class Scattered:
    """Scores a fifth of the trials each with 0, 0.25, 0.5, 0.75 and 1, by their ids."""

    def score(self, trial: Trial) -> Score:
        return Score(crc32(trial.id.encode()) % 5 / 4, "by its id")
