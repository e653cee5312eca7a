"""A config written for k-eval runs as it is: Claude Code, a judge, MCP servers, conditions, required tool use."""

from __future__ import annotations

import json
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from keval_gateway import ChatReply, ChatRequest
from keval_simulator.model import SimulatedModel
from tests.conftest import Project
from tests.end_to_end.servers.model import gateway, served
from tests.processes import Listening
from tests.stdio_server import look_up

DOCUMENTED = Path(__file__).parents[2] / "docs" / "from-k-eval.md"
MINIMAL = """
name: "my-eval"
version: "1"
dataset: {path: "./questions.jsonl", question_key: "question", answer_key: "answer"}
agent: {type: "claude_code_sdk", model: "claude-sonnet-4-5"}
judge: {model: "vertex_ai/claude-opus-4-5", temperature: 0.0}
mcp_servers:
  graph: {type: "stdio", command: "python", args: ["-m", "my_mcp_server"]}
conditions:
  baseline: {mcp_servers: [], system_prompt: "Answer using your own knowledge."}
  with_graph: {mcp_servers: [graph], system_prompt: "Use the graph tool to answer the question."}
execution: {num_repetitions: 3, max_concurrent: 5}
"""
REFERENCE = MINIMAL.replace(
    "conditions:",
    """\
  rag:
    type: "sse"
    url: "http://localhost:8080/sse"
    headers: {Authorization: "Bearer ${SEARCH_API_KEY}"}
conditions:
  with_graph_and_search:
    mcp_servers: [graph, rag]
    system_prompt: "You have access to a property graph tool and a rag tool."
""",
).replace("max_concurrent: 5}", "max_concurrent: 5, retry: {max_attempts: 3, initial_backoff_seconds: 1}}")
OVER_HTTP = MINIMAL.replace(
    '{type: "stdio", command: "python", args: ["-m", "my_mcp_server"]}',
    '{type: "http", url: "http://localhost:8080/mcp", headers: {X-API-Key: "${SEARCH_API_KEY}"}}',
).replace('the question."}', 'the question.", require_mcp_tool_success: true}')
DEFAULTS = MINIMAL.replace("execution: {num_repetitions: 3, max_concurrent: 5}", "").replace(
    "temperature: 0.0", "temperature: 0.7"
)
CYPHER = MINIMAL.replace(
    '"Use the graph tool to answer the question."',
    '"Use MATCH (c {name: 1}) RETURN {{c}} LIMIT 10, and {% nothing else %}."',
)
SERVED = f'command: "{sys.executable}", args: ["my_mcp_server.py"]'
SERVER = look_up("The observatory of Lindholm stands at 1,842 m and was opened in 1974.")
QUESTIONS = [
    {"question": "How high does the observatory of Lindholm stand?", "answer": "It stands at 1,842 m."},
    {"question": "When was the observatory of Lindholm opened?", "answer": "It was opened in 1974."},
]


def documented_config() -> str:
    """The config of the page, with a server that exists in place of the two that do not."""
    config = DOCUMENTED.read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0]
    command = f'command: "{sys.executable}"\n    args: ["my_mcp_server.py"]'
    config = config.replace('command: "python"\n    args: ["-m", "my_mcp_server"]', command)
    http = config[config.index("  rag:\n") : config.index("conditions:")]
    return config.replace(http, "\n").replace("[graph, rag]", "[graph]")


@pytest.fixture
def written(project: Project) -> Project:
    project.write(eval_yaml=documented_config(), my_mcp_server_py=SERVER)
    questions = "".join(json.dumps(question) + "\n" for question in QUESTIONS)
    (project.root / "questions.jsonl").write_text(questions, encoding="utf-8")
    return project


def check_results(project: Project) -> None:
    """Every answer is graded by k-eval's rubrics, and the condition that must use a tool did."""
    trials, scores = project.lines("trials.jsonl"), project.lines("scores.jsonl")
    assert 2 * 2 * 3 == len(trials)
    assert {"completeness", "factual_adherence", "helpfulness_and_clarity"} == {line["metric"] for line in scores}
    assert 3 * len(trials) == sum(line["value"] in {1, 2, 3, 4, 5} for line in scores)
    called = {
        condition: {
            call["name"] for t in trials if t["condition"] == condition for call in t["transcript"]["tool_calls"]
        }
        for condition in ("baseline", "with_graph")
    }
    assert {"baseline": set(), "with_graph": {"look_up"}} == called
    assert [True] * 6 == [trial["complied"] for trial in trials if trial["condition"] == "with_graph"]


@pytest.mark.skipif(find_spec("keval_claude_code") is None, reason="keval-claude-code is not installed")
def test_a_config_of_k_eval_runs_unchanged(written: Project) -> None:
    seen: list[ChatRequest] = []

    def respond(request: ChatRequest) -> ChatReply:
        seen.append(request)
        return SimulatedModel()(request)

    with gateway(respond) as environ:
        outcome = written.run("eval.yaml", env=environ)

    assert (0, {"claude-sonnet-5-5", "claude-opus-5-5"}) == (outcome.code, {request.model for request in seen})
    check_results(written)


@pytest.mark.usefixtures("simulated_here")
def test_a_config_of_k_eval_runs_with_another_agent_and_a_simulated_judge(written: Project) -> None:
    others = ("--agent", "openai", "--model", "openai=simulated/any", "-m", "judge=simulated/judge")

    outcome = written.run("eval.yaml", *others)

    assert 0 == outcome.code, outcome.stderr
    assert "SIMULATED MODEL" in outcome.stdout
    check_results(written)


@pytest.mark.usefixtures("simulated_here")
def test_resampling_gives_another_answer_where_no_seed_reaches_the_model(written: Project) -> None:
    config = documented_config().replace("num_repetitions: 3", "num_repetitions: 6")
    config = config.replace("max_attempts: 3", "max_attempts: 8")
    (written.root / "eval.yaml").write_text(config, encoding="utf-8")
    models = ("--model", "agents.anthropic=simulated/careless", "-m", "judge=simulated/judge")

    outcome = written.run("eval.yaml", "--agent", "anthropic", *models, "--condition", "with_graph", "--json")

    # Without a resample count of its own, an answer that ignored the tool would be given eight times.
    told = outcome.data["trials"][0]["compliance"]
    assert (12, 12) == (told["answered"], told["complied"])
    assert told["discarded"] > 0


@pytest.mark.slow
@pytest.mark.usefixtures("simulated_here")
def test_the_judge_that_k_eval_documents_grades_on_vertex_ai(written: Project) -> None:
    from tests.plugins.providers.vendors import private_key, service_account, vertex_ai

    seen: list[ChatRequest] = []

    def respond(request: ChatRequest) -> ChatReply:
        seen.append(request)
        return SimulatedModel()(request)

    config = MINIMAL.replace('command: "python", args: ["-m", "my_mcp_server"]', SERVED)
    (written.root / "eval.yaml").write_text(config, encoding="utf-8")
    others, key = ("--agent", "openai", "--model", "openai=simulated/any"), private_key()
    with served(vertex_ai(respond, key)) as base:
        environ = {
            "GOOGLE_APPLICATION_CREDENTIALS": service_account(written.root, key, base),
            "VERTEXAI_PROJECT": "my-project",
            "VERTEXAI_LOCATION": "europe-west1",
            "VERTEXAI_API_BASE": base,
        }
        valid = written.keval("validate", "eval.yaml", *others, env=environ)
        ran = written.run("eval.yaml", *others, env=environ)

    scores = written.lines("scores.jsonl")
    (note,) = valid.stderr.splitlines()
    assert "with_graph differs from baseline in contexts and system_prompt" in note
    assert (0, 0) == (valid.code, ran.code), ran.stderr
    assert {"claude-opus-4-5"} == {request.model for request in seen}
    assert {"completeness", "factual_adherence", "helpfulness_and_clarity"} == {line["metric"] for line in scores}
    assert 2 * 2 * 3 * 3 == sum(line["value"] in {1, 2, 3, 4, 5} for line in scores)


@pytest.mark.slow
@pytest.mark.parametrize("config", [MINIMAL, REFERENCE, OVER_HTTP, DEFAULTS, CYPHER])
@pytest.mark.usefixtures("simulated_here")
def test_the_configs_that_k_eval_documents_are_valid_and_run(
    written: Project, config: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """They name LiteLLM's models, servers of all transports, and prompts with braces; only the port is another."""
    listening = Listening.start("tests.end_to_end.servers.docs", str(written.root / "calls.jsonl"))
    request.addfinalizer(listening.stop)
    monkeypatch.setenv("SEARCH_API_KEY", "a-key-of-the-search")
    monkeypatch.setenv("NO_GCE_CHECK", "true")  # Google's library would look for a machine of Google's
    (written.root / "eval.yaml").write_text(config.replace(":8080", f":{listening.port}"), encoding="utf-8")
    others = ("--agent", "openai", "--model", "openai=simulated/any")

    valid = written.keval("validate", "eval.yaml", *others)
    refused = written.run("eval.yaml", *others)
    ran = written.run("eval.yaml", *others, "--model", "judge=simulated/judge")

    assert (0, 2, 0) == (valid.code, refused.code, ran.code), ran.stderr
    assert "vertex_ai/claude-opus-4-5 needs it: run `gcloud auth application-default login`" in refused.stderr
    trials, scores = written.lines("trials.jsonl"), written.lines("scores.jsonl")
    conditions = ["baseline", "with_graph", *(["with_graph_and_search"] if "rag" in config else [])]
    assert dict.fromkeys(conditions, 6) == Counter(trial["condition"] for trial in trials)
    assert 3 * len(trials) == sum(line["value"] in {1, 2, 3, 4, 5} for line in scores)
    called = [bool(trial["transcript"]["tool_calls"]) for trial in trials if trial["condition"] == "with_graph"]
    assert any(called)
