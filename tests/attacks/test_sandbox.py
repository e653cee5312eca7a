"""Agents in a sandbox that try to get out of it, by the files that keval opens for them or finds after them."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from tests.conftest import Project

bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

SECRET = "secret-of-the-user"
CHECKS = """\
def good(trial, folder):
    return False, "nothing was done"
"""
ESCAPE = "open({mark!r}, 'w').write('out')\ndef good(trial, folder):\n    return True, 'trust me'\n"

PRELUDE = """
import contextlib, json, os, socket, sys
from pathlib import Path
home, work, target, turn = Path(os.environ["HOME"]), Path.cwd(), os.environ["TARGET"], sys.argv[1]
root = home.parent
ours = ["stderr.txt", "terminal-1.stderr.txt", "mcp.json", "history.json", "system_prompt.md", "servers.json"]
ours += ["told.json", "given.pickle", "keval", "keval/mcp.json", "keval/history.json", "work", "home"]
ours = [root / each for each in ours] + [home / each for each in ours] + [work / each for each in ours]

def replace(path, by):
    with contextlib.suppress(OSError):
        path.unlink()
    with contextlib.suppress(OSError):
        path.rename(path.with_name("moved"))
    with contextlib.suppress(OSError):
        by(path)

def say(**more):
    print(json.dumps({"answer": turn, "id": "s", **more}), flush=True)
"""

AGENTS: Mapping[str, str] = {
    "writes through a link": """
        if turn == "1":
            for each in ours: replace(each, lambda path: path.symlink_to(target))
        else:
            sys.stderr.write(os.environ["ESCAPE"])
        say()
        """,
    "reads through a link": """
        for each in ours: replace(each, lambda path: path.symlink_to(os.environ["READ"]))
        sys.exit(1)
        """,
    "puts pipes": """
        for each in ours: replace(each, os.mkfifo)
        sys.exit(1)
        """,
    "links to a device": """
        for each in ours: replace(each, lambda path: path.symlink_to("/dev/zero"))
        sys.exit(1)
        """,
    "puts sockets": """
        for each in ours: replace(each, lambda path: socket.socket(socket.AF_UNIX).bind(str(path)))
        sys.exit(1)
        """,
    "replaces its folders": """
        if turn == "1":
            for folder in (home, work):
                replace(folder, lambda path: path.symlink_to(Path(target).parent))
                for inner in ("*",):
                    for each in folder.glob(inner): replace(each, lambda path: path.symlink_to(Path(target).parent))
        say()
        """,
    "links to what a server needs": """
        if turn == "1":
            replace(work / "server.py", lambda path: path.symlink_to(os.environ["READ"]))
            say()
        else:
            for each in (work / "server.py", Path(os.environ["READ"])):
                with contextlib.suppress(OSError): sys.stderr.write(each.read_text())
            sys.exit(1)
        """,
    "makes hard links": """
        for each in (target, os.environ["READ"], "/proc/1/root" + os.environ["READ"]):
            with contextlib.suppress(OSError): os.link(each, work / "kept.txt")
            with contextlib.suppress(OSError): os.link(f"/proc/self/root{each}", work / "kept.txt")
        say()
        """,
    "leaves what never ends": """
        for name in ("kept.txt", "out.txt", "shop.db", "shop.db-wal"):
            replace(work / name, lambda path: path.symlink_to("/dev/zero"))
        replace(work / "kept.pipe", os.mkfifo)
        with open(work / "kept.sparse", "wb") as file: file.truncate(1 << 40)
        (work / "kept\\n.txt").write_text("x")
        say()
        """,
    "digs": """
        for folder in (work, home) if turn == "1" else ():
            os.chdir(folder)
            for _ in range(1_000):
                os.mkdir("d")
                os.chdir("d")
            Path("kept.txt").write_text("deep")
        say()
        """,
    "looks around": """
        told = []
        for fd in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                told += [to] if not (to := os.readlink(f"/proc/self/fd/{fd}")).startswith(("pipe:", "/proc/")) else []
        for before in ("", "/proc/1/root", "/proc/1/cwd", "/proc/self/root", "/proc/1/fd/0/../.."):
            name = before + os.environ["READ"]
            with contextlib.suppress(OSError): told.append(Path(name).read_text())
        for place in ("/dev", "/", "/usr", "/etc", str(root / "keval"), "/run", "/run/keval"):
            with contextlib.suppress(OSError):
                Path(place, "of-mine").write_text("x")
                told.append(place)
        (work / "kept.txt").write_text(json.dumps(told))
        say()
        """,
}
"""What each agent does with each of two messages."""


def prepare(project: Project, agents: Mapping[str, str], **config: Any) -> dict[str, Any]:
    """Write a config with agents of these programs, whose environment names files outside, and return it."""
    outside = project.root / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET, encoding="utf-8")
    project.write(checks_py=CHECKS, q_jsonl='{"id": "a", "question": "first", "turns": ["second"], "answer": "42"}\n')
    named = {"TARGET": project.root / "checks.py", "MARK": project.root / "ESCAPED", "READ": outside / "secret.txt"}
    env = {name: str(path) for name, path in named.items()}
    env["ESCAPE"] = ESCAPE.format(mark=env["MARK"])
    told: dict[str, Any] = {}
    for number, (name, script) in enumerate(agents.items()):
        file = project.root / f"agent{number}.py"
        lines = [line[8:] for line in script.splitlines()]
        file.write_text(PRELUDE + "\n".join(lines), encoding="utf-8")
        told[name] = {
            "type": "command",
            "command": [sys.executable, file.name, "1", "{question}"],
            "session": {"command": [sys.executable, file.name, "2", "{session}", "{question}"], "id": "id"},
            "answer": "answer",
            "env": env,
        }
    whole = {
        "dataset": {"path": "q.jsonl"},
        "agents": told,
        "contexts": {"own": {"type": "stdio", "command": sys.executable, "args": ["server.py"], "tap": False}},
        "conditions": {"with": {}},
        "workspace": {"files": {"server.py": "print()"}, "artifacts": ["kept*"]},
        "sandbox": "bubblewrap",
        "verify": [{"name": "done", "python": "checks.py:good"}],
        "execution": {"retry": {"max_attempts": 1}, "timeout_seconds": 60},
        **config,
    }
    project.write(eval_yaml=json.dumps(whole))
    return whole


def held(project: Project) -> dict[str, dict[str, Any]]:
    """Return the trials by agent, after a look at what must not have happened to anything outside."""
    results = b"".join(path.read_bytes() for path in project.root.glob("results/**/*") if path.is_file())
    assert (CHECKS, False) == ((project.root / "checks.py").read_text("utf-8"), (project.root / "ESCAPED").exists())
    assert SECRET.encode() not in results
    assert ["secret.txt"] == [path.name for path in (project.root / "outside").iterdir()]
    return {trial["agent"]: trial for trial in project.lines("trials.jsonl")}


@pytest.mark.slow
@bubblewrap
def test_no_agent_leads_keval_out_of_its_sandbox(project: Project) -> None:
    prepare(project, AGENTS)

    outcome = project.spawn("run", "eval.yaml", "-o", "results", timeout=300)
    trials = held(project)

    assert {*AGENTS} == {*trials}, outcome.stderr
    failed = {"reads through a link", "puts pipes", "links to a device", "puts sockets", "links to what a server needs"}
    assert failed == {name for name, trial in trials.items() if trial["failure"]}, outcome.stderr
    assert all("exit code 1" in trials[name]["failure"]["message"] for name in failed)
    (check,) = trials["writes through a link"]["transcript"]["end_state"]["checks"]
    assert (False, "nothing was done") == (check["passed"], check["reason"])
    (seen,) = trials["looks around"]["transcript"]["end_state"]["artifacts"]
    assert [] == json.loads((project.run_directory() / "blobs" / seen["sha256"]).read_text("utf-8"))
    left = {each["path"]: each for each in trials["leaves what never ends"]["transcript"]["end_state"]["artifacts"]}
    assert {"kept.pipe", "kept.sparse", "kept.txt", '"kept\\012.txt"'} == {*left}
    assert ['"kept\\012.txt"'] == [name for name, each in left.items() if "left_out" not in each]
