"""Agents that a sandbox shuts in, and what they still reach."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pytest

from keval.plugin import Context, McpServer, TranscriptBuilder, TrialError, supervised
from keval.seams.contexts import SandboxedCommand
from keval_acp.client import Terminals
from keval_programs import Confinement, Process, TrialFolder, inside, running
from keval_workspace.sandbox.bubblewrap import Bubblewrap
from tests.coding_agents import RECIPES, installed
from tests.conftest import Project, serve_here
from tests.plugins.workspace.attempts import trial_folders, write

HERE = Path(__file__).parent
LOOP = HERE.parents[1] / "agents" / "command" / "loop.py"
CODER = HERE.parents[1] / "agents" / "acp" / "coder.py"

LOOPING: dict[str, Any] = {
    "type": "command",
    "command": ["python", str(LOOP), "--model={model}", "--mcp={mcp_config}", "{question}"],
    "model": "simulated/weather",
    "events": "jsonl",
    "answer": "answer",
    "env": {"OPENAI_BASE_URL": "{model_base_url}", "OPENAI_API_KEY": "{model_key}"},
}
"""An agent that asks its model and calls the tools of its servers."""

PYTHON = Path(sys.executable)
MARK = "quokka4711"
"""What `burglar.py` looks for."""

bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


def evaluate(project: Project, agent: dict[str, Any], **config: Any) -> dict[str, Any]:
    """Run one trial with the weather's server, and return it."""
    question = {"id": "q1", "question": "What is the weather in Oslo?", "answer": "Oslo"}
    whole = {
        "dataset": {"path": "q.jsonl"},
        "metrics": ["basic/contains"],
        "agents": {"mine": agent},
        "contexts": {"weather": {}},
        "conditions": {"with": {"contexts": ["weather"]}},
        "execution": {"retry": {"max_attempts": 1}},
        **config,
    }
    write(project.root, {"q.jsonl": json.dumps(question), "eval.yaml": json.dumps(whole)})
    shutil.rmtree(project.root / "results", ignore_errors=True)
    outcome = project.keval("run", "eval.yaml", "-q")
    (trial,) = project.lines("trials.jsonl")
    assert (0, None) == (outcome.code, trial["failure"]), outcome.stderr
    return trial


@pytest.mark.slow
@bubblewrap
def test_an_agent_finds_neither_the_checks_nor_keys_nor_other_trials(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    serve_here(monkeypatch)
    monkeypatch.setenv("KEY_OF_KEVAL", f"sk-{MARK}")
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    write(temporary, {f"keval-trial-neighbour/work/{MARK}.txt": MARK})
    write(project.root, {f"{MARK}_check.py": MARK, "burglar.py": (HERE / "burglar.py").read_text("utf-8")})
    looked = {}
    key = {"KEY_OF_KEVAL": f"sk-{MARK}"}
    another = subprocess.Popen([sys.executable, "-S", "-c", "input()"], env=key, stdin=subprocess.PIPE)
    with another, socket.create_server(("127.0.0.1", 0)) as forbidden:
        port = forbidden.getsockname()[1]
        for sandbox, root in (("none", project.root.parent), ("bubblewrap", Path("/"))):
            burglar = ["python", "burglar.py", str(root), str(port), str(project.root)]
            agent = {**LOOPING, "command": [*burglar, *LOOPING["command"][1:]]}
            trial = evaluate(project, agent, workspace={"artifacts": ["found.json"]}, sandbox=sandbox)
            (artifact,) = trial["transcript"]["end_state"]["artifacts"]
            assert "get_current_weather" in {call["name"] for call in trial["transcript"]["tool_calls"]}
            found = json.loads((project.run_directory() / "blobs" / artifact["sha256"]).read_text("utf-8"))
            looked[sandbox] = {os.path.basename(each) for each in found}
            if sandbox == "none":
                (project.root / "mine").unlink()
        another.communicate(b"\n")

    assert {f"{MARK}_check.py", f"{MARK}.txt", "environ", f"port {port}"} <= looked["none"]
    assert (set(), False) == (looked["bubblewrap"], (project.root / "mine").exists())


def started(root: Path, *command: str, urls: Iterable[str] = (), needs: Iterable[Path] = ()) -> tuple[int, str]:
    """Start a program in bubblewrap, and return its exit code and what it wrote."""
    env = {"PATH": os.environ["PATH"], "HOME": str(root)}
    asked = SandboxedCommand(command, root, env, root, root, [root], [*urls], [*needs])

    async def start() -> tuple[int, str]:
        sandbox = Bubblewrap()
        async with sandbox.command(asked) as shut_in:
            process = await asyncio.create_subprocess_exec(*shut_in, env=env, stdout=PIPE, stderr=STDOUT)
            output, _ = await process.communicate()
            assert process.returncode is not None
            return process.returncode, output.decode()

    return asyncio.run(asyncio.wait_for(start(), 30))


@bubblewrap
def test_a_program_has_what_was_installed_with_it_and_nothing_beside(tmp_path: Path) -> None:
    packages = tmp_path / "prefix" / "lib" / "node_modules"
    script = f"#!/usr/bin/env sh\ncat {packages}/tool/data.txt; cat {tmp_path}/prefix/secret.txt; exit 7\n"
    write(tmp_path, {"prefix/secret.txt": "secret", "root/mine.txt": ""})
    write(packages, {"tool/cli": script, "tool/data.txt": "data\n"})
    (packages / "tool" / "cli").chmod(0o755)
    (tmp_path / "prefix" / "bin").mkdir()
    program = tmp_path / "prefix" / "bin" / "tool"
    program.symlink_to("../lib/node_modules/tool/cli")

    code, output = started(tmp_path / "root", str(program), needs=[program])

    assert (7, f"data\ncat: {tmp_path}/prefix/secret.txt: No such file or directory\n") == (code, output)


@bubblewrap
def test_an_answer_passes_as_it_is_written_and_after_the_question_has_ended(tmp_path: Path) -> None:
    question = """if True:
        import socket, sys
        way = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        way.sendall(b"first")
        answer = way.recv(99)
        way.sendall(b"second")  # which the server reads only after its first answer
        way.shutdown(socket.SHUT_WR)
        while piece := way.recv(99):
            answer += piece
        print(answer.decode())
    """

    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(connection.recv(99) + b", ")
            read = connection.makefile("rb").read()
            connection.sendall(read + b", end")

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as threads:
        answering = threads.submit(answer, listener)
        port = listener.getsockname()[1]
        url = f"http://localhost:{port}/v1"
        told = started(tmp_path, "/usr/bin/env", "python3", "-c", question, str(port), urls=[url], needs=[PYTHON])
        answering.result(10)

    assert (0, "first, second, end\n") == told


@bubblewrap
def test_all_of_a_sandbox_ends_with_its_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = TrialFolder.at(tmp_path)
    shut_in = Confinement(Bubblewrap(), folder, ["http://127.0.0.1:9999"])
    script = "setsid sleep 3613 & sleep 3613 & trap '' TERM; wait"
    env = {"PATH": os.environ["PATH"]}
    process = Process("sh", ["/bin/sh", "-c", script], env, folder.work, shut_in)

    async def scenario() -> None:
        async with running(process, TranscriptBuilder()):
            while len(sleeping()) < 2:  # noqa: ASYNC110 - other processes start
                await asyncio.sleep(0.01)
            raise RuntimeError("cut short")

    with pytest.raises(RuntimeError, match="cut short"):
        asyncio.run(asyncio.wait_for(scenario(), 30))
    assert ([], set()) == (sleeping(), trial_folders())


def sleeping() -> list[str]:
    """The processes that `test_all_of_a_sandbox_ends_with_its_trial` has started, and that still are."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += [path.parent.name] if path.read_bytes() == b"sleep\0003613\0" else []
    return found


@bubblewrap
def test_a_terminal_is_shut_in_like_its_agent(tmp_path: Path) -> None:
    write(tmp_path, {"check.py": "secret", "root/notes/mine.txt": "mine"})
    root = tmp_path / "root"
    folder = TrialFolder.at(root, root)
    terminals = Terminals({"PATH": os.environ["PATH"]}, Confinement(Bubblewrap(), folder))

    async def scenario() -> str:
        terminal = await terminals.create(f"cat mine.txt {tmp_path}/check.py", None, {}, root / "notes", None)
        await terminals.get(terminal).wait()
        await terminals.close()
        return terminals.output(terminal)

    output = asyncio.run(asyncio.wait_for(scenario(), 30))

    assert f"minecat: {tmp_path}/check.py: No such file or directory\n" == output


def test_a_command_in_front_gets_folders_and_names_of_variables(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Docker in small: it takes Docker's options, and gives the program the variables that are named and no others.
    docker = f"""#!{sys.executable}
import argparse, os, sys
options = argparse.ArgumentParser()
options.add_argument("-i", action="store_true")
for name in ("--network", "-v", "-w", "--env"):
    options.add_argument(name, action="append")
options.add_argument("run", choices=["run"])
options.add_argument("image", choices=["image"])
options.add_argument("command", nargs=argparse.REMAINDER)
told = options.parse_args()
os.chdir(told.w[0])
assert all(each.split(":")[0] == each.split(":")[1] for each in told.v), told.v
env = {{name: os.environ[name] for name in told.env}}
root = told.v[0].split(":")[0]
assert env.keys().isdisjoint(("PATH", "HOME")) and os.path.dirname(env["KEVAL_INSIDE_HOME"]) == root, env
assert not os.environ["HOME"].startswith(root), "Docker would read the settings that a program left"
os.execve(told.command[0], told.command, {{"PATH": {os.path.dirname(sys.executable)!r} + ":/usr/bin:/bin", **env}})
"""
    write(project.root, {"bin/docker": docker})
    (project.root / "bin" / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(project.root / "bin"), prepend=os.pathsep)
    words = "docker run -i --network host -v {root}:{root} -v {workspace}:{workspace} -w {workspace} {env} image"

    program = "import os; print(os.environ['HOME'], os.getcwd(), os.environ['MOOD'])"
    agent = {"type": "command", "command": ["python", "-c", program], "env": {"MOOD": "fine"}}

    trial = evaluate(project, agent, sandbox={"command": words.split()}, contexts={}, conditions={"alone": {}})

    home, work, mood = trial["output"].split()
    assert ("home", "work", "fine") == (Path(home).name, Path(work).name, mood)
    assert {"command": words.split()} == trial["transcript"]["end_state"]["facts"]["sandbox"]


@pytest.mark.parametrize(
    ("sandbox", "problem"),
    [
        ({"command": []}, "'command' must name a program, such as docker"),
        ({"command": ["docker", "-v", "{rot}"]}, "'command' must have known placeholders only, got {rot}; did you"),
        ({"command": ["docker", "-e{env}"]}, "'command' must have {env} as a word of its own, got '-e{env}'"),
        ({"command": ["no-such-program"]}, "the sandbox's command 'no-such-program' is not found on PATH; install"),
        ({"bubblewrap": {"read": ["missing"]}}, "missing, which the sandbox is to show, is not there; name what is"),
        ("bubblewrap", "bubblewrap is not installed; install it (Debian, Ubuntu: apt install bubblewrap; Fedora"),
    ],
)
def test_a_sandbox_that_cannot_start_is_an_error_before_the_run(
    project: Project, sandbox: Any, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sandbox == "bubblewrap":
        monkeypatch.setenv("PATH", os.path.dirname(sys.executable))
    elif "bubblewrap" in sandbox and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    agent = {"type": "command", "command": ["python", "-c", "print()"]}
    config = {"dataset": {"path": "q.jsonl"}, "metrics": ["basic/contains"], "agents": {"mine": agent}}
    write(
        project.root,
        {"q.jsonl": '{"id": "q", "question": "?"}', "eval.yaml": json.dumps({**config, "sandbox": sandbox})},
    )

    outcome = project.keval("run", "eval.yaml")
    column = 1 + (project.root / "eval.yaml").read_text(encoding="utf-8").index('"sandbox"')

    assert (2, True) == (outcome.code, problem in outcome.stderr), outcome.stderr
    assert f"eval.yaml:1:{column}: " in outcome.stderr or sandbox != "bubblewrap", outcome.stderr


@bubblewrap
def test_a_server_that_a_shut_in_agent_starts_works_in_its_folder_and_without_a_supervisor(tmp_path: Path) -> None:
    workspace = attrs.make_class("Made", ["folder", "sandbox"])(tmp_path, Bubblewrap())
    program, *arguments = supervised(("/bin/sh", "-c", "echo $PPID"))
    given = McpServer("s", "stdio", command=program, args=tuple(arguments))

    (server,) = inside(Context(servers=(given,), workspace=workspace)).servers

    assert str(tmp_path) == server.cwd
    assert (0, "1\n") == started(tmp_path, str(server.command), *server.args)


@bubblewrap
def test_a_server_elsewhere_cannot_be_reached(tmp_path: Path) -> None:
    with pytest.raises(TrialError, match=r"cannot reach the\.example from its sandbox"):
        started(tmp_path, "true", urls=["https://the.example/mcp"])


@pytest.mark.slow
@bubblewrap
@pytest.mark.parametrize("recipe", RECIPES)
def test_real_agents_ask_their_model_and_call_tools_from_a_sandbox(
    project: Project, monkeypatch: pytest.MonkeyPatch, recipe: str
) -> None:
    serve_here(monkeypatch)
    monkeypatch.setenv("PATH", installed())

    trial = evaluate(project, {**RECIPES[recipe], "model": "simulated/weather"}, sandbox="bubblewrap")

    assert ["get_current_weather"] == [call["name"] for call in trial["transcript"]["tool_calls"]]
    assert "bubblewrap" in trial["transcript"]["end_state"]["facts"]["sandbox"]
