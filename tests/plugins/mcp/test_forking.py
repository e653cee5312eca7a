"""Processes that are forked from a template are as those that are started, and cost no import of their packages."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from keval import Sample
from keval.plugin import PreflightError, ServerLostError
from keval.seams.contexts import WorkingFolder
from keval_mcp import Stdio
from tests.conftest import Project
from tests.contexts import started
from tests.stdio_server import ENVIRONMENT

COUNTED = """\
from pathlib import Path
with Path(__file__).with_suffix(".count").open("a") as file:
    file.write("x")
"""
"""A module that counts how often it is imported."""
ENDING = """\
import atexit
atexit.register(lambda: Path(__file__).with_suffix(".ended.count").open("a").write("x"))
"""
"""What counts how often a program has run its exit handlers."""
LEAVING = {
    "thread": "import threading\nthreading.Thread(target=threading.Event().wait, name='left', daemon=True).start()\n",
    "file": "left = open('/dev/null')\n",
    "local": "import beside\n",
}
"""What a module may leave behind that no fork should have; the last one needs a file that is beside the program."""


@attrs.frozen
class Installed:
    """A Python of the test's own, with a package that is the server, and modules that count their imports."""

    python: Path
    site: Path

    @classmethod
    def at(cls, root: Path) -> Installed:
        venv.create(root, symlinks=True)
        (site,) = root.glob("lib/python*/site-packages")
        installed = cls(root / "bin" / "python", site)
        (site / "tests.pth").write_text(ENVIRONMENT["PYTHONPATH"], encoding="utf-8")
        program = f"import kept\n{COUNTED}{ENDING}from tests.plugins.mcp.servers.copied import main\n"
        for name in ("server", "beside"):
            (root / f"{name}.py").write_text(f"{program}if __name__ == '__main__':\n    main()\n", encoding="utf-8")
        (site / "kept.py").write_text(COUNTED, encoding="utf-8")
        (site / "acme").mkdir()
        (site / "acme" / "__init__.py").write_text(program, encoding="utf-8")
        (site / "acme" / "__main__.py").write_text("from acme import main\nmain()\n", encoding="utf-8")
        (site / "acme-1.dist-info").mkdir()
        (site / "acme-1.dist-info" / "METADATA").write_text("Name: acme\nVersion: 1\n", encoding="utf-8")
        script = "[console_scripts]\nacme-server = acme:main\n"
        (site / "acme-1.dist-info" / "entry_points.txt").write_text(script, encoding="utf-8")
        for name, head in (("acme-server", f"#!{installed.python}"), ("acme-sh", _both(installed.python))):
            (root / "bin" / name).write_text(f"{head}\nimport sys\nfrom acme import main\nmain()\n", encoding="utf-8")
            (root / "bin" / name).chmod(0o755)
        return installed

    def server(self, way: str, **options: Any) -> Stdio:
        root = self.python.parents[1]
        command, *args = {
            "file": [str(self.python), "-u", str(root / "server.py"), "an argument"],
            "module": [str(self.python), "-X", "utf8", "-m", "acme", "an argument"],
            "letters": [str(self.python), "-um", "acme"],
            "folder": [str(self.python), str(self.site / "acme"), "an argument"],
            "code": [str(self.python), "-c", "import kept, sys; from acme import main; main()", "an argument"],
            "script": [str(root / "bin" / "acme-server"), "an argument"],
            "sh": [str(root / "bin" / "acme-sh"), "an argument"],
        }[way]
        return Stdio(command=command, args=tuple(args), **{"isolation": "trial", "start_method": "fork", **options})

    def imports(self, name: str) -> int:
        (counted,) = self.site.parents[2].rglob(f"{name}.count")
        return counted.stat().st_size


def _both(python: Path) -> str:
    """The first lines of a script of both sh and Python, as installers write them where the path is a long one."""
    return f"#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''"


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed.at(tmp_path / "environment")


def _calls(provider: Stdio, sample: Sample, *tools: str, **options: Any) -> list[str]:
    """Call one tool in each trial, one trial after another."""

    async def run() -> list[str]:
        said = []
        async with started(provider, "copied", **options) as source:
            for number, tool in enumerate(tools):
                async with source.open(sample, f"t{number}") as context:
                    assert context.servers[0].channel is not None
                    result = await context.servers[0].channel.call_tool(tool, {})
                    said.append(result["content"][0]["text"])
        return said

    return asyncio.run(run())


@pytest.mark.parametrize("way", ["file", "module", "folder", "code", "script", "sh"])
def test_forked_process_is_as_one_that_is_started(
    installed: Installed, sample: Sample, tmp_path: Path, way: str
) -> None:
    options = {"env": {"COLOUR": "żółty", "EMPTY": ""}, "cwd": tmp_path}
    forked, spawned = (
        [
            json.loads(said)
            for said in _calls(installed.server(way, start_method=method, **options), sample, "begun", "begun")
        ]
        for method in ("fork", "spawn")
    )
    for told in (*forked, *spawned):
        assert told["environment"].pop("KEVAL_ATTEMPT")
        for name in ("PWD", "OLDPWD", "SHLVL", "_"):  # a shell's own
            told["environment"].pop(name, None)

    assert spawned == forked
    assert ["t0", "t1"] == [told["environment"]["KEVAL_TRIAL"] for told in forked]


@pytest.mark.parametrize("way", ["file", "letters"])
def test_no_state_crosses_trials(installed: Installed, sample: Sample, way: str) -> None:
    said = _calls(installed.server(way), sample, *["count"] * 4)

    assert ["1"] * 4 == said


def test_each_process_draws_its_own_numbers(installed: Installed, sample: Sample) -> None:
    said = _calls(installed.server("file"), sample, *["draw"] * 4)

    assert 4 == len({*said})


def test_what_needs_the_program_is_imported_by_each_process(installed: Installed, sample: Sample) -> None:
    (installed.site / "needing.py").write_text("import acme\n", encoding="utf-8")
    program = installed.site / "acme" / "__init__.py"
    program.write_text("import needing\n" + program.read_text(encoding="utf-8"), encoding="utf-8")

    _calls(installed.server("module"), sample, *["count"] * 3)

    # Three trials, the first process, and a template that was given up.
    assert 5 == installed.imports("__init__")


def test_each_process_seeds_numpy(installed: Installed, sample: Sample) -> None:
    (installed.site / "numpy").mkdir()
    (installed.site / "numpy" / "__init__.py").touch()
    (installed.site / "numpy" / "random.py").write_text(
        "seeds = []\nseed = lambda: seeds.append(0)\n", encoding="utf-8"
    )
    program = installed.python.parents[1] / "server.py"
    program.write_text("import numpy.random\n" + program.read_text(encoding="utf-8"), encoding="utf-8")

    said = _calls(installed.server("file"), sample, *["seeds"] * 3)

    assert ["1"] * 3 == said


@pytest.mark.parametrize(("way", "own"), [("file", "server"), ("module", "__init__"), ("script", "__init__")])
def test_packages_are_imported_once_for_all_and_the_program_each_time(
    installed: Installed, sample: Sample, way: str, own: str
) -> None:
    _calls(installed.server(way, isolation="auto"), sample, *["count"] * 4, start_ahead=4)

    assert (2, 4) == (installed.imports("kept"), installed.imports(own)), "the first process imports what it needs"


@pytest.mark.parametrize("leaves", LEAVING)
def test_what_leaves_something_behind_is_imported_by_each_process(
    installed: Installed, sample: Sample, leaves: str
) -> None:
    (installed.site / "leaving.py").write_text(COUNTED + LEAVING[leaves], encoding="utf-8")
    program = installed.python.parents[1] / "server.py"
    program.write_text("import leaving\n" + program.read_text(encoding="utf-8"), encoding="utf-8")

    said = _calls(installed.server("file"), sample, *["threads"] * 3)

    assert [str(["left"] if leaves == "thread" else [])] * 3 == said
    # Three trials, the first process, and a template that was given up.
    assert (5, 2) == (installed.imports("leaving"), installed.imports("kept"))


def test_program_ends_as_python_ends(installed: Installed, sample: Sample) -> None:
    _calls(installed.server("file"), sample, *["count"] * 3)

    assert 3 + 1 == installed.imports("server.ended")


def test_each_process_has_its_own_folder(installed: Installed, sample: Sample, tmp_path: Path) -> None:
    (tmp_path / "copied").mkdir()
    (tmp_path / "copied" / "server.py").write_text(
        (installed.python.parents[1] / "server.py").read_text(encoding="utf-8"), encoding="utf-8"
    )
    folder = WorkingFolder(copy=tmp_path / "copied")
    server = attrs.evolve(installed.server("file"), args=("server.py",), cwd=folder)

    folders = [json.loads(said)["folder"] for said in _calls(server, sample, "begun", "begun")]

    assert 2 == len({*folders} - {str(tmp_path / "copied")})


def test_process_that_dies_is_lost_by_its_own_trial(installed: Installed, attempt: Callable[..., Any]) -> None:
    async def run() -> tuple[str | None, str | None, str]:
        async with (
            started(installed.server("file"), "copied") as source,
            attempt(source, "a") as a,
            attempt(source, "b") as b,
        ):
            await a.call("die")
            return a.log.lost, b.log.lost, await b.call("count")

    lost, spared, said = asyncio.run(run())

    assert (
        "server 'copied' was lost during 'die': it closed the connection\nits standard error ends:\ndying now" == lost
    )
    assert (None, "1") == (spared, said)


def test_program_that_fails_says_why(installed: Installed) -> None:
    (installed.python.parents[1] / "server.py").write_text("raise SystemExit('no key')\n", encoding="utf-8")

    async def start() -> None:
        async with started(installed.server("file"), "copied"):
            pass

    with pytest.raises(PreflightError, match=r"did not come up: .*\nits standard error ends:\nno key$"):
        asyncio.run(start())


def test_nothing_is_forked_when_the_template_has_ended(installed: Installed, sample: Sample) -> None:
    async def run() -> None:
        before = _children()
        async with started(installed.server("file"), "copied") as source:
            (supervisor,) = _children() - before
            ended = os.pidfd_open(supervisor)
            os.kill(supervisor, signal.SIGTERM)
            (poll := select.poll()).register(ended, select.POLLIN)  # `select` takes no descriptor above 1,023
            await asyncio.to_thread(poll.poll)
            os.close(ended)
            async with source.open(sample, "t"):
                pass

    with pytest.raises(ServerLostError, match="'copied' did not come up: the template of its processes has ended"):
        asyncio.run(run())


@pytest.mark.slow
def test_process_that_nobody_waits_for_any_more_is_not_left(installed: Installed, sample: Sample) -> None:
    async def run() -> str:
        async with started(installed.server("file", startup_timeout=2), "copied") as source:
            (supervisor,) = _children() - before
            (template,) = _children(supervisor)
            os.kill(template, signal.SIGSTOP)
            try:
                async with source.open(sample, "t"):
                    return "came up"
            except ServerLostError as lost:
                return str(lost)
            finally:
                os.kill(template, signal.SIGCONT)

    before = _children()

    assert "server 'copied' did not answer within 2 s; raise its startup_timeout" in asyncio.run(run())
    assert before == _children()


def test_no_process_is_left(installed: Installed, sample: Sample) -> None:
    before = _children()

    _calls(installed.server("script", isolation="auto"), sample, *["count"] * 3, start_ahead=3)

    assert before == _children()


def _children(process: int = os.getpid()) -> set[int]:
    """The processes that this one, or another one, has started."""
    return {int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["uvx", "acme-server"], ["python"], ["python", "-"], ["python", "-i"], ["node.js", "index.js"]]
)
def test_command_that_cannot_be_forked_is_refused_at_its_place(project: Project, command: list[str]) -> None:
    for name in ("uvx", "node.js"):
        program = project.root / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/usr/bin/env node\n", encoding="utf-8")
        program.chmod(0o755)
    server = {
        "type": "stdio",
        "command": command[0],
        "args": command[1:],
        "env": {"PATH": f"{project.root / 'bin'}:{os.environ['PATH']}"},
        "start_method": "fork",
    }
    project.write(eval_yaml=json.dumps(_config(server), indent=1), q_jsonl=json.dumps({"id": "1", "question": "Hm?"}))

    outcome = project.run("eval.yaml")

    assert 2 == outcome.code
    assert "eval.yaml:11:3: server 'it': '" in outcome.stderr
    assert "starts no Python program that can be forked; for start_method: fork give `python FILE`" in outcome.stderr


def test_server_that_agents_start_themselves_is_not_forked(project: Project) -> None:
    server = {"type": "stdio", "command": "python", "args": ["server.py"], "start_method": "fork", "tap": False}
    project.write(eval_yaml=json.dumps(_config(server), indent=1), q_jsonl=json.dumps({"id": "1", "question": "Hm?"}))

    outcome = project.keval("validate", "eval.yaml")

    assert 2 == outcome.code
    assert "keval starts no server that agents start themselves: 'fork' must go with the tap" in outcome.stderr


def _config(server: dict[str, Any]) -> dict[str, Any]:
    return {
        "dataset": {"path": "q.jsonl"},
        "agents": {"openai": {"model": "simulated/weather"}},
        "contexts": {"it": server},
        "conditions": {"with_it": {"contexts": ["it"]}},
        "metrics": ["basic/tool_called"],
    }
