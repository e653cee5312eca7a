"""How workspaces are made, and what is said of options by which none can be."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from keval.plugin import PreflightError, TrialError
from keval_workspace.end import Start
from keval_workspace.folder import CopiedFile, Folder, Git
from tests.plugins.workspace.attempts import TRIAL, attempt, changes, contents, git, trial_folders, write


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Every test ends with no folder of a trial left."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("temporary")))
    yield
    assert set() == trial_folders()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A Git repository with three commits, of which the second has the tag `bug`."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    for number in (1, 2, 3):
        write(folder, {"main.py": f"print({number})\n", f"{number}/data.txt": f"{number}\n"})
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", f"Commit {number}")
        if number == 2:
            git(folder, "tag", "bug")
    return folder


def test_without_options_the_workspace_is_an_empty_folder_that_nobody_else_may_read() -> None:
    def look(folder: Path) -> None:
        assert [] == [*folder.iterdir()]
        assert 0o700 == folder.parent.stat().st_mode & 0o777
        assert folder.parent.name.startswith("keval-trial-")
        assert "work" == folder.name

    assert () == attempt(Folder(), look).changes


def test_a_copy_has_files_modes_and_links_and_is_not_the_source(tmp_path: Path) -> None:
    source = write(tmp_path / "source", {"run.sh": "#!/bin/sh\n", "a b/c.txt": "c", "frozen/x": "x"})
    (source / "run.sh").chmod(0o755)
    (source / "link").symlink_to("a b/c.txt")
    (source / "nowhere").symlink_to("/nowhere/at/all")
    os.mkfifo(source / "pipe")
    (source / "frozen").chmod(0o555)
    os.utime(source / "run.sh", (1, 1))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(source / "socket"))
    (tmp_path / "chart.bin").write_bytes(b"\xff\0")
    copied = CopiedFile(tmp_path / "chart.bin")
    folder = Folder(copy=source, files={"new/notes.md": "Notes\n", "link": "no link\n", "new/chart": copied})

    def work(at: Path) -> None:
        assert b"\xff\0" == (at / "new/chart").read_bytes()
        assert {"a b", "frozen", "link", "new", "nowhere", "run.sh"} == {path.name for path in at.iterdir()}
        assert (0o755, 1.0) == ((at / "run.sh").stat().st_mode & 0o777, (at / "run.sh").stat().st_mtime)
        assert 0o555 == (at / "frozen").stat().st_mode & 0o777
        assert ("/nowhere/at/all", "no link\n") == (os.readlink(at / "nowhere"), (at / "link").read_text())
        write(at, {"run.sh": "changed", "a b/c.txt": "changed"})

    end = attempt(folder, work)

    assert {"run.sh": "changed", "a b/c.txt": "changed"} == changes(end)
    assert {"files": 7, "bytes": 43} == end.facts
    assert "c" == (source / "a b" / "c.txt").read_text()


def test_each_trial_begins_with_what_was_there_when_the_run_began(tmp_path: Path) -> None:
    source = write(tmp_path, {"a.txt": "first"})
    folder = Folder(copy=source, setup=("cat a.txt > seen",))

    async def work() -> list[dict[str, str]]:
        await folder.prepare()
        write(source, {"a.txt": "second", "b.txt": "new"})
        try:
            async with folder.open(TRIAL) as one, folder.open(TRIAL) as other:
                write(one.folder, {"a.txt": "mine"})
                return [contents(one.folder), contents(other.folder)]
        finally:
            await folder.aclose()

    assert [{"a.txt": "mine", "seen": "first"}, {"a.txt": "first", "seen": "first"}] == asyncio.run(work())


def test_a_commit_is_a_repository_of_its_own_without_what_came_later(repository: Path) -> None:
    folder = Folder(copy=repository, git=Git("bug"), files={"task.md": "Mend it."})
    before = git(repository, "for-each-ref")
    told: dict[str, Any] = {}

    def work(at: Path) -> None:
        told["log"] = git(at, "log", "--all", "--format=%s")
        told["status"] = git(at, "status", "--short", "--branch")
        told["elsewhere"] = git(at, "remote") + git(at, "tag")
        told["objects"] = git(at, "cat-file", "--batch-check", "--batch-all-objects", "--unordered").count(" commit ")
        write(at, {"main.py": "print('mended')\n"})
        git(at, "commit", "-q", "-a", "-m", "Mend")
        git(at, "gc", "-q", "--prune=now", "--aggressive")

    end = attempt(folder, work)

    assert {
        "log": "Commit 2\nCommit 1",
        "status": "## main\n?? task.md",
        "elsewhere": "",
        "objects": 2,
    } == told
    assert {"main.py": "changed"} == changes(end)
    assert before == git(repository, "for-each-ref")
    assert "" == git(repository, "fsck")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_commit_of_a_repository_of_another_user_is_checked_out(repository: Path) -> None:
    for path in (repository, *repository.rglob("*")):
        os.chown(path, 65534, 65534)
    folder = Folder(copy=repository, git=Git("bug"))

    assert [] == [*folder.check()]
    assert () == attempt(folder, lambda at: git(at, "status")).changes


def test_a_description_tells_what_every_trial_begins_with(repository: Path, tmp_path: Path) -> None:
    def described(folder: Folder) -> dict[str, Any]:
        async def prepare() -> dict[str, Any]:
            await folder.prepare()
            try:
                return dict(folder.describe())
            finally:
                await folder.aclose()

        return asyncio.run(prepare())

    one = described(Folder(copy=repository, git=Git("bug")))
    by_hash = described(Folder(copy=repository, git=Git(git(repository, "rev-parse", "bug"))))
    other = described(Folder(copy=repository, git=Git("trunk")))

    expected = {"copy": "repository", "files": 3, "commit": git(repository, "rev-parse", "bug")}
    assert expected == {key: one[key] for key in expected}
    assert one == by_hash
    assert one["digest"] != other["digest"]
    assert {} == Folder().describe()


def test_setup_commands_have_nothing_of_the_user_and_leave_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-user")
    monkeypatch.setenv("HOME", "/home/of-the-user")
    lasting = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    folder = Folder(
        setup=(
            "env | cut -d= -f1 > names; echo $HOME > home; pwd > where",
            (sys.executable, "-c", "import sys; open('words', 'w').write(sys.argv[1])", "a b $HOME"),
            f'"{sys.executable}" -c "{lasting}" > pid & while [ ! -s pid ]; do sleep 0.01; done',
        )
    )

    def look(at: Path) -> None:
        assert str(at) == (at / "where").read_text().strip()
        assert str(at.parent / "home") == (at / "home").read_text().strip()
        assert not {"OPENAI_API_KEY"} & {*(at / "names").read_text().split()}
        assert "a b $HOME" == (at / "words").read_text()
        with pytest.raises(ProcessLookupError):
            os.kill(int((at / "pid").read_text()), 0)

    assert () == attempt(folder, look).changes


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"setup": ("echo one", "echo it lacks a pump >&2; exit 3")},
            "the setup command `echo it lacks a pump >&2; exit 3` ended with exit status 3; its output ends:\nit lacks",
        ),
        (
            {"setup": (("sleep", "60"),), "setup_timeout_seconds": 0.1},
            "the setup command `sleep 60` did not end within 0.1 s; raise `setup_timeout_seconds`; it wrote nothing",
        ),
        ({"setup": (("no-such-program",),)}, "ended with exit status 127; its output ends:\n"),
        ({"files": {"n" * 256: "x"}}, "File name too long"),
        ({"files": {"out/x": "x"}}, "out/x: a link on its way leads out of the workspace"),
        ({"setup": ("touch d e f",), "max_files": 6}, "it has more than 6 files"),
        ({"max_files": 2}, "it has more than 2 files; give less to copy, or raise `max_files`"),
        ({"max_bytes": "1 KB"}, "it has more than 1,000 bytes; give less to copy, or raise `max_bytes`"),
    ],
)
def test_a_workspace_that_cannot_be_made_is_said_before_the_first_trial(
    tmp_path: Path, options: dict[str, Any], told: str
) -> None:
    source = write(tmp_path / "source", {"a": "x" * 900, "b": "x" * 900, "c": ""})
    (source / "out").symlink_to(tmp_path)
    folder = Folder(copy=source, **options)

    assert [] == [*folder.check()]
    with pytest.raises(PreflightError) as raised:
        asyncio.run(folder.prepare())

    assert told in str(raised.value)
    assert {"source"} == {path.name for path in tmp_path.iterdir()}


def test_a_workspace_that_cannot_be_made_later_fails_the_attempt(tmp_path: Path) -> None:
    source = write(tmp_path / "source", {"a": "a"})

    async def work() -> None:
        async with Folder(copy=source, setup=("exit 1",)).open(TRIAL):
            raise AssertionError

    with pytest.raises(TrialError) as raised:
        asyncio.run(work())

    assert ("context", "workspace", True) == (raised.value.stage, raised.value.kind, raised.value.retryable)


def test_a_cancelled_attempt_leaves_nothing(tmp_path: Path) -> None:
    source = write(tmp_path / "source", {f"{number}": "x" for number in range(100)})

    async def work(seconds: float, setup: tuple[str, ...]) -> None:
        async with asyncio.timeout(seconds), Folder(copy=source, setup=setup).open(TRIAL) as workspace:
            await workspace.begin()
            await asyncio.Event().wait()

    for seconds, setup in ((0.0, ()), (0.01, ()), (0.2, ()), (0.2, ("sleep 60",))):
        with pytest.raises(TimeoutError):
            asyncio.run(work(seconds, setup))


def test_an_attempt_that_is_cancelled_as_its_workspace_is_noted_closes_what_was_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[Start] = []
    of = Start.of

    def cancelling(*given: Any) -> Start:
        loop.call_soon_threadsafe(task.cancel)
        noted.append(of(*given))
        return noted[-1]

    async def work() -> None:
        async with Folder(copy=write(tmp_path / "source", {"a": "a"})).open(TRIAL) as workspace:
            await workspace.begin()

    monkeypatch.setattr(Start, "of", cancelling)
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        task = loop.create_task(work())
        with pytest.raises(asyncio.CancelledError):
            loop.run_until_complete(task)

    assert [True] == [start.store.closed for start in noted]


def test_options_that_are_wrong_are_named_by_their_place(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", str(tmp_path / "worktree"))
    write(tmp_path, {"file.txt": ""})
    inner = repository / "1"

    def told(**options: Any) -> dict[tuple[str | int, ...], str]:
        return {error.path: error.message for error in Folder(**options).check()}

    assert {("copy",): f"{tmp_path}/none is not there; give the folder that the workspace begins with"} == told(
        copy=tmp_path / "none"
    )
    assert {("copy",): f"{tmp_path}/file.txt is no folder; give the folder that the workspace begins with"} == told(
        copy=tmp_path / "file.txt"
    )
    assert {("git",): "`git` has no repository; add `copy:` with the folder of the Git repository"} == told(
        git=Git("HEAD")
    )
    assert {("git", "commit"): f"{repository} has no commit 'bugs'; did you mean 'bug'?"} == told(
        copy=repository, git=Git("bugs")
    )
    assert {("git", "commit"): f"{repository} has no commit '--help'"} == told(copy=repository, git=Git("--help"))
    assert {("copy",): f"{inner} is a folder within a Git repository; give the folder of the repository"} == told(
        copy=inner, git=Git("HEAD")
    )
    assert "a worktree, whose repository is elsewhere" in told(copy=tmp_path / "worktree")["copy",]
    assert {} == told(copy=tmp_path / "worktree", git=Git("HEAD"))
    assert [("copy",)] == [*told(copy=tmp_path, git=Git("HEAD"))]
    assert [("files", "/etc/x"), ("files", "../x"), ("files", "a/../../x"), ("files", ".")] == [
        *told(files={"/etc/x": "", "../x": "", "a/../../x": "", ".": "", "a/b": ""})
    ]
    assert [("artifacts", 0), ("artifacts", 1), ("artifacts", 2), ("artifacts", 3)] == [
        *told(artifacts=("/etc/*", "../*", "out/", ".git/config", "out/**"))
    ]
    assert {("setup", 1): "the command is empty; write one, or remove the entry"} == told(setup=("true", " "))
