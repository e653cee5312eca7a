"""What is told of the end of a workspace, also of one that the agent has made hostile."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from keval.plugin import Blob, EndState, TrialError
from keval.records.end_state import Artifact
from keval_workspace.folder import Folder
from tests.plugins.workspace.attempts import TRIAL, attempt, changes, trial_folders, write

COUNTED = " could not be read; what was there before counts as changed"
OLD = {"a.txt": "a\n", "b.txt": "b\n", "inner/c.txt": "c\n", "inner/deep/d.txt": "d\n"}


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test ends with no folder of a trial left."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("temporary")))
    yield
    assert set() == trial_folders()


@pytest.fixture
def no_root(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Be somebody for whom modes of files hold."""
    if os.geteuid():
        yield
        return
    attempt(Folder(files=OLD), lambda _: None)  # what this imports may be where only root can read
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.chown(folder, 65534, 65534)
        monkeypatch.setattr("tempfile.tempdir", folder)
        os.seteuid(65534)
        try:
            yield
            assert set() == trial_folders()
        finally:
            os.seteuid(0)


def outside(tmp_path: Path) -> Path:
    """A folder beside, which nothing may touch."""
    folder = write(tmp_path / "outside", {"secret.txt": "secret\n", "more/secret.txt": "secret\n"})
    (folder / "more").chmod(0o500)
    return folder


def test_changes_that_keep_times_and_sizes_are_seen() -> None:
    def work(folder: Path) -> None:
        before = (folder / "a.txt").stat()
        with (folder / "a.txt").open("r+b") as file:
            file.write(b"A")
        os.utime(folder / "a.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
        (folder / "b.txt").chmod(0o600)
        (folder / "inner" / "c.txt").rename(folder / "moved.txt")
        big = (folder / "big").stat()
        with (folder / "big").open("r+b") as file:
            file.seek(150_000)
            file.write(b"y")
        os.utime(folder / "big", ns=(big.st_atime_ns, big.st_mtime_ns))

    end = attempt(Folder(files={**OLD, "big": "x" * 300_000, "same": "x" * 300_000}), work)

    assert {
        "a.txt": "changed",
        "b.txt": "changed",
        "big": "changed",
        "inner/c.txt": "deleted",
        "moved.txt": "added",
    } == changes(end)
    assert "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+A\n" in end.diff
    assert "diff --git a/b.txt b/b.txt\nold mode 100644\nnew mode 100600\n" in end.diff
    assert "Binary files a/big and b/big differ\n" in end.diff


def test_what_is_put_into_the_folder_before_the_agent_begins_is_no_change() -> None:
    async def work() -> EndState:
        async with Folder().open(TRIAL) as workspace:
            write(workspace.folder, {"AGENTS.md": "Be brief.\n"})
            await workspace.begin()
            write(workspace.folder, {"answer.txt": "42\n"})
            return await workspace.end(lambda _: None)

    assert {"answer.txt": "added"} == changes(asyncio.run(work()))


def test_artifacts_are_kept_whole_with_the_reason_for_those_that_are_not(tmp_path: Path) -> None:
    secrets = outside(tmp_path)
    kept: dict[str, Blob] = {}

    def work(folder: Path) -> None:
        write(folder, {"out/report.json": "{}", "out/deep/table.csv": "a,b\n", "out/large.bin": "x" * 2000})
        (folder / "out" / "link.json").symlink_to(secrets / "secret.txt")
        os.mkfifo(folder / "out" / "pipe.json")

    def keep(blob: Blob) -> None:
        kept[blob.sha256] = blob

    folder = Folder(artifacts=("out/**", "*.md", "out/*.json"), max_artifact_bytes="1 KB")
    end = attempt(folder, work, keep)

    assert Artifact("out/deep/table.csv", 4, "text/csv", Blob.of(b"a,b\n", "").sha256) == end.artifacts[0]
    assert [
        ("out/deep/table.csv", None),
        ("out/large.bin", "all artifacts together may have 1,000 bytes (`max_artifact_bytes`)"),
        ("out/link.json", "it is a link, which is not followed"),
        ("out/pipe.json", "it is no regular file"),
        ("out/report.json", None),
    ] == [(artifact.path, artifact.left_out) for artifact in end.artifacts]
    assert {b"a,b\n", b"{}"} == {blob.content for blob in kept.values()}
    assert ("no file matches '*.md' of `artifacts`",) == end.notes


def test_a_full_disk_at_the_begin_fails_the_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keval_workspace.end.tempfile.TemporaryFile", lambda: open("/dev/full", "r+b"))  # noqa: SIM115

    async def begin(folder: Folder) -> None:
        async with folder.open(TRIAL) as workspace:
            await workspace.begin()

    with pytest.raises(TrialError, match="cannot be made: No space left on device") as raised:
        asyncio.run(begin(Folder(files={"a": "x" * 100_000})))

    assert "context" == raised.value.stage


def test_names_that_are_hostile_are_written_as_git_writes_them() -> None:
    names = [b"-rf", b"a\nb", b"\xff\xfe", b"\x1b[31mred", "\u202egnp.exe".encode(), b"n" * 255, b"a b", b'"q"', b"\\"]

    def work(folder: Path) -> None:
        for name in names:
            (Path(os.fsdecode(os.fsencode(folder) + b"/" + name))).write_bytes(b"x")

    end = attempt(Folder(artifacts=("*",)), work)

    told = {'"a\\nb"', "-rf", '"\\377\\376"', '"\\033[31mred"', '"\\342\\200\\256gnp.exe"', "n" * 255, "a b"}
    assert {*told, '"\\"q\\""', '"\\\\"'} == {*changes(end)}
    assert {*changes(end)} == {artifact.path for artifact in end.artifacts}
    assert all(line.isprintable() or line.endswith("\t") for line in end.diff.splitlines())


def replaced_by_link(folder: Path, target: Path) -> None:
    shutil.rmtree(folder)
    folder.symlink_to(target)


def moved_behind_link(folder: Path, target: Path) -> None:
    folder.parent.rename(folder.parent.with_name("keval-trial-moved"))
    folder.parent.symlink_to(target)


def a_file_behind_link(folder: Path, target: Path) -> None:
    (folder / "a.txt").unlink()
    (folder / "a.txt").symlink_to(target / "secret.txt")


def pipes_and_sockets(folder: Path, _: Path) -> None:
    (folder / "a.txt").unlink()
    os.mkfifo(folder / "a.txt")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(folder / "s"))


def a_file_for_a_folder(folder: Path, _: Path) -> None:
    shutil.rmtree(folder / "inner")
    write(folder, {"inner": "a file"})


HOSTILE: dict[str, Callable[[Path, Path], object]] = {
    "the folder removed": lambda folder, _: shutil.rmtree(folder),
    "the folder replaced by a link": replaced_by_link,
    "a folder replaced by a link": lambda folder, target: replaced_by_link(folder / "inner", target),
    "a file replaced by a link": a_file_behind_link,
    "pipes and sockets": pipes_and_sockets,
    "a file that is very large": lambda folder, _: os.truncate(folder / "a.txt", 1 << 40),
    "a file in place of a folder": a_file_for_a_folder,
}
EXPECTED = {
    "the folder removed": dict.fromkeys(OLD, "deleted"),
    "the folder replaced by a link": dict.fromkeys(OLD, "deleted"),
    "a folder replaced by a link": {
        "inner": "added",
        "inner/c.txt": "deleted",
        "inner/deep/d.txt": "deleted",
    },
    "a file replaced by a link": {"a.txt": "changed"},
    "pipes and sockets": {"a.txt": "changed", "s": "added"},
    "a file that is very large": {"a.txt": "changed"},
    "a file in place of a folder": {"inner": "added", "inner/c.txt": "deleted", "inner/deep/d.txt": "deleted"},
}


@pytest.mark.parametrize("case", HOSTILE)
def test_nothing_outside_of_a_hostile_folder_is_read_or_touched(case: str, tmp_path: Path) -> None:
    secrets = outside(tmp_path)
    before = [(path, path.lstat()) for path in sorted(secrets.rglob("*"))]
    kept: list[Blob] = []

    end = attempt(Folder(files=OLD, artifacts=("**",)), lambda folder: HOSTILE[case](folder, secrets), kept.append)

    assert EXPECTED[case] == changes(end)
    assert "secret\n" not in end.diff
    assert b"secret\n" not in [blob.content for blob in kept]
    assert before == [(path, path.lstat()) for path in sorted(secrets.rglob("*"))]


def test_a_folder_that_was_moved_away_is_still_the_one_that_is_compared(tmp_path: Path) -> None:
    secrets = write(outside(tmp_path), {"work/a.txt": "secret\n"})

    end = attempt(Folder(files=OLD), lambda folder: moved_behind_link(folder, secrets))

    assert {} == changes(end)
    assert "secret\n" == (secrets / "work" / "a.txt").read_text()
    (moved,) = Path(tempfile.gettempdir()).iterdir()
    shutil.rmtree(moved)


@pytest.mark.usefixtures("no_root")
def test_what_nobody_may_read_counts_as_changed_and_is_removed() -> None:
    def work(folder: Path) -> None:
        write(folder, {"inner/deep/new.txt": "new", "out/x": "x"})
        (folder / "inner" / "deep").chmod(0o000)
        (folder / "inner").chmod(0o400)
        (folder / "a.txt").chmod(0o000)
        (folder / "out").chmod(0o000)

    end = attempt(Folder(files=OLD, artifacts=("*.txt", "out/**")), work)

    assert {"a.txt": "changed", "inner/c.txt": "changed", "inner/deep/d.txt": "changed"} == changes(end)
    assert [("a.txt", "it cannot be read: Permission denied"), ("b.txt", None)] == [
        (artifact.path, artifact.left_out) for artifact in end.artifacts
    ]
    assert "Binary files a/inner/c.txt and b/inner/c.txt differ\n" in end.diff
    assert (
        "inner: Permission denied, inner/deep: Permission denied, out: Permission denied" + COUNTED,
        "no file matches 'out/**' of `artifacts`",
    ) == end.notes


def test_a_tree_without_a_bound_is_told_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keval_workspace.end._MOST_ADDED", 100)
    monkeypatch.setattr("keval_workspace.end._MOST_ARTIFACTS", 50)

    def work(folder: Path) -> None:
        for number in range(110):
            os.close(os.open(folder / f"{number}.txt", os.O_CREAT))
        at = os.open(folder, os.O_RDONLY)
        for _ in range(1_100):  # deeper than a path can say, a stack hold, or descriptors reach
            os.mkdir("deep", dir_fd=at)
            inner = os.open("deep", os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = inner
        os.close(at)

    end = attempt(Folder(files=OLD, artifacts=("**",)), work)

    assert 100 == len(end.changes)
    assert (
        "/".join(["deep"] * 201) + ": it lies deeper than 200 folders" + COUNTED,
        "10 more files were added, which are not listed",
        "64 more files match `artifacts` and are not kept",
    ) == end.notes


def test_the_diff_is_cut_and_says_by_how_much() -> None:
    def work(folder: Path) -> None:
        write(folder, {f"{number}.txt": "line\n" * 150 for number in range(40)})

    end = attempt(Folder(max_diff_bytes="1 KB"), work)

    assert 40 == len(end.changes)
    assert 0 < len(end.diff) <= 1000
    assert end.diff.endswith("\n")
    assert end.diff_cut > 10_000
    assert ["more are not in the diff, which would be too long"] == [note[-49:] for note in end.notes]


def test_a_process_that_the_agent_left_may_go_on_writing() -> None:
    busy = (
        "import itertools, os, sys\n"
        "for number in itertools.count():\n"
        "    open(f'{number % 50}.txt', 'w').write('x' * (number % 1000))\n"
        "    os.makedirs(f'd{number % 7}/e', exist_ok=True)\n"
        "    if number % 3 == 0: os.rename(f'd{number % 7}', f'r{number}')\n"
        "    if number == 100: print(flush=True)\n"
    )
    left: list[subprocess.Popen[bytes]] = []

    def work(folder: Path) -> None:
        left.append(subprocess.Popen([sys.executable, "-c", busy], cwd=folder, stdout=subprocess.PIPE, stderr=-3))
        assert left[0].stdout is not None
        left[0].stdout.readline()

    async def run() -> EndState:
        async with Folder(files=OLD, artifacts=("**",)).open(TRIAL) as workspace:
            await workspace.begin()
            await asyncio.to_thread(work, workspace.folder)
            end = await workspace.end(lambda _: None)
            left[0].kill()
            left[0].communicate()
            return end

    assert {"added"} == {change.kind for change in asyncio.run(run()).changes}
