"""What one trial and a whole run may use up, tried by agents that never stop and by trials that differ much."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from collections.abc import Sequence
from typing import Any

import pytest

from keval import Failure
from keval_viewer.play import Play
from tests.attacks.vendor import Vendor, serving
from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents:
  mine: AGENT
contexts:
  sums: {type: stdio, command: python, args: [-m, keval_testing.stubs, sums]}
conditions:
  tools: {contexts: [sums]}
metrics: [basic/contains]
execution: {retry: {initial_backoff_seconds: 0}, timeout_seconds: 60, limits: LIMITS}
"""
QUESTION = json.dumps({"id": "q", "question": "What is 2 + 3?", "answer": "5"})
PROGRAM = """
    import json, os, sys, urllib.request

    def post(url, body, headers=()):
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream", **dict(headers)}
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request) as response:
            return response.read(), response.headers

    key = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    for turn in range(200):
        try:
            post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", {"model": "m", "messages": []}, key)
        except urllib.error.HTTPError as error:
            print(error, file=sys.stderr)
    print("It is 5.")
"""
CALLER = """
    import json, sys, urllib.request

    url = json.loads(open(sys.argv[1]).read())["mcpServers"]["sums"]["url"]
    session = {}

    def post(method, params, id=None):
        body = {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": id} if id else {})
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream", **session}
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request) as response:
            if found := response.headers.get("mcp-session-id"):
                session["mcp-session-id"] = found
            return response.read()

    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    post("initialize", hello, 1)
    post("notifications/initialized", {})
    for id in range(2, 100):
        post("tools/call", {"name": "add", "arguments": {"a": 2, "b": 3}}, id)
    print("It is 5.")
"""
AGENTS = {
    "openai": "{type: openai, model: openai/m, max_turns: 100}",
    "responses": "{type: openai, model: openai/m, api: responses, max_turns: 100}",
    "anthropic": "{type: anthropic, model: anthropic/m, max_turns: 100}",
    "gadk": "{type: gadk, model: google/m}",
    "ms": "{type: ms, model: openai/m, max_turns: 100}",
    "program": (
        "{type: command, model: openai/m, command: [python, agent.py, '{mcp_config}'],"
        " env: {OPENAI_BASE_URL: '{model_base_url}', OPENAI_API_KEY: '{model_key}'}}"
    ),
}


def attacked(
    project: Project, agent: str, limits: str, vendor: Vendor, *, config: str = CONFIG, flags: Sequence[str] = ()
) -> dict[str, Any]:
    """Run an evaluation with one trial against a vendor, and return the trial."""
    config = config.replace("AGENT", agent).replace("LIMITS", limits)
    project.write(eval_yaml=config, questions_jsonl=QUESTION, agent_py=PROGRAM, caller_py=CALLER)
    with serving(vendor) as environ:
        outcome = project.keval("run", "eval.yaml", *flags, env=environ)
    assert 3 == outcome.code, outcome.stdout + outcome.stderr
    (trial,) = project.lines("trials.jsonl")
    return trial


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_that_never_stops_ends_at_its_model_calls(project: Project, agent: str) -> None:
    vendor = Vendor(calls=lambda number: 1, arguments='{"a": 2, "b": 3}')

    trial = attacked(project, AGENTS[agent], "{model_calls: 4}", vendor)

    failure, transcript = trial["failure"], trial["transcript"]
    assert ("limit", None, []) == (failure["kind"], failure["traceback"], trial["attempts"])
    assert "limit of 4 model calls" in failure["message"]
    assert "execution.limits.model_calls" in failure["message"]
    assert (4, 4, 60) == (len(vendor.asked), transcript["model_calls"], transcript["usage"]["input_tokens"] + 20)


@pytest.mark.parametrize(
    ("limits", "told"), [("{model_calls: 3}", "limit of 3 model calls"), ("{cost: 0.03}", "limit of $0.030")]
)
def test_an_answer_of_a_play_ends_at_its_limits_and_each_question_has_its_own(
    project: Project, monkeypatch: pytest.MonkeyPatch, limits: str, told: str
) -> None:
    vendor = Vendor(calls=lambda number: int(number > 2), arguments='{"a": 2, "b": 3}', usage=("1000", "0"))
    prices = "prices: {openai/m: {input: 10, output: 10}}\n"
    config = CONFIG.replace("AGENT", AGENTS["openai"]).replace("LIMITS", limits)
    project.write(eval_yaml=config + prices, questions_jsonl=QUESTION)

    async def talk() -> list[Failure | None]:
        async with Play.open(project.root / "eval.yaml", project.root / "results") as play:
            asked = [await play.ask("one"), await play.ask("two"), await play.ask("three")]
            return [play.run.trial(question.answers[0].trial).failure for question in asked]

    with serving(vendor) as environ:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        first, second, third = asyncio.run(talk())

    assert (None, None) == (first, second)
    assert third is not None
    assert "limit" == third.kind
    assert told in third.message
    assert len(vendor.asked) <= 2 + 4


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_that_never_stops_ends_at_its_tokens(project: Project, agent: str) -> None:
    vendor = Vendor(usage=("90", "10"), calls=lambda number: 1, arguments='{"a": 2, "b": 3}')

    trial = attacked(project, AGENTS[agent], "{tokens: 250}", vendor)

    assert ("limit", 3) == (trial["failure"]["kind"], len(vendor.asked))
    assert "it used 300 tokens" in trial["failure"]["message"]


@pytest.mark.slow
@pytest.mark.parametrize("agent", [name for name in AGENTS if name != "program"])
def test_parallel_tool_calls_end_at_their_limit(project: Project, agent: str) -> None:
    vendor = Vendor(calls=lambda number: 3, arguments='{"a": 2, "b": 3}')

    trial = attacked(project, AGENTS[agent], "{tool_calls: 4}", vendor)

    ran = [call for call in trial["transcript"]["tool_calls"] if call["executions"]]
    assert ("limit", 2) == (trial["failure"]["kind"], len(vendor.asked))
    assert 3 <= len(ran) <= 4


def test_a_program_ends_at_the_tool_calls_that_only_the_tap_sees(project: Project) -> None:
    agent = "{type: command, command: [python, caller.py, '{mcp_config}']}"

    trial = attacked(project, agent, "{tool_calls: 7}", Vendor())

    assert ("limit", 7) == (trial["failure"]["kind"], len(trial["transcript"]["tool_calls"]))


def test_requests_at_once_pass_no_more_than_the_limit(project: Project) -> None:
    vendor = Vendor()
    crowd = """
        import os, threading, runpy, pathlib
        one = pathlib.Path(__file__).with_name("agent.py")
        for each in [threading.Thread(target=runpy.run_path, args=[str(one)]) for _ in range(20)]:
            each.start()
    """
    project.write(crowd_py=crowd)

    trial = attacked(project, AGENTS["program"].replace("agent.py", "crowd.py"), "{model_calls: 5}", vendor)

    assert ("limit", 5) == (trial["failure"]["kind"], len(vendor.asked))


@pytest.mark.parametrize(("most", "requests"), [(100, 1), (150, 2), (299, 3)])
def test_the_attempts_at_a_trial_share_its_limits(project: Project, most: int, requests: int) -> None:
    """Each answer uses no tool, though it must, so that it is asked for again, for 100 tokens each time."""
    vendor = Vendor(usage=("90", "10"))
    config = CONFIG.replace("[sums]}", "[sums], require_mcp_tool_use: true}")

    trial = attacked(project, AGENTS["openai"], f"{{tokens: {most}}}", vendor, config=config)

    assert ("limit", requests) == (trial["failure"]["kind"], len(vendor.asked))
    assert (requests - 1, 90) == (len(trial["attempts"]), trial["transcript"]["usage"]["input_tokens"])


def test_the_price_of_a_trial_is_a_limit_too(project: Project) -> None:
    vendor = Vendor(usage=("100000", "0"), calls=lambda number: 1, arguments='{"a": 2, "b": 3}')
    prices = "prices: {openai/m: {input: 1, output: 1}}\n"

    trial = attacked(project, AGENTS["openai"], "{cost: 0.25}", vendor, config=CONFIG + prices)

    assert ("limit", 3) == (trial["failure"]["kind"], len(vendor.asked))
    assert "limit of $0.25: it used $0.30" in trial["failure"]["message"]


def test_what_a_replay_asks_live_costs_what_it_costs_now(project: Project) -> None:
    vendor = Vendor(usage=("100000", "0"), calls=lambda number: int(number != 2), arguments='{"a": 2, "b": 3}')
    config = CONFIG.replace("AGENT", AGENTS["openai"]).replace("LIMITS", "{}")
    project.write(eval_yaml=config + "prices: {openai/m: {input: 0, output: 0}}\n", questions_jsonl=QUESTION)
    with serving(vendor) as environ:
        recorded = project.keval("run", "eval.yaml", "--record", env=environ)
    run = shutil.move(project.run_directory(), project.root / "recorded")
    flags = ("--replay", str(run), "--replay-misses", "live")
    agent, prices = AGENTS["openai"].replace("/m", "/n"), "prices: {openai/n: {input: 1, output: 1}}\n"

    trial = attacked(project, agent, "{cost: 0.25}", vendor, config=CONFIG + prices, flags=flags)

    assert (0, 3) == (recorded.code, trial["transcript"]["model_calls"]), recorded.stderr
    assert "limit of $0.25: it used $0.30" in trial["failure"]["message"]


def test_a_limit_in_dollars_needs_the_price(project: Project) -> None:
    config = CONFIG.replace("AGENT", AGENTS["openai"]).replace("LIMITS", "{cost: 0.25}")
    project.write(eval_yaml=config, questions_jsonl=QUESTION)

    outcome = project.keval("run", "eval.yaml", env={"OPENAI_API_KEY": "x"})

    assert (2, True) == (outcome.code, "the price of openai/m is unknown" in outcome.stderr)


PROGRAMMED = """
    import asyncio, json, pathlib
    from keval import Sample
    from keval.plugin import Context

    async def answer(sample: Sample, context: Context) -> dict:
        await asyncio.sleep(0.02)
        size = sample.metadata["size"]
        return {"answer": "It is 5.", "usage": {"input_tokens": size, "output_tokens": 0}, "model_calls": 1}
"""
SIZES = {
    "alike": [1_000] * 40,
    "mixed": [random.Random(1).choice([100, 200, 400, 2_000]) for _ in range(120)],
    "cheap first": [10] * 5 + [1_000] * 115,
    "heavy tail": [int(50 / (1 - random.Random(n).random()) ** 0.7) for n in range(120)],
}


@pytest.mark.slow
@pytest.mark.parametrize("resource", ["tokens=9000", "usd=0.009"])
@pytest.mark.parametrize("sizes", SIZES)
def test_a_run_does_not_start_what_it_cannot_pay_for(project: Project, sizes: str, resource: str) -> None:
    questions = [
        json.dumps({"id": f"q{number}", "question": "How?", "answer": "5", "size": size}) + "\n"
        for number, size in enumerate(SIZES[sizes])
    ]
    config = """
        dataset: {path: questions.jsonl}
        agents: {mine: {type: python, target: "agent.py:answer", model: openai/m}}
        metrics: [basic/contains]
        prices: {openai/m: {input: 1, output: 1}}
    """
    project.write(eval_yaml=config, questions_jsonl="".join(questions), agent_py=PROGRAMMED)
    environ = {"OPENAI_API_KEY": "key-of-nobody", "OPENAI_BASE_URL": "http://127.0.0.1:9"}

    outcome = project.keval("run", "eval.yaml", "-j", "16", "--budget", resource, env=environ)

    assert 3 == outcome.code, outcome.stderr
    used = sum(trial["transcript"]["usage"]["input_tokens"] for trial in project.lines("trials.jsonl"))
    assert 5_500 <= used <= 9_000, used


UNEQUAL = """
    from keval import Sample
    from keval.plugin import Context

    async def answer(sample: Sample, context: Context) -> dict:
        costly = context.condition == "costly" and sample.metadata["hard"]
        return {"answer": "It is 5.", "usage": {"input_tokens": 900 if costly else 10, "output_tokens": 0}}
"""


def test_the_arm_that_reaches_limits_does_not_drop_its_hard_questions(project: Project) -> None:
    """The costlier arm would be as good without its hard questions: it is said, bounded, shown, and not run again."""
    questions = [
        json.dumps({"id": f"q{number}", "question": "How?", "answer": "5", "hard": number % 4 == 0}) + "\n"
        for number in range(20)
    ]
    config = """
        dataset: {path: questions.jsonl}
        agents: {mine: {type: python, target: "agent.py:answer"}}
        conditions: {plain: {}, costly: {}}
        metrics: [basic/contains]
        execution: {limits: {tokens: 500}}
    """
    project.write(eval_yaml=config, questions_jsonl="".join(questions), agent_py=UNEQUAL)

    outcome = project.keval("run", "eval.yaml")

    summary = project.read("summary.json")
    (effect,) = summary["effects"]
    assert (3, 0) == (outcome.code, effect["difference"])
    assert (-0.25, 0) == (effect["bound_low"], effect["bound_high"])
    told = " ".join(outcome.stdout.split())
    assert "5 of 20 trials of mine costly reached a limit of execution.limits and are lost" in told
    assert "agent: limit" in told
    lost = [trial for trial in project.lines("trials.jsonl") if trial["failure"]]
    assert [900] * 5 == [trial["transcript"]["usage"]["input_tokens"] for trial in lost]
    project.keval("export", "latest", "--format", "junit", "--to", "exported")
    (junit,) = (project.root / "exported").glob("**/junit.xml")
    assert 5 == junit.read_text(encoding="utf-8").count('type="agent: limit"')
    assert 3 == project.keval("resume", "latest").code
    assert 40 == len(project.lines("trials.jsonl"))
    assert 3 == project.keval("resume", "latest", "--retry-failed").code, "they reach it again"
    assert 40 == len(project.lines("trials.jsonl"))


def test_a_replay_ends_where_the_trial_did(project: Project) -> None:
    vendor = Vendor(calls=lambda number: 1, arguments='{"a": 2, "b": 3}')
    trial = attacked(project, AGENTS["openai"], "{model_calls: 4}", vendor, flags=["--record"])

    recorded = str(project.run_directory())
    outcome = project.keval("run", "--replay", recorded, "-o", "again")

    (path,) = project.root.glob("again/*/*/trials.jsonl")
    again = json.loads(path.read_text(encoding="utf-8"))
    assert (3, 4) == (outcome.code, len(vendor.asked)), outcome.stderr
    assert trial["failure"] == again["failure"]
    assert [trial["transcript"][name] for name in ("usage", "model_calls", "messages")] == [
        again["transcript"][name] for name in ("usage", "model_calls", "messages")
    ]


@pytest.mark.parametrize("limits", ["{tokens: 0}", "{model_calls: -1}", "{cost: .inf}", "{calls: 3}", "{tokens: many}"])
def test_a_limit_that_is_none_is_refused_with_its_place(project: Project, limits: str) -> None:
    config = CONFIG.replace("AGENT", AGENTS["openai"]).replace("LIMITS", limits)
    project.write(eval_yaml=config, questions_jsonl=QUESTION)

    outcome = project.keval("run", "eval.yaml", env={"OPENAI_API_KEY": "x"})

    assert (2, True) == (outcome.code, outcome.stderr.startswith("error: eval.yaml:9:")), outcome.stderr


def test_a_budget_holds_for_sure_where_trials_have_limits(project: Project) -> None:
    """Nothing is guessed: a cheap beginning lets no more trials begin than the budget holds at their limit."""
    sizes = [10, 10, 10, *[500] * 57]
    questions = [
        json.dumps({"id": f"q{number:02}", "question": "How?", "answer": "5", "size": size}) + "\n"
        for number, size in enumerate(sizes)
    ]
    config = """
        dataset: {path: questions.jsonl}
        agents: {mine: {type: python, target: "agent.py:answer"}}
        metrics: [basic/contains]
        execution: {max_concurrent: 16, limits: {tokens: 500}}
        budget: {tokens: 9000}
    """
    project.write(eval_yaml=config, questions_jsonl="".join(questions), agent_py=PROGRAMMED)

    outcome = project.keval("run", "eval.yaml")

    used = sum(trial["transcript"]["usage"]["input_tokens"] for trial in project.lines("trials.jsonl"))
    assert (3, True) == (outcome.code, 8_500 <= used <= 9_000), used
    assert "too many" not in outcome.stdout


def test_a_crowd_of_judgements_keeps_the_budget(project: Project) -> None:
    """All trials are free, and each judgement costs 1,000 tokens: sixteen at once would cost four times the budget."""
    questions = "".join(
        json.dumps({"id": f"q{number}", "question": "How?", "answer": "5", "says": "5", "level": 3}) + "\n"
        for number in range(30)
    )
    config = """
        dataset: {path: questions.jsonl}
        agents: {mine: {type: recorded, path: answers.jsonl}}
        judges: {mine: {type: openai, model: openai/m}}
        rubrics: [completeness]
        execution: {max_concurrent: 16}
    """
    answers = "".join(json.dumps({"id": f"q{number}", "response": "It is 5."}) + "\n" for number in range(30))
    project.write(eval_yaml=config, questions_jsonl=questions, answers_jsonl=answers)
    vendor = Vendor(usage=("900", "100"), answer='{"completeness": {"reasoning": "It is there.", "score": 3}}')

    with serving(vendor) as environ:
        outcome = project.keval("run", "eval.yaml", "--budget", "tokens=4000", env=environ)

    assert (3, 4) == (outcome.code, len(vendor.asked)), outcome.stdout
