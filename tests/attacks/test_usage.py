"""Vendors that tell impossible tokens, and replies that are nested too deeply: unknown and told, never believed."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from tests.attacks.vendor import Vendor, nested, serving
from tests.conftest import Outcome, Project

ROOT = Path(__file__).parents[2]
CONFIG = """
dataset: {path: questions.jsonl}
agents: {mine: AGENT}
CONDITIONS
metrics: [basic/contains]
execution: {max_concurrent: 4, retry: {max_attempts: 1}}
BUDGET
"""
PROGRAM = """
    import json, os, urllib.request
    key, url = os.environ["OPENAI_API_KEY"], os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    headers = {"content-type": "application/json", "authorization": "Bearer " + key}
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "How?"}]}).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as response:
            response.read()
    finally:
        print("It is 5.")
"""
FUNCTION = """
    import json, pathlib
    def answer(question):
        usage = json.loads(pathlib.Path(__file__).with_name("usage.json").read_text())
        return {"answer": "It is 5.", "usage": usage}

    async def whole(sample, context):
        from keval import Message, Transcript, Usage
        usage = json.loads(pathlib.Path(__file__).with_name("usage.json").read_text())
        return Transcript((Message("user", "How?"), Message("assistant", "It is 5.")), usage=Usage(**usage))
"""
AGENTS = {
    "openai": "{type: openai, model: openai/m}",
    "responses": "{type: openai, model: openai/m, api: responses}",
    "anthropic": "{type: anthropic, model: anthropic/m}",
    "gadk": "{type: gadk, model: google/m}",
    "gadk-openai": "{type: gadk, model: openai/m}",
    "gadk-anthropic": "{type: gadk, model: anthropic/m}",
    "ms": "{type: ms, model: openai/m}",
    "program": (
        "{type: command, model: openai/m, command: [python, agent.py], env: {OPENAI_BASE_URL: '{model_base_url}',"
        " OPENAI_API_KEY: '{model_key}'}}"
    ),
}
TOOLS = """
contexts:
  sums: {type: stdio, command: python, args: [-m, keval_testing.stubs, sums]}
conditions:
  tools: {contexts: [sums]}
"""


def attacked(
    project: Project, agent: str, vendor: Vendor, *, conditions: str = "", budget: str = "", questions: int = 1
) -> Outcome:
    config = CONFIG.replace("AGENT", agent).replace("CONDITIONS", conditions).replace("BUDGET", budget)
    asked = "".join(
        json.dumps({"id": f"q{number}", "question": "What is 2 + 3?", "answer": "5"}) + "\n"
        for number in range(questions)
    )
    project.write(eval_yaml=config, questions_jsonl=asked, agent_py=PROGRAM)
    with serving(vendor) as environ:
        return project.keval("run", "eval.yaml", env=environ)


COUNTS = ["-100000", "true", "12.5", '"12"', "1e400", str(10**12), str(10**30), "[1]", nested(5_000)]


CASES = [(agent, count) for agent in AGENTS for count in (COUNTS if agent in ("openai", "program") else COUNTS[::8])]


@pytest.mark.parametrize(("agent", "count"), CASES)
def test_impossible_tokens_are_unknown_and_told_and_end_the_budget(project: Project, agent: str, count: str) -> None:
    outcome = attacked(project, AGENTS[agent], Vendor(usage=(count, "5")), budget="budget: {tokens: 1000}", questions=4)

    trials = project.lines("trials.jsonl")
    failures = [trial["failure"] for trial in trials if trial["failure"]]
    assert (3, [None]) == (outcome.code, [*{trial["transcript"]["usage"]["input_tokens"] for trial in trials}])
    assert [] == [each for each in failures if (each["kind"], each["traceback"]) != ("bad_reply", None)]
    if not failures:
        assert 1 == len(trials), "nothing says what a trial costs, so that no second one begins"
        assert 2 == outcome.stdout.count("what cannot be a count"), "the budget and the cautions say it"


@pytest.mark.parametrize("agent", ["openai", "gadk", "program"])
def test_parts_that_are_larger_than_the_whole_are_unknown(project: Project, agent: str) -> None:
    outcome = attacked(project, AGENTS[agent], Vendor(usage=("10", "5"), parts=("11", "0")))

    (trial,) = project.lines("trials.jsonl")
    usage = trial["transcript"]["usage"]
    assert (10, 5, None) == (usage["input_tokens"], usage["output_tokens"], usage["cached_tokens"])
    assert "cached_tokens: 11" in outcome.stdout


DEPTHS = [(agent, depth) for agent in AGENTS if agent != "program" for depth in (98, 5_000)]


@pytest.mark.slow
@pytest.mark.parametrize(("agent", "depth"), [*DEPTHS, ("ms", 150), ("ms", 900), ("openai", 300)])
def test_arguments_that_are_nested_too_deeply_end_in_an_explained_failure(
    project: Project, agent: str, depth: int
) -> None:
    vendor = Vendor(calls=lambda number: int(number == 1), arguments=f'{{"a": 2, "b": 3, "c": {nested(depth)}}}')

    attacked(project, AGENTS[agent], vendor, conditions=TOOLS)

    (trial,) = project.lines("trials.jsonl")
    failure = trial["failure"]
    assert failure is None or (failure["kind"], failure["traceback"]) == ("bad_reply", None), failure


SERVER = """
    import json, sys

    deep = '{"a":' * DEPTH + "1" + "}" * DEPTH
    tool = {"name": "add", "description": "Add.", "inputSchema": {"type": "object"}}
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "x", "version": "1"},
            },
            "tools/list": {"tools": [tool]},
        }.get(request["method"], {})
        told = json.dumps(result)
        if request["method"] == "tools/call":
            told = '{"content": [{"type": "text", "text": "5"}], "structuredContent": ' + deep + "}"
        print('{"jsonrpc": "2.0", "id": ' + str(request["id"]) + ', "result": ' + told + "}", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("depth", [120, 300, 5_000])
@pytest.mark.parametrize("agent", ["openai", "anthropic", "gadk", "ms"])
def test_results_that_are_nested_too_deeply_end_in_an_explained_failure(
    project: Project, agent: str, depth: int
) -> None:
    project.write(server_py=SERVER.replace("DEPTH", str(depth)))
    vendor = Vendor(calls=lambda number: int(number == 1), arguments='{"a": 2, "b": 3}')

    attacked(project, AGENTS[agent], vendor, conditions=TOOLS.replace("-m, keval_testing.stubs, sums", "server.py"))

    (trial,) = project.lines("trials.jsonl")
    failure = trial["failure"]
    assert failure is None or failure["traceback"] is None, failure
    assert failure is None or failure["stage"] == "mcp"


@pytest.mark.parametrize(
    "told",
    [
        '{"input_tokens": -100000, "output_tokens": 5}',
        '{"input_tokens": 10, "output_tokens": 5, "cached_tokens": 11}',
        '{"input_tokens": 1000000000000, "output_tokens": 5}',
        '{"input_tokens": 10, "output_tokens": 5, "reasoning_tokens": 6}',
    ],
)
@pytest.mark.parametrize("kind", ["python", "http", "transcript"])
def test_what_agents_tell_with_an_answer_is_not_believed_either(project: Project, kind: str, told: str) -> None:
    project.write(told_py=FUNCTION, usage_json=told)
    paths = ", ".join(f"{name}: {name}" for name in json.loads(told))
    agents = {
        "python": "{type: python, target: 'told.py:answer'}",
        "transcript": "{type: python, target: 'told.py:whole'}",
        "http": f"{{type: http, url: '${{OPENAI_BASE_URL}}/chat/completions', answer: 'choices[0].message.content',"
        f" usage: {{{paths}}}}}",
    }
    vendor = Vendor(whole_usage=f"{told}, " + told[1:-1])

    outcome = attacked(project, agents[kind], vendor)

    (trial,) = project.lines("trials.jsonl")
    (name,) = [name for name, count in json.loads(told).items() if trial["transcript"]["usage"][name] != count]
    assert trial["transcript"]["usage"][name] is None
    assert f"cannot be a count of tokens ({name}: " in " ".join(outcome.stdout.split())


TOLD = re.compile(
    r"(prompt|completion|candidates|cached_content|thoughts|input|output|reasoning)_?tokens?_?count|"
    r"(prompt|completion|cache_read_input|cache_creation_input)_tokens",
    re.IGNORECASE,
)
"""How vendors and their SDKs name counts of tokens."""
READERS = {"Usage", "sum_of_counts"}
WRITERS = {
    "core/keval/execute/models/reply_usage.py": "has the names of counts, for Usage",
    "agents/recorded/src/keval_recorded/answer.py": "maps the names in a file to those of Usage",
    "plugins/gateway/src/keval_gateway/protocols": "writes replies",
    "plugins/testing": "plays a vendor",
    "plugins/exports": "writes",
}


@pytest.mark.slow
def test_nobody_reads_counts_of_tokens_around_usage() -> None:
    """What a vendor tells is handed to `Usage` as it is: it alone decides what a count is."""
    found = []
    for path in [each for folder in ("core", "agents", "judges", "plugins") for each in (ROOT / folder).rglob("*.py")]:
        place = str(path.relative_to(ROOT))
        if place.startswith(tuple(WRITERS)) or ".venv" in path.parts:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        checked = {id(part) for call in calls if getattr(call.func, "id", "") in READERS for part in ast.walk(call)}
        for node in ast.walk(tree):
            name = node.value if isinstance(node, ast.Constant) else getattr(node, "attr", None)
            if isinstance(name, str) and TOLD.fullmatch(name) and id(node) not in checked:
                found.append(f"{place}:{getattr(node, 'lineno', 0)}: {name}")

    assert [] == found
