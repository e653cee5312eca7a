"""A run against a provider's stand-in: an agent with a tool, a judge with structured output, a model that is busy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from keval_gateway import ChatCall, ChatReply, ChatRequest, ModelFault
from keval_simulator.model import SimulatedModel
from tests.conftest import Project
from tests.stdio_server import look_up

CONFIG = """
dataset: {{path: questions.jsonl}}
agents: {{it: {{type: {agent}, model: {model}}}}}
judges: {{judge: {{model: {judge}}}}}
rubrics: [completeness]
contexts: {{graph: {{type: stdio, command: "${{PYTHON:-python}}", args: [my_server.py]}}}}
conditions: {{with_graph: {{contexts: [graph], require_mcp_tool_use: true}}}}
execution: {{retry: {{initial_backoff_seconds: 0}}}}
"""
QUESTION = {"question": "How high does the observatory of Lindholm stand?", "answer": "It stands at 1,842 m."}


@attrs.define
class BusyModel:
    """Refuses the first two requests, with a 429 that says when to come again and a 500, and then answers.

    Its answer is the result of the tool, and as a judge it goes by rules.
    """

    asked: list[ChatRequest] = attrs.field(factory=list)

    def __call__(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        match len(self.asked):
            case 1:
                raise ModelFault(429, "slow down for a moment", retry_after=1)
            case 2:
                raise ModelFault(500, "broken inside")
        results = [message.text for message in request.messages if message.role == "tool"]
        if results:
            return ChatReply(results[-1])
        if any(tool.name == "look_up" for tool in request.tools):
            return ChatReply(calls=(ChatCall("look_up", {"question": "How high is it?"}),))
        return SimulatedModel()(request)


def check_busy_run(
    project: Project,
    model: str,
    environ: Mapping[str, str | None],
    asked: list[Any],
    *,
    agent: str = "openai",
    broken: int = 500,
    says_when: bool = True,
) -> dict[str, Any]:
    """Run an agent and a judge of this model, which is busy at first, and return the one trial.

    `broken` is the status that the 500 of the provider becomes; who `says_when` passes on when to come again. The
    tool's result is in the answer, the verdict is one of the rubric's levels, tokens are known, both refusals are
    recorded, the time that the model named was waited for, and nobody repeated a request but keval.
    """
    height = look_up("The observatory of Lindholm stands at 1,842 m and was opened in 1974.")
    config = CONFIG.format(agent=agent, model=model, judge=model)
    project.write(eval_yaml=config, my_server_py=height, questions_jsonl=json.dumps(QUESTION) + "\n")

    outcome = project.run("eval.yaml", env=environ)

    assert 0 == outcome.code, outcome.stdout + outcome.stderr
    (trial,), (score,) = project.lines("trials.jsonl"), project.lines("scores.jsonl")
    transcript = trial["transcript"]
    first, second = transcript["refusals"]
    assert "The observatory of Lindholm stands at 1,842 m and was opened in 1974." in trial["output"]
    assert ["look_up"] == [call["name"] for call in transcript["tool_calls"]]
    assert (429, broken) == (first["status"], second["status"])
    assert "slow down for a moment" in first["message"]
    assert "broken inside" in second["message"]
    assert 1 <= first["waited"] < 2 or not says_when
    assert 0 < transcript["usage"]["input_tokens"]
    assert 0 < transcript["usage"]["output_tokens"]
    assert 5 == score["value"]
    # Two refusals, the call of the tool, the answer, the verdict.
    assert 5 == len(asked)
    return trial
