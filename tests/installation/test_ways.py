"""Each way to install keval leads an empty folder from `init` to a report, beside a package of somebody else.

What is missing is named with a line that installs it in the same way, and the workflow that `ci init` writes installs
keval from where it came.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import attrs
import pytest
import yaml

from tests.installation.conftest import ROOT, Newcomer

pytestmark = pytest.mark.installation

SERVER = """
from stdio_server import Tool, serve, text

BERTHS = {"Grindle": "berth 7, depth 9.5 m", "Ferrowick": "berth 2, depth 6 m", "Skarholm": "berth 4, depth 11 m"}
named = {"harbour": {"type": "string", "enum": list(BERTHS), "description": "The name of the harbour."}}
hints = {"readOnlyHint": True}
find = Tool(lambda given, meta: text(BERTHS[given["harbour"]]), named, ("harbour",), "Tell a harbour's berth.", hints)
serve("harbour", lambda: {"find_berth": find})
"""


@attrs.frozen
class Way:
    """Commands that install keval from `{clone}`, how it is typed then, and where its programs are.

    `links` says that an index has keval, in whose place a folder of wheels stands.
    """

    commands: tuple[str, ...]
    keval: str = "keval"
    bin: str | None = None
    links: bool = False


WAYS = {
    "uv tool": Way(("uv tool install {clone}",)),
    "uv tool, git": Way(("uv tool install git+file://{clone}",)),
    "uvx": Way((), "uvx --from {clone} keval"),
    "uv add": Way(("uv init --bare --name mine", "uv add {clone}"), "uv run keval"),
    "uv pip": Way(("uv venv", "uv pip install {clone}"), bin=".venv/bin"),
    "pip, wheels": Way(
        ("python3 -m venv mine", "mine/bin/pip install -c {clone}/constraints.txt keval"), bin="mine/bin", links=True
    ),
}


@pytest.mark.parametrize("name", WAYS)
def test_a_way_to_install_keval_leads_to_a_report(
    newcomer: Newcomer, clone: Path, name: str, request: pytest.FixtureRequest
) -> None:
    way = WAYS[name]
    newcomer.links = request.getfixturevalue("wheels") if way.links else None
    shutil.copy(ROOT / "tests" / "stdio_server.py", newcomer.folder)
    (newcomer.folder / "harbour.py").write_text(SERVER, encoding="utf-8")
    newcomer.bin = newcomer.folder / way.bin if way.bin else None
    newcomer.keval = way.keval.format(clone=clone)
    for command in way.commands:
        newcomer.type(command.format(clone=clone))

    initiated = newcomer.type(f"{newcomer.keval} init", typed="1\npython harbour.py\n1\n\n")
    assert "harbour has 1 tool: find_berth" in initiated.stdout
    (following,) = re.findall(r"^next  (.*)$", initiated.stdout, re.MULTILINE)
    assert following.startswith(newcomer.keval)
    if "review" in following:
        newcomer.type(f"{newcomer.keval} review eval.yaml --questions --accept-all")
    assert "none failed" in newcomer.type(f"{newcomer.keval} run eval.yaml").stdout
    newcomer.type(f"{newcomer.keval} report latest --html report.html")
    assert "<html" in (newcomer.folder / "report.html").read_text(encoding="utf-8")
    newcomer.type(f"python3 {ROOT}/tests/visit.py {shlex.quote(newcomer.keval)} results")
    newcomer.type(f"{newcomer.keval} generate eval.yaml -n 2 --to more.jsonl")
    newcomer.type(f"{newcomer.keval} check eval.yaml --samples 2")
    assert "Usage" in newcomer.type(f"{newcomer.keval} play --help").stdout

    run_workflow(newcomer)
    add_what_is_missing(newcomer)
    add_a_package_of_ones_own(newcomer)


def run_workflow(newcomer: Newcomer) -> None:
    """Install keval as the workflow does, and check the config with that."""
    newcomer.type(f"{newcomer.keval} ci init --host github --on every")
    workflow = yaml.safe_load((newcomer.folder / ".github/workflows/keval.yaml").read_text(encoding="utf-8"))
    (install,) = [step["run"] for step in workflow["jobs"]["evaluate"]["steps"] if step.get("name") == "Install"]
    ci = attrs.evolve(newcomer, folder=newcomer.folder / "ci", bin=None, seconds={})
    shutil.copytree(newcomer.folder, ci.folder, ignore=shutil.ignore_patterns(".*", "results", "ci", "mine"))
    ci.type(f"export GITHUB_PATH=path.txt\n{install}")
    assert [str(ci.tools)] == (ci.folder / "path.txt").read_text(encoding="utf-8").split()
    ci.type("keval validate eval.yaml")


def add_a_package_of_ones_own(newcomer: Newcomer) -> None:
    """Write the package of a metric, and do what `keval new` says then."""
    told = newcomer.type(f"{newcomer.keval} new metric acme/brevity").stderr
    *commands, use = [line.strip() for line in told.splitlines() if line.startswith("    ")]
    for command in commands:
        if command.startswith("uvx"):
            newcomer.keval = command
        elif re.search(r"pytest \./acme-brevity$", command):
            assert "1 passed" in newcomer.type(command).stdout
        else:
            newcomer.type(command)
    assert 2 == len(commands)
    used = newcomer.type(newcomer.keval + use.removeprefix("keval") + " --json")
    assert "acme/brevity" in {scorer["metric"] for scorer in json.loads(used.stdout)["scorers"]}
    assert "acme/brevity" in newcomer.type(f"{newcomer.keval} plugins").stdout


def add_what_is_missing(newcomer: Newcomer) -> None:
    """Ask for a plugin that is not installed, and do what the error says."""
    wanted = "run eval.yaml --agent testing/echo --condition baseline"
    refused = newcomer.type(f"{newcomer.keval} {wanted}", code=2)
    (line,) = re.findall(r"comes with keval-testing, which is not installed: `(.*)`", refused.stderr)
    if line.startswith("uvx"):
        newcomer.keval = line
    else:
        newcomer.type(line)
    assert "none failed" in newcomer.type(f"{newcomer.keval} {wanted}").stdout


OLD_SERVER = """
from importlib.metadata import version

from mcp.server.fastmcp import FastMCP

server = FastMCP("depths")


@server.tool()
def depth(harbour: str) -> str:
    return f"{harbour} is 9 m deep, says mcp {version('mcp')}"


server.run()
"""


def test_a_keval_that_is_a_tool_leaves_a_server_its_older_mcp(newcomer: Newcomer, clone: Path) -> None:
    (newcomer.folder / "depths.py").write_text(OLD_SERVER, encoding="utf-8")
    newcomer.type(f"uv tool install {clone}")
    newcomer.type("uv venv server && env -u UV_CONSTRAINT uv pip install --python server/bin/python 'mcp<2'")

    without = newcomer.type("keval init --server 'python depths.py'", code=2)
    newcomer.type("source server/bin/activate && keval init --server 'python depths.py'")
    newcomer.type("source server/bin/activate && keval run eval.yaml")

    assert "is keval's own Python: activate the server's environment, or give its Python's path" in without.stderr
    (path,) = newcomer.folder.glob("results/*/*/trials.jsonl")
    trials = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    results = [call["result"] for trial in trials for call in trial["transcript"]["tool_calls"]]
    assert results
    assert all("says mcp 1." in str(result) for result in results)


def test_the_core_alone_runs_the_parts_of_a_third_party(newcomer: Newcomer, clone: Path) -> None:
    newcomer.bin = newcomer.folder / ".venv" / "bin"
    (newcomer.folder / "questions.jsonl").write_text(
        '{"id": "depth", "question": "How deep is Grindle?", "answer": "9.5 m"}\n'
        '{"id": "berth", "question": "Which berth has Ferrowick?", "answer": "berth 2"}\n',
        encoding="utf-8",
    )
    (newcomer.folder / "eval.yaml").write_text(
        "dataset: {path: questions.jsonl}\n"
        "agents: {clerk: {type: acme/clerk, book: {Grindle: It is 9.5 m deep.}}}\n"
        "metrics: [acme/named]\n",
        encoding="utf-8",
    )
    newcomer.type("uv venv")
    newcomer.type(f"uv pip install {clone}/core {clone}/tests/third_party/acme_alone")

    planned = newcomer.type("keval run eval.yaml --dry-run")
    ran = newcomer.type("keval run eval.yaml --json")
    newcomer.type("keval resume latest --add-repetitions 1")
    newcomer.type("keval score latest")
    answered = newcomer.type(
        """python -c 'import keval; print(keval.open_run().trial("clerk/baseline/depth/1").output)'"""
    )
    listed = newcomer.type("keval list", code=2)
    missing = newcomer.type("keval view", code=2)

    assert "2 trials; nothing was run" in planned.stdout
    assert [0.5] == [arm["mean"] for arm in json.loads(ran.stdout)["arms"]]
    assert "It is 9.5 m deep.\n" == answered.stdout
    assert f"no command 'list'; it comes with keval-report: `uv pip install {clone}/plugins/report`" in listed.stderr
    assert f"no command 'view'; it comes with keval-viewer: `uv pip install {clone}/plugins/viewer`" in missing.stderr
    installed = json.loads(newcomer.type("uv pip list --format json").stdout)
    own = {each["name"] for each in installed if each["name"].startswith("keval")}
    assert {"keval-core"} == own
