"""What was announced as finished is there, whenever the power goes: every prefix of what was written is tried."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import pytest

from keval import RunError, open_run
from keval.store import journal
from keval_replay.frames import Frames, traffic_file
from tests.conftest import Project

CONFIG = """
name: power
dataset: {path: questions.jsonl}
agents: {mortal: {type: double/mortal, journal: asked.txt, fails: [c], healed: healed.txt}}
metrics: [double/length]
plugins: [double/announcing: {path: announced.txt}]
execution: {num_repetitions: 2, max_concurrent: 2, retry: {max_attempts: 1}}
"""
Operation: TypeAlias = tuple[Any, ...]


@attrs.define
class Inode:
    """A file's content, and as much of it as is on the disk for certain."""

    content: bytes = b""
    synced: bytes = b""


@attrs.define
class Disk:
    """Files by name, and the names that are on the disk for certain."""

    names: dict[Path, Inode] = attrs.field(factory=dict)
    synced: dict[Path, Inode] = attrs.field(factory=dict)
    announced: set[str] = attrs.field(factory=set)

    def apply(self, operation: Operation) -> None:
        match operation:
            case ("create", path):
                self.names[path] = Inode()
            case ("write", path, data):
                self.names[path].content += data
            case ("truncate", path, size):
                self.names[path].content = self.names[path].content[:size]
            case ("sync", path):
                self.names[path].synced = self.names[path].content
            case ("sync folder", folder):
                for path in [path for path in self.synced if path.parent == folder and path not in self.names]:
                    del self.synced[path]
                self.synced |= {path: inode for path, inode in self.names.items() if path.parent == folder}
            case ("rename", old, new):
                self.names[new] = self.names.pop(old)
            case ("remove", path):
                self.names.pop(path, None)
            case ("announce", trial):
                self.announced.add(trial)

    def lay_out(self, root: Path, *, power_lost: bool) -> None:
        """Write the files into a folder: all of them, or only what is on the disk for certain."""
        shutil.rmtree(root, ignore_errors=True)
        for path, inode in (self.synced if power_lost else self.names).items():
            there = root / path.relative_to(path.anchor)
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_bytes(inode.synced if power_lost else inode.content)


@pytest.fixture
def recorded(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Operation]]:
    """Every operation on a file below results/, in order; and what was announced."""
    operations: list[Operation] = []
    open_files: dict[int, Path] = {}
    results, announced = project.root / "results", project.root / "announced.txt"
    real_open, real_io_open, real_write, real_replace = os.open, io.open, os.write, os.replace
    real_fsync, real_truncate, real_unlink = os.fsync, os.ftruncate, os.unlink

    def is_ours(path: Any) -> bool:
        return isinstance(path, str | Path) and results in Path(path).absolute().parents and ".lock" not in str(path)

    class Watched(io.FileIO):
        """A file whose writes are recorded."""

        def __init__(self, file: Path | int, mode: str) -> None:
            path = open_files[file] if isinstance(file, int) else file
            existed = path.exists()
            super().__init__(file, mode)
            self.path = path
            open_files[self.fileno()] = path
            if not existed:
                operations.append(("create", path))
            elif "w" in mode:
                operations.append(("truncate", path, 0))

        def write(self, data: Any) -> int:
            operations.append(("write", self.path, bytes(data)))
            return super().write(data)

    def watched_io_open(file: Any, mode: str = "r", buffering: int = -1, *rest: Any, **more: Any) -> Any:
        if Path(str(file)) == announced or (isinstance(file, Path) and file.absolute() == announced):
            return Announced(announced)
        opened = isinstance(file, int) and is_ours(open_files.get(file))
        if not (opened or is_ours(file)) or "b" not in mode or not {"w", "a", "x"} & set(mode):
            return real_io_open(file, mode, buffering, *rest, **more)
        raw = Watched(file if opened else Path(file).absolute(), mode.replace("b", ""))
        return raw if buffering == 0 else io.BufferedWriter(raw)

    class Announced(io.StringIO):
        def __init__(self, path: Path) -> None:
            super().__init__()

        def write(self, text: str) -> int:
            operations.append(("announce", text.strip()))
            return len(text)

    def watched_open(named: Any, flags: int, *rest: Any, **more: Any) -> int:
        folder = open_files.get(more.get("dir_fd") or 0)
        path = folder / named if folder is not None else named
        existed = Path(path).exists() if isinstance(path, str | Path) else True
        file = real_open(named, flags, *rest, **more)
        open_files.pop(file, None)  # that of a file that was closed
        if is_ours(path) or (isinstance(path, Path) and path.is_dir()):
            open_files[file] = Path(path).absolute()
            if not existed:
                operations.append(("create", Path(path).absolute()))
        return file

    def watched_write(file: int, data: Any) -> int:
        written = real_write(file, data)
        if file in open_files:
            operations.append(("write", open_files[file], bytes(data[:written])))
        return written

    def watched_sync(file: int) -> None:
        real_fsync(file)
        path = open_files.get(file)
        if path is not None:
            operations.append(("sync folder" if path.is_dir() else "sync", path))

    def watched_truncate(file: int, size: int) -> None:
        real_truncate(file, size)
        if file in open_files:
            operations.append(("truncate", open_files[file], size))

    def watched_replace(old: Any, new: Any) -> None:
        real_replace(old, new)
        if is_ours(new):
            operations.append(("rename", Path(old).absolute(), Path(new).absolute()))

    def watched_unlink(path: Any, *rest: Any, **more: Any) -> None:
        real_unlink(path, *rest, **more)
        if is_ours(path):
            operations.append(("remove", Path(path).absolute()))

    monkeypatch.setattr(io, "open", watched_io_open)
    for name, watched in (
        ("open", watched_open),
        ("write", watched_write),
        ("fsync", watched_sync),
        ("ftruncate", watched_truncate),
        ("replace", watched_replace),
        ("unlink", watched_unlink),
    ):
        monkeypatch.setattr(os, name, watched)
    monkeypatch.setattr(journal, "_sync", watched_sync)
    yield operations
    monkeypatch.undo()


def first_run(project: Project) -> None:
    assert 3 == project.keval("run", "eval.yaml", "--record").code


def resumed_run(project: Project) -> None:
    assert 3 == project.keval("run", "eval.yaml", "--record").code
    (project.root / "healed.txt").touch()
    assert 0 == project.keval("resume", "latest", "--retry-failed", "--add-repetitions", "1").code
    assert 0 == project.keval("score", "latest").code


@pytest.mark.parametrize("use", [first_run, pytest.param(resumed_run, marks=pytest.mark.slow)])
def test_what_was_announced_is_there_wherever_the_power_goes(
    project: Project,
    recorded: list[Operation],
    tmp_path_factory: pytest.TempPathFactory,
    use: Callable[[Project], None],
    record_property: Callable[[str, object], None],
) -> None:
    samples = "".join(json.dumps({"id": name, "question": f"{name}?"}) + "\n" for name in "abcd")
    project.write(eval_yaml=CONFIG, questions_jsonl=samples)

    use(project)

    kinds = [operation[0] for operation in recorded]
    assert {"create", "write", "sync", "sync folder", "rename", "announce"} <= {*kinds}
    disk, opened = Disk(), 0
    for operation in [*recorded]:
        disk.apply(operation)
        for power_lost in (False, True):
            root = tmp_path_factory.getbasetemp() / "again"
            disk.lay_out(root, power_lost=power_lost)
            found = {trial for trial, times in trials_in(root / project.root.relative_to("/") / "results")}
            assert disk.announced <= found, (operation, power_lost)
            opened += bool(found)
    assert opened > len(disk.announced)
    record_property("power cuts", 2 * len(recorded))


def trials_in(results: Path) -> list[tuple[str, bool]]:
    """The trials of the run, and those of failures that were set aside; none where there is no run yet.

    Each must have its traffic.
    """
    try:
        run = open_run("latest", root=results)
    except RunError:
        return []
    retried = run.path / "retried.jsonl"
    aside = [json.loads(line) for line in retried.read_bytes().split(b"\n")[:-1]] if retried.exists() else []
    run.summary()
    finished = run.trial_ids() | {line["id"] for line in aside}
    if finished:
        frames = Frames(traffic_file(run.path))
        kept = {key.trial for key in frames.keys if frames.read(key, bytes) is not None}
        assert finished <= kept
    return [*((trial.id, True) for trial in run.trials()), *((line["id"], False) for line in aside)]
