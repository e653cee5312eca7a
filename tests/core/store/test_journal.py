"""The journal: a line is on disk before its writer goes on, and many writers share one sync."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest

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
