"""However keval ends, no server, gateway or agent outlives it, and no file stays but the run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import Project
from tests.stdio_server import ENVIRONMENT

SIGNALS = [
    signal.SIGKILL,
    *(pytest.param(how, marks=pytest.mark.slow) for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)),
]
WAYS = ("deaf", "daemon", "hangs", "wrapped", "direct")


@pytest.fixture
def unruly(weather: Callable[..., Project]) -> Project:
    """A project with the weather server over both transports, and with servers that do not want to end."""
    return weather(
        ("gadk: ", "openai: "),  # the quickest to import
        ("weather: {}", "weather: {}\n  over-http: {type: weather, transport: http}\n" + _contexts(Path.cwd())),
        (
            "contexts: [weather]}",
            "contexts: [weather]}\n  other: {contexts: [over-http]}\n"
            + "".join(f"  {way}: {{contexts: [{way}]}}\n" for way in WAYS),
        ),
        ("execution: {", "execution: {grace_seconds: 0.5, "),
    )


def _contexts(root: Path) -> str:
    written = ""
    for way in WAYS:
        server = [sys.executable, "-m", "tests.end_to_end.servers.unruly"]
        options: dict[str, object] = {"type": "stdio", "env": ENVIRONMENT}
        if way == "wrapped":
            command = ["sh", "-c", 'exec 3<&0; "$@" <&3 & wait', "sh", *server, "deaf"]
        elif way == "direct":
            command, options["tap"] = [*server, "hangs"], False
        else:
            command = [*server, way]
        options |= {"command": command[0], "args": [*command[1:], str(root / f"called-{way}")]}
        written += f"  {way}: {json.dumps(options)}\n"
    return written


@pytest.mark.slow
@pytest.mark.parametrize("how", SIGNALS, ids=lambda how: how.name)
def test_no_process_outlives_keval(unruly: Project, how: signal.Signals, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    options = ("--sample-id", "helsinki-now", "--repetitions", "8", "-q")
    command = [sys.executable, "-m", "keval", "run", "eval.yaml", *options]
    process = subprocess.Popen(command, cwd=unruly.root, env={**os.environ, "TMPDIR": str(temporary)})
    try:
        _wait(lambda: all((unruly.root / f"called-{way}").exists() for way in ("hangs", "direct")), 60)
        children = _children(process.pid)
        assert len(WAYS) <= len(_named(unruly.root))
        process.send_signal(how)
        process.wait(timeout=30)
    finally:
        process.kill()
        process.wait()

    # A gateway and two servers at least.
    assert 3 <= len(children)
    _wait(lambda: not any(_runs(child) for child in {*children, *_named(unruly.root)}), 20)
    assert [] == list(temporary.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["finished", pytest.param("preflight", marks=pytest.mark.slow)])
def test_no_process_outlives_a_run_that_ends_by_itself(
    unruly: Project, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keval_mcp.server.process._STDIN_SECONDS", 0.2)
    conditions = [flag for way in ("deaf", "daemon", "wrapped") for flag in ("--condition", way)]
    if ending == "preflight":
        config = (unruly.root / "eval.yaml").read_text(encoding="utf-8")
        config = config.replace("contexts:\n", "contexts:\n  missing: {type: stdio, command: 'false'}\n", 1)
        config = config.replace("contexts: [deaf]", "contexts: [deaf, missing]", 1)
        (unruly.root / "eval.yaml").write_text(config, encoding="utf-8")

    outcome = unruly.run("eval.yaml", *conditions, "--sample-id", "helsinki-now", "-q")

    assert (2 if ending == "preflight" else 0) == outcome.code, outcome.stderr
    assert [] == _named(unruly.root)


def _children(parent: int) -> list[int]:
    """All descendants, from /proc."""
    found = []
    for task in Path(f"/proc/{parent}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # of a thread that has ended meanwhile
            for child in (task / "children").read_text(encoding="ascii").split():
                found += [int(child), *_children(int(child))]
    return found


def _named(root: Path) -> list[int]:
    """All processes with a file of `root` in their command line, wherever they have gone."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if f"{root}/called-".encode() in command and _runs(int(process.name)):
            found.append(int(process.name))
    return found


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


def _wait(until: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
