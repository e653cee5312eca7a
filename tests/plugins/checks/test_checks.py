"""What each check finds of what a trial left, whatever the agent put there."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from keval import Sample, Trial
from keval.plugin import Check, EndOfTrial, Finding, TrialError
from keval.records.end_state import FileChange
from keval.seams.contexts import SandboxedCommand
from keval_checks.command import CommandCheck
from keval_checks.file import FileCheck, Golden
from keval_checks.mcp import McpCheck
from keval_checks.python import PythonCheck
from keval_checks.sqlite import SqliteCheck
from keval_checks.unchanged import UnchangedCheck
from keval_mcp import Stdio
from keval_testing import stub_server
from keval_workspace.sandbox import sandbox_of
from tests.contexts import started

TRIAL = Trial("t", Sample("one", "What is it?", answer="3"), "agent", "with", 1)
DATABASE = """
CREATE TABLE ordered (id INTEGER, name TEXT, price REAL);
INSERT INTO ordered VALUES (1, 'tea', 2.5), (2, '3', NULL);
"""
VALID = {"type": "object", "required": ["total"], "properties": {"total": {"type": "integer"}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace as an agent left it, beside what it must not reach."""
    work = tmp_path / "work"
    (work / "out").mkdir(parents=True)
    (work / "out" / "report.md").write_text("# Report\n\nTotal: 12\n\n", encoding="utf-8")
    (work / "out" / "data.json").write_text('{"total": 12}', encoding="utf-8")
    (tmp_path / "secret.txt").write_text("Total: 12", encoding="utf-8")
    (work / "inside").symlink_to("out/report.md")
    (work / "outside").symlink_to("../secret.txt")
    (work / "parent").symlink_to("..")
    (work / "absolute").symlink_to(tmp_path / "secret.txt")
    (work / "own").symlink_to(work / "out" / "report.md")
    (work / "circle").symlink_to("circle")
    os.mkfifo(work / "pipe")
    with closing(sqlite3.connect(work / "shop.db")) as database:
        database.executescript(DATABASE)
    return work


def checked(check: Check, folder: Path | None, *changes: FileChange, **more: Any) -> Finding:
    return asyncio.run(check.check(EndOfTrial(TRIAL, folder, changes, **more)))


def file(path: str = "out/report.md", **options: Any) -> Callable[[], Check]:
    return lambda: FileCheck(path, **options)


def rows(
    *expected: tuple[Any, ...], query: str = "SELECT id, name FROM ordered", **options: Any
) -> Callable[[], Check]:
    return lambda: SqliteCheck("shop.db", query, expected, **options)


def command(run: str | tuple[str, ...], **options: Any) -> Callable[[], Check]:
    return lambda: CommandCheck(run, **options)


PASSING: Mapping[str, tuple[Callable[[], Check], str]] = {
    "there": (file(), "out/report.md is there"),
    "folder": (file("out"), "out is there"),
    "link within": (file("inside", contains="Total: 12"), "inside is as expected"),
    "absolute link within": (file("own", contains="Total: 12"), "own is as expected"),
    "absent": (file("out/none.md", exists=False), "out/none.md is not there"),
    "all": (
        file(
            contains=("# Report", "Total"),
            not_contains="error",
            matches=r"Total: \d+",
            equals="# Report\n\nTotal: 12\n",
        ),
        "out/report.md is as expected",
    ),
    "schema": (file("out/data.json", json_schema=VALID), "out/data.json is as expected"),
    "rows": (rows((1, "tea"), (2, "3")), "the query returns the 2 expected rows"),
    "any order": (rows((2, "3"), (1, "tea"), ordered=False), "the query returns the 2 expected rows"),
    "null": (rows((None,), query="SELECT price FROM ordered WHERE id = 2"), "the query returns the 1 expected row"),
    "shell": (command("test -f out/report.md && exit 3", exit=3), "the command ended with exit code 3"),
    "words": (command((sys.executable, "-c", "print(open('out/report.md').read())"), contains="12"), "exit code 0"),
}

FAILING: Mapping[str, tuple[Callable[[], Check], str]] = {
    "not there": (file("out/none.md"), "out/none.md is not there"),
    "beyond a file": (file("out/report.md/x"), "out/report.md/x is not there"),
    "content of none": (file("out/none.md", contains="x"), "out/none.md is not there"),
    "there after all": (file(exists=False), "out/report.md is there"),
    "a link for a file": (file("outside", exists=False), "outside is a link that leads out of the workspace"),
    "link out": (file("outside", contains="Total"), "outside is a link that leads out of the workspace"),
    "absolute link out": (file("absolute", contains="Total"), "absolute is a link that leads out of the workspace"),
    "folder out": (file("parent/secret.txt"), "parent/secret.txt is a link that leads out of the workspace"),
    "circle": (file("circle", contains="x"), "circle cannot be followed"),
    "pipe": (file("pipe", contains="x"), "pipe is a special file"),
    "folder": (file("out", contains="x"), "out is a folder"),
    "contains": (file(contains=("Total", "Sum")), "does not contain 'Sum': '# Report Total: 12'"),
    "not contains": (file(not_contains="Total"), "out/report.md contains 'Total': '# Report Total: 12'"),
    "matches": (file(matches=r"Total: \d{3}"), r"has nothing that matches 'Total: \d{3}': '# Report Total: 12'"),
    "equals": (file(equals="# Report\n\nTotal: 13"), "line 3 is 'Total: 12', and not 'Total: 13'"),
    "no json": (file(json_schema=VALID), "out/report.md is no JSON (Expecting value"),
    "schema": (file("out/data.json", json_schema={"required": ["sum"]}), "$: ''sum' is a required property'"),
    "text for number": (rows((1, "tea"), (2, 3)), "row 2 is (2, '3'), and not (2, 3)"),
    "order": (rows((2, "3"), (1, "tea")), "row 1 is (1, 'tea'), and not (2, '3')"),
    "too many": (rows((1, "tea")), "the row (2, '3') is too much"),
    "too few": (rows((1, "tea"), (2, "3"), (9, "x")), "the row (9, 'x') is missing"),
    "other": (rows((2, "3"), (9, "x"), ordered=False), "(1, 'tea') is too much and the row (9, 'x') is missing"),
    "no table": (rows((1,), query="SELECT id FROM sold"), "shop.db cannot be asked that: no such table: sold"),
    "no database": (lambda: SqliteCheck("out/report.md", "SELECT * FROM x", ()), "out/report.md is no database"),
    "exit code": (command("echo why; exit 4"), "the command ended with exit code 4, and not 0: 'why'"),
    "output": (command("echo twelve", contains="12"), "its output does not contain '12': 'twelve'"),
    "time": (command("sleep 60", timeout_seconds=0.2), "the command did not end within 0.2 s"),
    "a lie": (command("echo 'sh: 1: grep: not found'; exit 127 # grep"), "ended with exit code 127, and not 0"),
    "another lie": (command("printf 'sh: 1: %s-tool: not found' no; exit 127"), "exit code 127, and not 0"),
    "program to be made": (command(("./made",)), "the command ended with exit code 127, and not 0"),
}

CANNOT_RUN: Mapping[str, tuple[Callable[[], Check], str]] = {
    "program": (command(("no-such-program", "x")), "the program 'no-such-program' is not found"),
    "in a text": (command("cd out && no-such-program"), "the program 'no-such-program' is not found"),
    "pattern": (file(matches=r"(\w+\s*)+$", timeout_seconds=0.001), "was not done in 0.001 s"),
    "nothing matched": (lambda: UnchangedCheck("test/**"), "no file of the workspace matches 'test/**'"),
    "endless query": (
        rows(
            (1,),
            query="WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT max(i) FROM n",
            timeout_seconds=0.2,
        ),
        "the query was not done in 0.2 s",
    ),
    "server": (
        lambda: McpCheck("shop", "look_up"),
        "the condition 'with' has no server 'shop' that keval is connected",
    ),
}


@pytest.mark.parametrize("case", PASSING)
def test_a_check_passes(folder: Path, case: str) -> None:
    check, reason = PASSING[case]

    finding = checked(check(), folder)

    assert finding.passed, finding
    assert reason in finding.reason


@pytest.mark.parametrize("case", FAILING)
def test_a_check_fails_and_says_what_was_there(folder: Path, case: str) -> None:
    check, reason = FAILING[case]

    finding = checked(check(), folder)

    assert not finding.passed
    assert reason in finding.reason


@pytest.mark.parametrize("case", CANNOT_RUN)
def test_a_check_that_cannot_run_is_no_finding(folder: Path, case: str) -> None:
    check, reason = CANNOT_RUN[case]
    (folder / "out" / "report.md").write_text("word " * 2000 + "!", encoding="utf-8")
    with pytest.raises(TrialError) as raised:
        checked(check(), folder)

    assert "score" == raised.value.stage
    assert reason in str(raised.value)


def test_a_workspace_that_is_gone_fails_and_one_that_never_was_is_unscored(folder: Path, tmp_path: Path) -> None:
    folder.rename(tmp_path / "moved")
    folder.symlink_to("moved")
    for check in (FileCheck("out/report.md"), CommandCheck("true"), UnchangedCheck("out")):
        finding = checked(check, folder)

        assert (False, "the workspace itself is gone") == (finding.passed, finding.reason)
        with pytest.raises(TrialError, match="the trial has no workspace; add `workspace:`"):
            checked(check, None)


@pytest.mark.parametrize(
    ("paths", "ignore", "reason"),
    [
        ("tests/**", (), "tests/a/b.py was added"),
        ("tests", (), "tests/a/b.py was added"),
        ("**/*.md", (), "a.md was changed, docs/b.md was deleted"),
        ("*.md", (), "a.md was changed"),
        ("**", ("tests/", "*.md"), "docs/b.md was deleted"),
        ("?.md", (), "a.md was changed"),
    ],
)
def test_what_must_not_change_is_named_by_patterns(
    folder: Path, paths: str, ignore: tuple[str, ...], reason: str
) -> None:
    changes = (FileChange("a.md", "changed"), FileChange("docs/b.md", "deleted"), FileChange("tests/a/b.py", "added"))

    assert Finding(False, reason) == checked(UnchangedCheck(paths, ignore), folder, *changes)
    assert checked(UnchangedCheck("out/*.md"), folder, *changes).passed


def test_an_agent_hides_no_change_behind_files_without_number(folder: Path) -> None:
    finding = checked(UnchangedCheck("notes.txt"), folder, FileChange("0001.txt", "added"), changes_cut=7)

    assert (False, True) == (finding.passed, finding.reason.startswith("7 files more were added than are listed"))


def test_a_database_is_read_with_its_log_and_nothing_of_it_changes(folder: Path) -> None:
    writing = sqlite3.connect(folder / "shop.db")
    writing.execute("PRAGMA journal_mode = WAL")
    writing.execute("INSERT INTO ordered VALUES (3, 'milk', 1)")
    writing.commit()  # what was written is in the log alone, as if the program had been killed
    before = {path.name: path.read_bytes() for path in folder.glob("shop.db*")}

    finding = checked(SqliteCheck("shop.db", "SELECT name FROM ordered WHERE id = 3", (("milk",),)), folder)
    changing = checked(SqliteCheck("shop.db", "DELETE FROM ordered", ()), folder)

    assert finding.passed, finding
    assert "attempt to write a readonly database" in changing.reason
    assert before == {path.name: path.read_bytes() for path in folder.glob("shop.db*")}
    assert {"shop.db", "shop.db-shm", "shop.db-wal"} == {*before}
    writing.close()


def test_a_command_has_neither_the_agents_programs_nor_keys_and_its_files_are_copied(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "expected.txt").write_text("12", encoding="utf-8")
    planted = folder / "bin" / "grep"
    planted.parent.mkdir()
    planted.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    planted.chmod(0o755)
    (folder / "sitecustomize.py").write_text("print('planted')", encoding="utf-8")
    monkeypatch.setenv("PATH", f"{planted.parent}{os.pathsep}.{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("ACME_API_KEY", "sk-secret")
    run = (
        'python3 -c 1; env; ls -A "$HOME"; grep Sum out/report.md || grep -f "$KEVAL_FILES/expected.txt" out/report.md'
    )

    finding = checked(
        CommandCheck(run, contains="Total: 12", not_contains=("planted", "sk-secret"), files=hidden), folder
    )

    assert finding.passed, finding
    assert finding.output is not None
    assert str(hidden) not in finding.output


class Marking:
    """A sandbox that says in which folder it shows what a check was given."""

    @asynccontextmanager
    async def command(self, command: SandboxedCommand) -> AsyncIterator[Sequence[str]]:
        yield ("/usr/bin/env", "-C", str(command.cwd), f"SHOWN={command.root}", *command.words)


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_sandbox_shows_a_command_its_program_and_files_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    golden = tmp_path / "golden.txt"
    golden.write_text("12", encoding="utf-8")
    python = f"{sys.executable} -c \"print(open('$KEVAL_FILES').read())\""
    run = f"cd out && ls {tmp_path}/secret.txt; {python} && awk 1 report.md"
    shut_in = sandbox_of("bubblewrap")

    finding = checked(
        CommandCheck(run, contains=("No such file", "12\n# Report"), files=golden), folder, sandbox=shut_in
    )
    with pytest.raises(TrialError, match="the program 'no-such-program' is not found"):
        checked(CommandCheck("no-such-program"), folder, sandbox=shut_in)

    assert finding.passed, finding


def test_a_command_runs_in_the_sandbox_of_its_trial(folder: Path, tmp_path: Path) -> None:
    run = 'case "$KEVAL_FILES" in "$SHOWN"/*) exit 7;; esac'

    inside = CommandCheck(run, exit=7, files=tmp_path / "secret.txt")
    outside = CommandCheck('test -z "$SHOWN"', sandboxed=False)

    assert [True, True] == [checked(each, folder, sandbox=Marking()).passed for each in (inside, outside)]


@pytest.mark.slow
def test_a_command_ends_with_all_that_it_started(folder: Path) -> None:
    run = "setsid sh -c 'sleep 60 & echo $! > pid; wait' & while [ ! -s pid ]; do sleep 0.01; done; echo so far; wait"

    finding = checked(CommandCheck(run, timeout_seconds=1.5), folder)

    assert (False, "so far\n") == (finding.passed, finding.output)
    assert not Path("/proc", (folder / "pid").read_text(encoding="utf-8").strip()).exists()


FUNCTIONS = """
import asyncio, os, sys, time
import beside

def holds(trial, folder): return (folder / "out/report.md").read_text().startswith(beside.START)
def reasons(trial, folder): print("looked"); return trial.sample.answer == "4", f"the answer is {trial.sample.answer}"
def asserts(trial, folder): assert (folder / "out/none.md").exists()
def says(trial, folder): assert False, "no total"
def falls_through(trial, folder): assert folder is None
async def waits(trial, folder): await asyncio.sleep(0); return True
def breaks(trial, folder): return 1 / 0
def odd(trial, folder): return "yes"
def ends(trial, folder): os._exit(9)
def stuck(trial, folder): time.sleep(60)
def clean(trial, folder): assert "ACME_API_KEY" not in os.environ and str(folder) not in sys.path
"""


@pytest.mark.parametrize(
    ("function", "passed", "reason"),
    [
        ("holds", True, "holds returned True"),
        ("reasons", False, "the answer is 3"),
        (
            "asserts",
            False,
            '`def asserts(trial, folder): assert (folder / "out/none.md").exists()` does not hold (own.py:7)',
        ),
        ("says", False, "no total"),
        ("falls_through", True, "no assertion failed"),
        ("waits", True, "waits returned True"),
        ("clean", True, "no assertion failed"),
        ("stuck", False, "own.py:stuck did not end within 1.5 s"),
        ("breaks", None, "own.py:breaks raised ZeroDivisionError: division by zero"),
        ("odd", None, "own.py:odd returned 'yes'; return True, False, or one of them and a reason"),
        ("ends", None, "own.py:ends ended with exit code 9"),
    ],
)
def test_a_function_says_whether_it_passes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, function: str, passed: bool | None, reason: str
) -> None:
    own = folder.parent / "own.py"
    own.write_text(FUNCTIONS, encoding="utf-8")
    own.with_name("beside.py").write_text('START = "# Report"', encoding="utf-8")
    (folder / "beside.py").write_text("raise SystemExit('planted')", encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ACME_API_KEY", "sk-secret")
    check = PythonCheck(own.with_name(f"own.py:{function}"), timeout_seconds=1.5 if function == "stuck" else 60)
    given = None if function == "falls_through" else folder
    if passed is None:
        with pytest.raises(TrialError) as raised:
            checked(check, given)

        assert reason in str(raised.value)
    else:
        finding = checked(check, given)

        assert (passed, reason) == (finding.passed, finding.reason)
        assert ("looked\n" if function == "reasons" else None) == finding.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "passed", "reason"),
    [
        ({"tool": "count", "equals": "1"}, True, "the result of count is as expected"),
        ({"tool": "count", "equals": 1, "json_schema": {"const": 1}}, True, "the result of count is as expected"),
        ({"tool": "count", "equals": "2"}, False, "the result of count is '1', and not '2'"),
        ({"tool": "count", "equals": 2}, False, "the result of count is '1', and not '2'"),
        ({"tool": "count", "json_schema": {"minimum": 2}}, False, "'1 is less than the minimum of 2'"),
        ({"tool": "look_up", "contains": "so", "not_contains": "no"}, True, "the result of look_up is as expected"),
        ({"tool": "look_up", "contains": "no"}, False, "the result of look_up does not contain 'no': 'It is so.'"),
        ({"tool": "look_up", "is_error": True}, False, "look_up did not fail: 'It is so.'"),
    ],
)
def test_a_server_is_asked_itself(options: dict[str, Any], passed: bool, reason: str) -> None:
    finding = asyncio.run(_asked_of("stateful", McpCheck("stub", **options)))

    assert passed == finding.passed
    assert reason in finding.reason


def test_a_server_that_fails_is_told_from_one_that_does_not_answer() -> None:
    failed = asyncio.run(_asked_of("failing", McpCheck("stub", "look_up")))

    assert (False, "look_up failed: 'It is so.'") == (failed.passed, failed.reason)
    with pytest.raises(TrialError, match=r"stub did not answer 'look_up' within 0.2 s"):
        asyncio.run(_asked_of("hanging", McpCheck("stub", "look_up", timeout_seconds=0.2)))
    with pytest.raises(TrialError, match="was lost during 'look_up'"):
        asyncio.run(_asked_of("dying", McpCheck("stub", "look_up")))


async def _asked_of(way: Any, check: McpCheck) -> Finding:
    described = {key: value for key, value in stub_server(way).items() if key != "type"}
    async with (
        started(Stdio(**described, isolation="trial"), "stub") as source,
        source.open(TRIAL.sample, "t") as context,
    ):
        servers = {server.name: server.source for server in context.servers if server.source is not None}
        finding: Finding = await check.check(EndOfTrial(TRIAL, None, servers=servers))
        return finding


def _wrong(tmp: Path) -> Iterator[tuple[Callable[[], Check], str]]:
    (tmp / "bad.py").write_text("def f(:", encoding="utf-8")
    (tmp / "good.py").write_text("from os import path as looks\nasync def waits(trial, folder): ...", encoding="utf-8")
    yield lambda: FileCheck("/etc/passwd"), "'path' must be a path within the workspace"
    yield lambda: FileCheck("../x"), "'path' must be a path within the workspace"
    yield lambda: FileCheck("x", matches="("), "'matches' must be a regular expression: missing )"
    yield lambda: FileCheck("x", contains=("a", "")), "'contains' must hold no empty text"
    yield lambda: FileCheck("x", exists=False, contains="a"), "'exists' must not be false beside"
    yield lambda: FileCheck("x", equals=Golden(tmp / "none")), "'equals' must name a file that can be read"
    yield lambda: FileCheck("x", json_schema={"type": "no"}), "'json_schema' must be a JSON Schema: at $.type"
    yield lambda: FileCheck("x", json_schema=tmp / "none"), "'json_schema' must be a file that can be read"
    yield lambda: CommandCheck(()), "'run' must name a program"
    yield lambda: CommandCheck("true", files=tmp / "none"), "'files' must name a file or a folder that exists"
    yield lambda: CommandCheck("true", timeout_seconds=0), "'timeout_seconds' must be > 0"
    yield lambda: UnchangedCheck(()), "'paths' must hold at least one pattern"
    yield lambda: SqliteCheck("x", "SELEC 1", ()), "'query' must be one query of SQLite: near \"SELEC\": syntax error"
    yield lambda: SqliteCheck("x", "SELECT 1", ((1,), (1, 2))), "'rows' must be lists of one length"
    yield lambda: PythonCheck(tmp / "none.py:f"), "'target' must name a file that can be read"
    yield lambda: PythonCheck(tmp / "good.py"), "'target' must be FILE.py:FUNCTION"
    yield lambda: PythonCheck(tmp / "bad.py:f"), "'target' must name a file of Python: "
    yield lambda: PythonCheck(tmp / "good.py:wait"), "good.py has no function 'wait'; did you mean 'waits'?"


def test_wrong_options_are_said_before_anything_runs(tmp_path: Path) -> None:
    for check, expected in _wrong(tmp_path):
        with pytest.raises(ValueError, match=r"^'") as raised:
            check()

        assert expected in str(raised.value)
    PythonCheck(tmp_path / "good.py:looks")


def test_a_golden_file_and_a_schema_in_a_file_are_read(folder: Path, tmp_path: Path) -> None:
    golden, schema = tmp_path / "golden.md", tmp_path / "schema.json"
    golden.write_text("# Report\n\nTotal: 12", encoding="utf-8")
    schema.write_text('{"required": ["total"]}', encoding="utf-8")

    assert checked(FileCheck("out/report.md", equals=Golden(golden)), folder).passed
    assert checked(FileCheck("out/data.json", json_schema=schema), folder).passed
