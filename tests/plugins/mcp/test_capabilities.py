"""Servers that list other tools to clients that can do more: what agents get of them, and how often they start."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from mcp import Client

from tests.conftest import Project
from tests.plugins.mcp.agent_clients import answering, connected, ordering, said
from tests.processes import serving
from tests.stdio_server import ENVIRONMENT

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

CONTEXT = """
contexts:
  choosy: {{from: plain, rename: {{echo: say}}}}
  plain:
    type: stdio
    command: python
    args: [-m, tests.plugins.mcp.servers.choosy{more}]
    env: {{PYTHONPATH: "{path}", CHOOSY: "{folder}"}}
"""
EVALUATION = """
dataset: {path: questions.jsonl}
metrics: [basic/contains]
agents: {mine: {type: command, command: [python, client.py, "{mcp_config}", "{question}"]}}
conditions: {with: {contexts: [choosy]}}
execution: {max_concurrent: 1, retry: {max_attempts: 1}}
"""
PROGRAM = """
    import json, sys, urllib.request

    url = next(iter(json.load(open(sys.argv[1]))["mcpServers"].values()))["url"]
    capabilities, names = json.loads(sys.argv[2])
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    reach = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


    def post(**message):
        request = urllib.request.Request(url, json.dumps({"jsonrpc": "2.0", **message}).encode(), headers)
        with reach(request) as response:
            if session := response.headers.get("mcp-session-id"):
                headers["mcp-session-id"] = session
            for line in response:
                if line.startswith((b"data:", b"{")):
                    said = json.loads(line.removeprefix(b"data:"))
                    if "method" not in said:
                        return said["result"]
                    if "id" in said:
                        post(id=said["id"], result={"asked": said["method"]})


    about = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": {"name": "c", "version": "1"}}
    post(id=1, method="initialize", params=about)
    listed = [tool["name"] for tool in post(id=2, method="tools/list")["tools"]]
    arguments = {"method": "vendor/question", "params": {"about": "x"}}
    calls = [post(id=3, method="tools/call", params={"name": name}) for name in names]
    calls.append(post(id=4, method="tools/call", params={"name": "say", "arguments": arguments}))
    print(json.dumps([listed, *(call["content"][0]["text"] for call in calls)]))
"""


@pytest.fixture
def write(project: Project) -> Callable[..., Path]:
    """Write a config with the server, options of its and samples; return the folder that the server writes into."""

    def write(options: str = "", samples: Any = (), modern: str = "", rest: str = EVALUATION) -> Path:
        folder = project.root / "choosy"
        folder.mkdir()
        context = CONTEXT.format(path=ENVIRONMENT["PYTHONPATH"], folder=folder, more=modern)
        questions = [{"id": f"q{n}", "question": json.dumps(each), "answer": "for"} for n, each in enumerate(samples)]
        lines = "\n".join(map(json.dumps, questions))
        project.write(eval_yaml=rest + context + options, questions_jsonl=lines, client_py=PROGRAM)
        return folder

    return write


def begun(folder: Path) -> Counter[str]:
    """Return to what clients the server listed its tools, and how often."""
    return Counter(folder.joinpath("begun").read_text().splitlines())


ROOTS: dict[str, Any] = {"roots": {"listChanged": True}}


@pytest.mark.parametrize(("isolation", "listed"), [("trial", {"": 2, "roots": 3}), ("auto", {"": 2, "roots": 3})])
def test_a_run_is_recorded_and_played_with_what_the_server_lists_to_its_agent(
    project: Project, write: Callable[..., Path], isolation: str, listed: dict[str, int]
) -> None:
    folder = write(f"    isolation: {isolation}\n", [[ROOTS, ["roots"]]] * 3)

    recorded = project.keval("run", "eval.yaml", "--record")

    trials = project.lines("trials.jsonl")
    # It starts for the list before the first trial, for that trial, again as it says what it can do, and then once for
    # each trial: without isolation by trial the first two are one, and one has been started ahead.
    assert (0, listed) == (recorded.code, begun(folder)), recorded.stderr
    asked = {"id": "q", "jsonrpc": "2.0", "result": {"asked": "vendor/question"}}
    expected = [["say", "roots"], f"roots for {json.dumps({'client': ROOTS})}", f"echo for {json.dumps(asked)}"]
    assert [expected] * 3 == [json.loads(trial["output"]) for trial in trials]
    calls = [call for trial in trials for call in trial["transcript"]["tool_calls"]]
    (held,) = {call["listing"] for call in calls}
    assert ["say", "roots"] == [
        tool["name"] for tool in json.loads(next(project.root.glob(f"results/**/{held}*")).read_text())["tools"]
    ]

    folder.joinpath("begun").unlink()
    replayed = project.keval("run", "eval.yaml", "--replay", str(project.run_directory()), "-o", "again")

    again = [json.loads(line) for line in next(project.root.glob("again/*/*/trials.jsonl")).read_text().splitlines()]
    assert (0, False) == (replayed.code, folder.joinpath("begun").exists()), replayed.stderr
    assert [trial["output"] for trial in trials] == [trial["output"] for trial in again]
    assert [call["listing"] for call in calls] == [
        call["listing"] for trial in again for call in trial["transcript"]["tool_calls"]
    ]


def test_an_agent_that_declares_less_than_before_gets_what_is_listed_to_it(
    project: Project, write: Callable[..., Path]
) -> None:
    write(samples=[[{}, []], [ROOTS, []], [{"sampling": {}}, []]])

    assert 0 == project.keval("run", "eval.yaml").code

    listed = [(trial["sample"], json.loads(trial["output"])[0]) for trial in project.lines("trials.jsonl")]
    assert [("q1", ["say", "roots"]), ("q0", ["say"]), ("q2", ["say", "sampling"])] == listed


def test_a_server_that_lists_other_tools_to_equal_clients_has_changed(
    project: Project, write: Callable[..., Path]
) -> None:
    folder = write("    isolation: trial\n", [[ROOTS, []]] * 2)
    more = str(folder / "more")
    program = project.root / "client.py"
    program.write_text(f"{program.read_text()}\nopen({more!r}, 'w').write('news')\n")

    assert 3 == project.keval("run", "eval.yaml").code

    first, second = project.lines("trials.jsonl")
    assert ["tools_changed"] * 2 == [trial["failure"]["kind"] for trial in (first, second)]
    assert "came back with other tools than at the start of the run: with news" in second["failure"]["message"]


@pytest.mark.parametrize(("how", "more"), [("freeze", []), ("follow", ["news"])])
def test_what_a_trial_is_offered_of_a_list_that_changed_before(
    project: Project, write: Callable[..., Path], how: str, more: list[str]
) -> None:
    folder = write(f"    dynamic_tools: {how}\n    isolation: trial\n", [[ROOTS, []]] * 2)
    program = project.root / "client.py"
    program.write_text(f"{program.read_text()}\nopen({str(folder / 'more')!r}, 'w').write('news')\n")

    recorded = project.keval("run", "eval.yaml", "--record")
    (folder / "more").unlink()
    program.write_text(dedent(PROGRAM))
    replayed = project.keval("run", "eval.yaml", "--replay", str(project.run_directory()), "-o", "again")

    for outcome, results in ((recorded, "results"), (replayed, "again")):
        trials = next(project.root.glob(f"{results}/*/*/trials.jsonl")).read_text().splitlines()
        listed = [json.loads(json.loads(trial)["output"])[0] for trial in trials]
        assert (0, [["say", "roots"], ["say", "roots", *more]]) == (outcome.code, listed), outcome.stderr


@pytest.mark.parametrize("modern", ["", ", modern"])
def test_each_client_of_the_tap_gets_what_is_listed_to_it(
    project: Project, write: Callable[..., Path], modern: str
) -> None:
    folder = write(modern=modern, rest="")  # `keval tap` needs no conditions
    mode = "auto" if modern else "legacy"

    async def use(client: Client) -> list[Any]:
        names = [tool.name for tool in (await client.list_tools()).tools]
        return [names, said(await client.call_tool("say")).partition(" ")[0]]

    async def client(url: str, options: dict[str, Any]) -> list[Any]:
        async with connected(url, {**options, "mode": mode}) as connection:
            return await use(connection)

    async def clients(url: str) -> list[Any]:
        able = [answering("file:///mine"), {}, ordering(), answering("file:///yours")]
        alone = [await client(url, each) for each in able]
        return alone + await asyncio.gather(*(client(url, each) for each in able))

    with serving(project.root, "tap", "eval.yaml", "--context", "choosy", "--port", "0") as url:
        seen = asyncio.run(clients(url))

    names = [["say", "elicitation", "roots", "sampling"], ["say"], ["say", "elicitation", "roots"]]
    assert [[each, "echo"] for each in [*names, names[0]]] * 2 == seen
    if not modern:  # once for each client; the first without capabilities gets the one that was started for the list
        assert {"": 2, "elicitation roots": 2, "elicitation roots sampling": 4} == begun(folder)
