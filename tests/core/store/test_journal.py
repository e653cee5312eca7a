"""The journal: a line is on disk before its writer goes on, and many writers share one sync."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from pathlib import Path

import pytest

from keval.errors import RunError
from keval.store import journal
from keval.store.journal import Journal
from tests.conftest import Project


def test_a_line_is_on_disk_before_its_writer_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    seen: list[bool] = []

    async def write(journal: Journal, name: str) -> None:
        await journal.append(name.encode())
        seen.append(name.encode() + b"\n" in path.read_bytes())

    async def scenario() -> None:
        async with Journal(path) as journal:
            await asyncio.gather(*(write(journal, f"line {number}") for number in range(200)))

    asyncio.run(scenario())

    assert [True] * 200 == seen
    assert sorted(f"line {number}" for number in range(200)) == sorted(path.read_text(encoding="utf-8").splitlines())


def test_writers_that_come_together_share_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[int] = []
    sync = journal._sync

    def counted(file: int) -> None:
        syncs.append(file)
        sync(file)

    monkeypatch.setattr(journal, "_sync", counted)

    async def scenario() -> None:
        async with Journal(tmp_path / "lines") as journal:
            await asyncio.gather(*(journal.append(b"x") for _ in range(500)))

    asyncio.run(scenario())

    assert 0 < len(syncs) <= 3


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RunError("full"), MemoryError("none left")])
def test_nothing_is_written_after_a_batch_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    path = tmp_path / "lines"
    begun, failing = threading.Event(), threading.Event()

    def torn(file: int, data: bytes) -> int:
        monkeypatch.undo()
        os.write(file, data[:2])
        begun.set()
        failing.wait(10)
        raise error

    async def scenario() -> list[object]:
        async with Journal(path) as journal, asyncio.timeout(10):
            first = asyncio.create_task(journal.append(b"first"))
            await asyncio.to_thread(begun.wait, 10)
            meanwhile = asyncio.create_task(journal.append(b"meanwhile"))
            await asyncio.sleep(0)
            failing.set()
            failed = await asyncio.gather(first, meanwhile, return_exceptions=True)
            return [*failed, *await asyncio.gather(journal.append(b"later"), return_exceptions=True)]

    monkeypatch.setattr(os, "write", torn)
    outcomes = asyncio.run(scenario())

    expected = RunError if isinstance(error, OSError) else type(error)
    assert [expected] * 3 == [type(outcome) for outcome in outcomes]
    assert b"fi" == path.read_bytes()


def test_a_disk_that_fills_up_is_explained_and_loses_nothing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write(
        eval_yaml="""
        dataset: {path: questions.jsonl}
        agents: {scripted: {}}
        conditions: {baseline: {}}
        metrics: [double/length]
        execution: {max_concurrent: 1}
        """,
        questions_jsonl='{"id": "a", "question": "How?"}\n{"id": "b", "question": "Who?"}\n',
    )
    write = os.write
    written: list[bytes] = []

    def filling(file: int, data: bytes) -> int:
        if not stat.S_ISREG(os.fstat(file).st_mode):  # a pipe has room
            return write(file, data)
        if written:
            raise OSError(28, "No space left on device")
        written.append(data)
        return write(file, data)

    monkeypatch.setattr(os, "write", filling)
    outcome = project.keval("run", "eval.yaml")

    assert (2, 1) == (outcome.code, len(project.lines("trials.jsonl")))
    assert "cannot be written: [Errno 28] No space left on device; what was written before is kept" in outcome.stderr
