"""Agents in a sandbox that try to get out of it, by the files that keval opens for them or finds after them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from keval.plugin import TranscriptBuilder
from keval.seams.contexts import SandboxedCommand
from keval_programs import Confinement, Process, Tree, TrialFolder, running
from keval_workspace.sandbox.bubblewrap import Bubblewrap
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
        with open(work / "kept.sparse", "wb") as file: file.truncate(1 << 33)
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
    env["SERVERS"] = "{mcp_config}"
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
        "conditions": {"with": {}},
        "workspace": {"files": {"server.py": "print()"}, "artifacts": ["kept*"]},
        "sandbox": "bubblewrap",
        "verify": [{"name": "done", "python": "checks.py:good"}],
        "execution": {"retry": {"max_attempts": 1}, "timeout_seconds": 150},
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
    failed = {"reads through a link", "puts pipes", "links to a device", "puts sockets"}
    dug = trials.pop("digs")["failure"]  # it may end before that is measured
    assert dug is None or "made folders more than 200 deep" in dug["message"]
    assert failed == {name for name, trial in trials.items() if trial["failure"]}, outcome.stderr
    assert all("exit code 1" in trials[name]["failure"]["message"] for name in failed)
    (check,) = trials["writes through a link"]["transcript"]["end_state"]["checks"]
    assert (False, "nothing was done") == (check["passed"], check["reason"])
    (seen,) = trials["looks around"]["transcript"]["end_state"]["artifacts"]
    assert [] == json.loads((project.run_directory() / "blobs" / seen["sha256"]).read_text("utf-8"))
    left = {each["path"]: each for each in trials["leaves what never ends"]["transcript"]["end_state"]["artifacts"]}
    assert {"kept.pipe", "kept.sparse", "kept.txt", '"kept\\n.txt"'} == {*left}
    assert ['"kept\\n.txt"'] == [name for name, each in left.items() if each["left_out"] is None]


ACP_AGENT = """
def call(method, **params):
    print(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}), flush=True)
    while (told := json.loads(sys.stdin.readline())).get("id") != method: pass
    return told.get("result")

for line in sys.stdin:
    asked = json.loads(line)
    result = {"initialize": {"protocolVersion": 1, "agentCapabilities": {}}, "session/new": {"sessionId": "s"}}
    if asked["method"] == "session/prompt":
        for number in range(1, 4):
            for each in (*ours, root / f"terminal-{number}.stderr.txt"):
                replace(each, lambda path: path.symlink_to(target))
            command = "printf '%s' \\"$ESCAPE\\" >&2; /dev/null/no-such"
            made = call("terminal/create", sessionId="s", command=command)
            if made: call("terminal/wait_for_exit", sessionId="s", terminalId=made["terminalId"])
            call("fs/write_text_file", sessionId="s", path=str(work / "told.json"), content=os.environ["ESCAPE"])
            call("fs/read_text_file", sessionId="s", path=os.environ["READ"])
            call("terminal/create", sessionId="s", command="cat " + os.environ["READ"], cwd=str(Path(target).parent))
        outside = str(Path(os.environ["READ"]).parent)
        replace(work / "node", lambda path: path.symlink_to(os.environ["READ"]))
        told = "42"
        for env in (
            {"SSL_CERT_FILE": os.environ["READ"], "A-B": "x", "PPID": "1"},
            {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": f"{outside}/led"},  # as LD_PRELOAD, which needs a compiler
            {"PATH": f"{outside}:{work}:/usr/bin:/bin", "PYTHONPATH": outside},
        ):
            env = [{"name": name, "value": value} for name, value in env.items()]
            made = call("terminal/create", sessionId="s", command="echo $PATH; cat $READ", env=env)
            call("terminal/wait_for_exit", sessionId="s", terminalId=made["terminalId"])
            told += call("terminal/output", sessionId="s", terminalId=made["terminalId"])["output"]
        said = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": told}}
        print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": said}}))
    if "id" in asked:
        answer = {"session/prompt": {"stopReason": "end_turn"}, **result}[asked["method"]]
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"""


@pytest.mark.slow
@bubblewrap
def test_terminals_of_an_agent_lead_nowhere_else(project: Project) -> None:
    whole = prepare(project, {"acp": ""})
    (project.root / "agent0.py").write_text(PRELUDE + ACP_AGENT, encoding="utf-8")
    agent = whole["agents"]["acp"]
    acp = {"type": "acp", "command": [sys.executable, "agent0.py", "1"], "env": agent["env"]}
    project.write(eval_yaml=json.dumps({**whole, "agents": {"acp": acp}}))

    outcome = project.spawn("run", "eval.yaml", "-o", "results")

    trial = held(project)["acp"]
    assert None is trial["failure"], outcome.stderr
    assert 3 == trial["output"].count("No such file")
    assert f"{project.root / 'outside'}:" in trial["output"]  # what the agent chose holds inside


JOURNAL = """
if turn == "1":
    import sqlite3, struct
    if os.fork() == 0:
        with contextlib.suppress(OSError): os.unlink("shop.db")
        shop = sqlite3.connect("shop.db")
        shop.execute("create table t(x)")
        shop.execute("insert into t values (1)")
        shop.commit()
        shop.execute("pragma cache_size=1")
        shop.execute("begin")
        shop.executemany("insert into t values (?)", [("y" * 3000,)] * 200)
        os._exit(0)
    os.wait()
    name = os.environ["VICTIM"].encode()
    with open("shop.db-journal", "ab") as file:
        file.write(struct.pack(">I", 0x40000000 // 4096 + 1) + name)
        file.write(struct.pack(">II", len(name), sum(name)) + bytes.fromhex("d9d505f920a163d7"))
say()
"""
"""Leaves a transaction that SQLite takes back, and then removes the file that it names."""

RUN_BY_A_CHECK = """
(work / "tool.py").write_text(Path(__file__).read_text().split("# here ")[1])
say()
'''# here
import os, sys
from pathlib import Path
own = Path(os.environ["HOME"]).parent
for folder in (own, *own.glob("*")):
    for name in ("told.json", "given.pickle", "stderr.txt", "golden.txt", "keval"):
        try:
            if (folder / name).exists(): (folder / name).unlink()
            (folder / name).symlink_to(os.environ["TARGET_OF_TOOL"])
        except OSError: pass
sys.stderr.write("open('ESCAPED', 'w')")
# here '''
"""


@pytest.mark.slow
@bubblewrap
def test_what_checks_open_and_run_leads_nowhere_else(project: Project) -> None:
    told = """
        import subprocess, sys
        def good(trial, folder):
            subprocess.run([sys.executable, folder / "tool.py"], check=False)
            print('{"passed": true, "reason": "trust me"}')
            return False, "nothing was done"
    """
    golden = project.root / "golden.txt"
    golden.write_text("12", encoding="utf-8")
    victim = project.root / "outside" / "secret.txt"
    run = f"TARGET_OF_TOOL={project.root}/checks.py {sys.executable} tool.py; cat $KEVAL_FILES"
    verify = [
        {"name": "shop", "sqlite": {"path": "shop.db", "query": "select count(*) from t", "rows": [[1]]}},
        {"name": "run", "command": {"run": run, "files": "golden.txt", "contains": "12"}},
        {"name": "python", "python": "told.py:good"},
    ]
    whole = prepare(project, {"journal": "", "tool": ""}, verify=verify)
    project.write(told_py=told)
    for number, script in enumerate((JOURNAL, RUN_BY_A_CHECK)):
        (project.root / f"agent{number}.py").write_text(PRELUDE + script, encoding="utf-8")
        whole["agents"][("journal", "tool")[number]]["env"]["VICTIM"] = str(victim)
    project.write(eval_yaml=json.dumps(whole))

    outcome = project.spawn("run", "eval.yaml", "-o", "results")
    checks = {
        agent: {each["name"]: (each["passed"], each["reason"]) for each in trial["transcript"]["end_state"]["checks"]}
        for agent, trial in held(project).items()
    }

    assert (False, "shop.db-journal names other files, which SQLite would open") == checks["journal"]["shop"]
    assert (True, False) == (checks["tool"]["run"][0], checks["tool"]["python"][0]), outcome.stderr
    assert "nothing was done" == checks["tool"]["python"][1]


def test_a_path_that_changes_while_it_is_opened_leads_nowhere_else(tmp_path: Path) -> None:
    secret, work = tmp_path / "secret.txt", tmp_path / "work"
    secret.write_text(SECRET, encoding="utf-8")
    (work / "out").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept.txt").write_text(SECRET, encoding="utf-8")
    ended = threading.Event()

    def change() -> None:
        spare = [work / name for name in ("link", "pipe", "file", "folder")]
        while not ended.is_set():
            spare[0].symlink_to(secret)
            os.mkfifo(spare[1])
            spare[2].write_text("mine", encoding="utf-8")
            for each in spare[:3]:
                each.replace(work / "out" / "kept.txt")
            (work / "out").rename(spare[3])
            with suppress(OSError):  # the other thread may have made the folder
                (work / "out").symlink_to(tmp_path / "elsewhere")
                (work / "out").unlink()
                spare[3].rename(work / "out")
            shutil.rmtree(spare[3], ignore_errors=True)
            (work / "out").mkdir(exist_ok=True)

    seen: set[object] = set()
    with ThreadPoolExecutor(1) as threads, Tree.at(work) as tree:
        changing = threads.submit(change)
        for number in range(300_000):
            if number >= 3000 and seen & {b"mine", b"new"}:  # how soon depends on how threads take turns
                break
            try:
                with tree.followed("out/kept.txt") as kept:
                    seen.add(True if kept.kind else kept.content(1000))
                tree.write("out/new.txt", b"new")
                tree.overwrite("out/kept.txt", b"new")
                seen.update(entry.content(1000) for entry in tree.walk() if entry.kind is None and number % 10 == 0)
            except OSError as error:
                seen.add(bool(error.strerror))
        ended.set()
        changing.result()

    assert seen & {b"mine", b"new"}
    assert True in seen
    half_written = {b"mine"[:end] for end in range(4)}  # as a file in memory may be read
    assert seen <= {b"mine", b"new", True} | half_written
    assert {"kept.txt"} == {path.name for path in (tmp_path / "elsewhere").iterdir()}
    assert [SECRET] * 2 == [each.read_text("utf-8") for each in (secret, tmp_path / "elsewhere" / "kept.txt")]


@bubblewrap
def test_a_sandbox_shows_nothing_by_way_of_a_link_in_what_its_program_writes(tmp_path: Path) -> None:
    secret, work = tmp_path / "secret.txt", tmp_path / "work"
    secret.write_text(SECRET, encoding="utf-8")
    work.mkdir()
    (work / "server.py").symlink_to(secret)
    env = {"PATH": os.environ["PATH"], "SSL_CERT_FILE": str(work / "server.py")}
    words = ("cat", str(work / "server.py"), str(secret))
    command = SandboxedCommand(words, work, env, work, work, [work], needs=[work / "server.py"])

    async def start() -> tuple[bytes, int | None]:
        async with Bubblewrap().command(command) as shut_in:
            process = await asyncio.create_subprocess_exec(*shut_in, env=env, stdout=PIPE)
            output, _ = await process.communicate()
            return output, process.returncode

    assert (b"", 1) == asyncio.run(start())


@bubblewrap
def test_what_leads_a_loader_to_files_of_a_program_is_set_in_its_sandbox_alone(tmp_path: Path) -> None:
    folder = TrialFolder.at(tmp_path)
    env = {"PATH": f"{folder.work}/bin:/usr/bin:/bin", "HOME": str(folder.home), "LANG": "C"}
    env |= {"PYTHONPATH": str(folder.work), "MINE": "1"}
    shut_in = Confinement(Bubblewrap(), folder)
    process = Process("sh", ("/bin/sh", "-c", "echo $PATH; env"), env, folder.work, shut_in, {"LD_AUDIT": "a.so"})

    async def output() -> str:
        async with running(process, TranscriptBuilder()):
            return (await process.stdout.read()).decode()

    inside = asyncio.run(output()).splitlines()

    kept = {"PATH": "/usr/bin:/bin", "HOME": os.environ["HOME"], "LANG": "C", "MINE": "1"}
    assert kept == {name: value for name, value in process.outer_env.items() if not name.startswith("KEVAL_INSIDE_")}
    assert inside[0] == env["PATH"]
    assert {f"PYTHONPATH={folder.work}", f"HOME={folder.home}", "LD_AUDIT=a.so", "MINE=1"} < {*inside}
    assert not [line for line in inside if line.startswith("KEVAL_INSIDE_")]


@pytest.mark.slow
@bubblewrap
def test_a_crowd_of_connections_leaves_keval_descriptors_for_others(project: Project) -> None:
    crowd = """
import os, socket, time, urllib.parse
at = urllib.parse.urlsplit(os.environ["BASE"])
held = []
for _ in range(600):
    each = socket.socket()
    each.settimeout(1)
    try: each.connect((at.hostname, at.port))
    except OSError: break
    held.append(each)
print(len(held))
"""
    agent = {"type": "command", "command": [sys.executable, "crowd.py"], "model": "simulated/echo"}
    config = {
        "dataset": {"path": "q.jsonl"},
        "agents": {"a": {**agent, "env": {"BASE": "{model_base_url}"}}},
        "metrics": ["basic/turns"],
        "workspace": {},
        "sandbox": "bubblewrap",
    }
    project.write(crowd_py=crowd, q_jsonl='{"id": "a", "question": "first"}\n', eval_yaml=json.dumps(config))

    outcome = project.spawn("run", "eval.yaml")

    (trial,) = project.lines("trials.jsonl")
    assert 300 > int(trial["output"]), outcome.stderr  # 100, and those that the system keeps waiting inside
    assert "Too many open files" not in outcome.stderr


TELLING: Mapping[str, tuple[str, str]] = {
    "tells without end": (
        "while True: say('x' * 1_000_000)",
        "wrote more than 134,217,728 bytes; let it tell less",
    ),
    "opens terminals": (
        """while "terminalId" in (told := call("terminal/create", sessionId="s", command="sleep 99")): pass
say(told["data"]["details"])""",
        "an agent may have 32 terminals at once",
    ),
    "spreads": (
        """for _ in range(9):
    call("terminal/create", sessionId="s", command="for n in 1 2 3 4 5 6; do sleep 99 & done; wait")
import time; time.sleep(99)""",
        "started more than 40 processes",
    ),
    "keeps outputs": (
        """made = call("terminal/create", sessionId="s", command="yes | head -c 300000000", outputByteLimit=10**12)
call("terminal/wait_for_exit", sessionId="s", **made)
update(sessionUpdate="tool_call", toolCallId="t", title="x", status="completed",
    content=[{"type": "terminal", **made}] * 2000)
say("42")""",
        "(2000028 bytes, SHA-256 ",
    ),
    "compares": (
        """old, new = ("".join(f"{n * step % 150}\\n" for n in range(60_000)) for step in (1, 7))
update(sessionUpdate="tool_call", toolCallId="t", title="x", status="completed",
    content=[{"type": "diff", "path": "/x", "oldText": old, "newText": new}])
say("42")""",
        "an edit of 60,000 lines to 60,000",
    ),
}
"""What an agent of ACP does, and what its trial has of it."""
TELLER = """
import json, sys

def call(method, **params):
    print(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}), flush=True)
    while (told := json.loads(sys.stdin.readline())).get("id") != method: pass
    return told.get("result") or told["error"]

def update(**update):
    params = {"sessionId": "s", "update": update}
    print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}), flush=True)

def say(text):
    update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})

for line in sys.stdin:
    asked = json.loads(line)
    result = {"initialize": {"protocolVersion": 1, "agentCapabilities": {}}, "session/new": {"sessionId": "s"}}
    if asked["method"] == "session/prompt":
        exec(sys.argv[1])
        result = {"session/prompt": {"stopReason": "end_turn"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result[asked["method"]]}), flush=True)
"""


@pytest.mark.slow
@bubblewrap
@pytest.mark.parametrize("name", TELLING)
def test_an_agent_that_tells_too_much_costs_neither_the_run_nor_its_memory(project: Project, name: str) -> None:
    script, told = TELLING[name]
    agent = {"type": "acp", "command": [sys.executable, "teller.py", script.replace("{", "{{").replace("}", "}}")]}
    config = {
        "dataset": {"path": "q.jsonl"},
        "agents": {"acp": agent, "echo": {"type": "openai", "model": "simulated/echo"}},
        "metrics": ["basic/turns"],
        "execution": {"retry": {"max_attempts": 1}, "timeout_seconds": 100},
        **({"workspace": {}, "sandbox": {"bubblewrap": {"max_processes": 40}}} if name == "spreads" else {}),
    }
    asked = '{"id": "a", "question": "first"}\n'
    project.write(teller_py=TELLER, q_jsonl=asked, eval_yaml=json.dumps(config))
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_DATA, (3 * 10**9,) * 2)"
    command = [sys.executable, "-c", f"{limited}; from keval.cli import main; main()", "run", "eval.yaml"]

    done = subprocess.run(command, cwd=project.root, capture_output=True, text=True, timeout=200, check=False)

    trials = {trial["agent"]: trial for trial in project.lines("trials.jsonl")}
    assert {"acp", "echo"} == {*trials}, done.stderr
    assert told in json.dumps(trials["acp"]), (str(trials["acp"])[:2000], done.stderr)


GREEDY: Mapping[str, tuple[str, str]] = {
    "forks": (
        "for _ in range(60):\n    if os.fork() == 0: time.sleep(60)\ntime.sleep(60)",
        "started more than 40 processes (`max_processes`",
    ),
    "remembers": ("held = b'x' * 400_000_000\ntime.sleep(60)", "used more than 300,000,000 bytes of memory (`max_mem"),
    "fills the disk": (
        "with open('big', 'wb') as file:\n    while True: file.write(b'x' * 1_000_000)",
        "wrote 50,000,000 bytes or more on the disk (`max_bytes`",
    ),
    "fills its home": (
        "for n in range(100): (home / str(n)).write_bytes(b'x' * 1_000_000)\ntime.sleep(60)",
        "wrote 50,000,000 bytes or more on the disk (`max_bytes`",
    ),
    "makes files": (
        "for n in range(10**9): open(f'.git/{n}', 'w').close() if n else os.mkdir('.git')",
        "wrote more than 2,000 files (`max_files`",
    ),
    "makes folders": ("for n in range(10**9): os.mkdir(f'{n}')", "wrote more than 2,000 files (`max_files`"),
    "hides deep": ("for n in range(300):\n    os.mkdir('d'); os.chdir('d')\ntime.sleep(60)", "more than 200 deep"),
    "talks": (
        "while True: sys.stderr.write('x' * 1_000_000)",
        "wrote more than 20,000,000 bytes on stderr (`max_stderr_bytes`",
    ),
    "answers without end": ("while True: sys.stdout.write('x' * 1_000_000)", "wrote more than 67,108,864 bytes"),
    "fills tmp": ("for n in range(9): Path(f'/tmp/{n}').write_bytes(b'x' * 10_000_000)", "No space left on device"),
    "fills shared memory": (
        "for n in range(9): Path(f'/dev/shm/{n}').write_bytes(b'x' * 10_000_000)",
        "No space left on device",
    ),
}
"""What each agent does, and what its trial says of it."""


@pytest.mark.slow
@bubblewrap
def test_an_agent_that_uses_too_much_is_ended_and_told_and_others_go_on(project: Project) -> None:
    shut_in = {"max_memory": "300 MB", "max_processes": 40, "max_bytes": "50 MB", "max_files": 2000}
    sandbox = {"bubblewrap": {**shut_in, "max_stderr_bytes": "20 MB"}}
    tool = "import os, time\nfor _ in range(60):\n    if os.fork() == 0: time.sleep(60)\ntime.sleep(60)\n"
    workspace = {"files": {"tool.py": tool}}
    verify = [{"name": "tool", "command": {"run": f"{sys.executable} tool.py"}}]
    honest = {"honest": "", **dict.fromkeys(GREEDY, "")}
    prepare(project, honest, sandbox=sandbox, workspace=workspace, verify=verify)
    for number, (script, _) in enumerate((("say()", ""), *GREEDY.values())):
        (project.root / f"agent{number}.py").write_text(f"{PRELUDE}\nimport time\n{script}", encoding="utf-8")

    outcome = project.spawn("run", "eval.yaml", "-o", "results", timeout=300)
    trials = held(project)

    assert {*honest} == {*trials}, outcome.stderr
    for name, (_, told) in GREEDY.items():
        assert told in trials[name]["failure"]["message"], name
    limited = {
        name for name, trial in trials.items() if trial["failure"] and trial["failure"]["kind"] == "sandbox_limit"
    }
    assert {*GREEDY} - {"answers without end", "fills tmp", "fills shared memory"} == limited
    (check,) = trials["honest"]["transcript"]["end_state"]["checks"]
    assert (None, False) == (trials["honest"]["failure"], check["passed"])
    assert "started more than 40 processes" in check["reason"]
