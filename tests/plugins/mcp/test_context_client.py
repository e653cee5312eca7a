"""The client that a context declares: what servers are told, and how it answers what they ask."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keval import Sample
from keval.records.transcript import ServerExchange
from keval_gateway import ChatCall, ChatReply, ChatRequest, ModelFault
from keval_mcp import Stdio
from keval_mcp.server.client import Accept, Client, Sampling
from tests.conftest import Project
from tests.contexts import started
from tests.end_to_end.servers.model import gateway
from tests.stdio_server import ENVIRONMENT

FORM = {"type": "object", "properties": {"size": {"type": "string", "default": "S"}, "name": {"type": "string"}}}
ELICITED = {
    "method": "elicitation/create",
    "params": {"message": "?", "requestedSchema": {**FORM, "required": ["size"]}},
}
VISITED = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "?", "url": "https://x", "elicitationId": "1"},
}
SAYING = {"messages": [{"role": "user", "content": {"type": "text", "text": "Where?"}}], "maxTokens": 9}
SAMPLED = {"method": "sampling/createMessage", "params": SAYING}


def asked(
    client: Client, *requests: dict[str, Any], arguments: tuple[str, ...] = ()
) -> tuple[Any, Any, list[ServerExchange]]:
    """Return what a server is told of a client, what that answers, and what is recorded."""

    async def use() -> tuple[Any, Any, list[ServerExchange]]:
        args = ("-m", "tests.plugins.mcp.servers.curious", *arguments)
        provider = Stdio(command="python", args=args, env=ENVIRONMENT, client=client)
        async with started(provider, "curious") as source, source.open(Sample("one", "?"), "t") as context:
            (server,) = context.servers
            assert server.channel is not None
            assert server.log is not None
            calls = [
                await server.channel.call_tool("who", {}),
                await server.channel.call_tool("ask", {"requests": requests}),
            ]
            who, given = (each["content"][0]["text"] for each in calls)
            return json.loads(who), json.loads(given), server.log.exchanges

    return asyncio.run(asyncio.wait_for(use(), 30))


@pytest.mark.parametrize("arguments", [(), ("modern",)])
def test_a_server_is_told_of_the_client_and_answered_by_it(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    page = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}}
    client = Client(
        name="claude-code",
        title="Claude Code",
        version="2.1.0",
        roots=(tmp_path,),
        sampling=Sampling(text="Here."),
        elicitation=("defaults", Accept({"name": "Ada", "unasked": 1}), "cancel", "visit"),
        extensions=page,
    )

    requests: list[dict[str, Any]] = [*[ELICITED] * 3, VISITED, ELICITED, {"method": "roots/list"}, SAMPLED]
    told, given, exchanges = asked(client, *requests, arguments=arguments)

    can = {"elicitation": {"form": {}, "url": {}}, "roots": {}, "sampling": {}, "extensions": page}
    assert {"info": {"name": "claude-code", "title": "Claude Code", "version": "2.1.0"}, "can": can} == told
    accepted, declined = {"action": "accept"}, {"action": "decline"}
    form, filled = {"size": "S"}, {"size": "S", "name": "Ada"}
    said = {
        "role": "assistant",
        "content": {"type": "text", "text": "Here."},
        "model": "fixed",
        "stopReason": "endTurn",
    }
    assert [
        {**accepted, "content": form},
        {**accepted, "content": filled},
        {"action": "cancel"},
        accepted,
        declined,  # the last entry holds on, and visits pages alone
        {"roots": [{"uri": tmp_path.as_uri(), "name": tmp_path.name}]},
        said,
    ] == given
    assert ["policy"] * len(requests) == [each.answered_by for each in exchanges]


def test_a_client_that_says_nothing_is_keval_and_refuses() -> None:
    told, given, _ = asked(Client(), ELICITED, VISITED, {"method": "roots/list"}, SAMPLED)

    assert ("keval", {}) == (told["info"]["name"], told["can"])
    assert [{"action": "decline"}] * 2 == given[:2]
    assert [{"roots": []}, "no client here answers sampling/createMessage"] == given[2:]


def test_a_mode_that_would_only_be_refused_is_not_declared_and_neither_are_tools() -> None:
    tools = {"method": "sampling/createMessage", "params": {**SAYING, "tools": []}}

    told, given, _ = asked(Client(elicitation="visit", sampling=Sampling(text="x")), ELICITED, VISITED, tools)

    assert {"elicitation": {"url": {}}, "sampling": {}} == told["can"]
    assert [{"action": "decline"}, {"action": "accept"}] == given[:2]
    assert "does not declare sampling.tools" in given[2]


WRONG = {
    "roots: [.]": "unknown key 'roots'; write client: {roots: …}",
    "elicitation: defaults": "unknown key 'elicitation'; write client: {elicitation: …}",
    "client: {name: claude-code}": "add that of claude-code",
    "client: {sampling: {text: x, model: simulated/any}}": "one of text and model",
    "client: {sampling: {model: nowhere/any}}": "nowhere/any: no model provider named 'nowhere'",
    "client: {elicitation: maybe}": "decline or cancel or defaults",
    "client: {elicitation: [defaults, decline]}\n    isolation: condition": "'isolation' must be trial",
    "client: {version: '2'}\n    tap: false": "'client' must go with the tap",
}
CONFIG = """
dataset: {{path: questions.jsonl}}
metrics: [basic/contains]
agents: {{it: {{model: {model}}}}}
conditions: {{with: {{contexts: [curious]}}}}
contexts:
  curious:
    type: stdio
    command: python
    args: [-m, tests.plugins.mcp.servers.curious]
    env: {{PYTHONPATH: "{path}"}}
    {options}
"""


def written(project: Project, options: str, model: str = "simulated/any", more: str = "", questions: int = 1) -> None:
    lines = [json.dumps({"id": f"q{n}", "question": f"Where {n}?", "answer": "It is here."}) for n in range(questions)]
    config = CONFIG.format(model=model, path=ENVIRONMENT["PYTHONPATH"], options=options).replace(
        "{model:", "{type: openai, model:", 1
    )
    project.write(eval_yaml=config + more, questions_jsonl="\n".join(lines))


@pytest.mark.parametrize("options", WRONG)
def test_what_is_wrong_with_a_client_is_told(project: Project, options: str) -> None:
    written(project, options)

    refused = project.keval("validate", "eval.yaml")

    assert 2 == refused.code
    assert WRONG[options] in " ".join((refused.stdout + refused.stderr).split())


def scripted(*, refusing: int = 0, status: int = 503) -> Callable[[ChatRequest], ChatReply]:
    """Return a model that calls `ask` twice as an agent's; as a server's it refuses some requests, and then answers."""
    refused: list[ChatRequest] = []

    def respond(request: ChatRequest) -> ChatReply:
        if request.tools:
            results = [message.text for message in request.messages if message.role == "tool"]
            call = ChatCall("ask", {"requests": [SAMPLED]})
            return ChatReply(results[-1]) if len(results) == 2 else ChatReply(calls=(call,))
        if len(refused) < refusing:
            refused.append(request)
            raise ModelFault(status, "not now")
        return ChatReply("It is here.")

    return respond


MORE = """
prices: {openai/m: {input: 10, output: 20}}
execution: {retry: {initial_backoff_seconds: 0}}
"""


@pytest.mark.parametrize("model", ["openai/m", "anthropic/m"])
def test_a_model_answers_a_server_and_its_tokens_are_none_of_the_agents(project: Project, model: str) -> None:
    more = MORE.replace("openai/m", model)
    with gateway(scripted(refusing=1)) as environ:
        written(project, f"client: {{sampling: {{model: {model}}}}}", "openai/m", more)
        recorded = project.keval("run", "eval.yaml", "--record", env=environ)

    assert 0 == recorded.code, recorded.stderr
    run, (trial,) = project.run_directory(), project.lines("trials.jsonl")
    transcript = trial["transcript"]
    sampled = [each["sampled"] for each in transcript["exchanges"]]
    assert "It is here." in trial["output"]
    assert [model] * 2 == [each["model"] for each in sampled]
    took = sum(each["usage"]["input_tokens"] + each["usage"]["output_tokens"] for each in sampled)
    assert (3, 1) == (transcript["model_calls"], len(transcript["refusals"]))
    (arm,) = project.read("summary.json")["trials"]
    assert (2, took) == (
        arm["sampling"]["answers"],
        sum(arm["sampling"]["usage"][f"{way}_tokens"] for way in ("input", "output")),
    )
    usage = arm["sampling"]["usage"]
    assert round((usage["input_tokens"] * 10 + usage["output_tokens"] * 20) / 1e6, 9) == round(
        arm["sampling"]["cost"]["usd"], 9
    )
    assert f"2 answers to servers ({took} tokens)" in recorded.stdout
    shown = project.keval("show", str(run), "--trial", trial["id"]).stdout
    assert f"answered by {model} (" in shown
    assert ["agent", "context"] == sorted(
        {line["asker"]["role"] for line in traffic(project, trial["id"]) if "asker" in line}
    )

    replayed = project.keval("run", "eval.yaml", "--replay", str(run), "-o", "again", env=dict.fromkeys(environ))

    again = json.loads(next(project.root.glob("again/*/*/trials.jsonl")).read_text())
    assert 0 == replayed.code, replayed.stderr
    assert [each["sampled"] for each in again["transcript"]["exchanges"]] == sampled
    assert trial["output"] == again["output"]


def traffic(project: Project, trial: str) -> list[dict[str, Any]]:
    """Return the lines of what was recorded of a trial."""
    told = project.keval("show", str(project.run_directory()), "--trial", trial, "--traffic", "--json")
    lines: list[dict[str, Any]] = json.loads(told.stdout)["traffic"]
    return lines


def test_a_trial_whose_server_gets_no_answer_of_a_model_is_no_evidence(project: Project) -> None:
    with gateway(scripted(refusing=99, status=400)) as environ:
        written(project, "client: {sampling: {model: openai/m}}", "openai/m", "execution: {retry: {max_attempts: 1}}")
        project.keval("run", "eval.yaml", env=environ)

    (trial,) = project.lines("trials.jsonl")
    assert "a model did not answer server 'curious'" in trial["failure"]["message"]


def test_what_servers_ask_of_models_counts_to_the_limits_of_trials(project: Project) -> None:
    limits = "execution: {limits: {model_calls: 3}, retry: {max_attempts: 1}, max_concurrent: 1}\n"
    with gateway(scripted()) as environ:
        written(project, "client: {sampling: {model: openai/m}}", "openai/m", limits)
        project.keval("run", "eval.yaml", env=environ)

    (trial,) = project.lines("trials.jsonl")
    # The agent asks, the server does, the agent does, and the server may not any more.
    assert "limit" == trial["failure"]["kind"]
    assert "it used 3 model calls" in trial["failure"]["message"]


def test_what_servers_ask_of_models_counts_to_the_budget(project: Project) -> None:
    more = "execution: {max_concurrent: 1}\nbudget: {tokens: 10}\n"
    with gateway(scripted()) as environ:
        written(project, "client: {sampling: {model: openai/m}}", "openai/m", more, questions=2)
        run = project.keval("run", "eval.yaml", env=environ)

    (trial,) = project.lines("trials.jsonl")
    usages = [trial["transcript"]["usage"], *(each["sampled"]["usage"] for each in trial["transcript"]["exchanges"])]
    tokens = sum(usage["input_tokens"] + usage["output_tokens"] for usage in usages)
    assert f"budget used: {tokens:,} of 10 tokens" in " ".join((run.stdout + run.stderr).split())
