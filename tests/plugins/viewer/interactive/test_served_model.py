"""A model that is asked without a run: by the options, limits, prices and budget of a config."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keval.config.load import read_evaluation
from keval.config.source import Source
from keval.plugin import ConfigError, StructuredRequest, TrialError
from keval.redaction import Redactor
from keval_analysis.findings.summary import Cost
from keval_gateway import ChatCall, ChatReply, ChatRequest, ModelFault, wire_urls
from keval_gateway.app import build_app
from keval_loopback.serving import serve
from keval_viewer.interactive.served_model import ServedModel

REQUEST = StructuredRequest(
    "Answer.",
    "Who?",
    {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"], "additionalProperties": False},
)
SAID = '{"who": "I"}'
PRICES = {"openai/ours": {"input": 2_000_000, "output": 0}}
ONCE = {"retry": {"max_attempts": 2, "initial_backoff_seconds": 0}}


def evaluation(**more: Any) -> Any:
    return read_evaluation(
        Source("eval.yaml", Path.cwd(), {"agents": {"scripted": {}}, "conditions": {"a": {}}, **more})
    )


def ask(
    respond: Callable[[ChatRequest], ChatReply],
    *,
    times: int = 1,
    judge: Any = None,
    model: str | None = None,
    **more: Any,
) -> tuple[list[str], ServedModel]:
    """Ask a model of a gateway, and return its replies and the model."""

    async def scenario() -> tuple[list[str], ServedModel]:
        async with serve(build_app(respond, token="a-key")) as base:
            at = {"model": "openai/ours", "base_url": wire_urls(base)["openai-chat"], "api_key": "a-key"}
            found = evaluation(judge={**at, **(judge or {})}, execution=ONCE, **more)
            async with ServedModel.open(found, model, Redactor()) as served:
                return [await served.ask(REQUEST, f"key {turn}") for turn in range(times)], served

    return asyncio.run(scenario())


def scripted(*said: str | Exception) -> Callable[[ChatRequest], ChatReply]:
    left = iter(said)

    def respond(request: ChatRequest) -> ChatReply:
        following = next(left)
        if isinstance(following, Exception):
            raise following
        return ChatReply(following)

    return respond


@pytest.mark.slow
def test_what_is_refused_is_asked_again_and_a_reply_costs_what_the_config_says() -> None:
    replies, served = ask(scripted(ModelFault(429, "slow down", 0.01), SAID), prices=PRICES)

    assert [SAID] == replies
    assert ("openai/ours", False, 1) == (served.name, served.simulated, served.calls)
    assert served.cost.usd is not None
    assert served.cost.usd > 1


def test_a_judge_that_makes_a_model_call_a_tool_reads_its_arguments() -> None:
    asked: list[ChatRequest] = []

    def respond(request: ChatRequest) -> ChatReply:
        asked.append(request)
        return ChatReply(calls=(ChatCall("reply", {"who": "I"}),))

    replies, _ = ask(respond, judge={"structured": "tool"})

    assert ["reply"] == [request.forced_tool for request in asked]
    assert ['{"who":"I"}'] == [reply.replace(" ", "") for reply in replies]


def test_an_endpoint_that_stays_down_is_told() -> None:
    with pytest.raises(TrialError, match="broken inside"):
        ask(scripted(*[ModelFault(500, "broken inside")] * 20))


@pytest.mark.parametrize("budget", [{"tokens": 5}, {"usd": 0.5}])
def test_nothing_is_asked_beyond_the_budget(budget: dict[str, float]) -> None:
    with pytest.raises(TrialError, match="budget used: ") as raised:
        ask(scripted(SAID), times=2, budget=budget, prices=PRICES)

    assert "budget" == raised.value.kind


def test_what_a_reply_cost_is_unknown_without_a_price() -> None:
    _, served = ask(scripted(SAID))

    assert Cost(None, 1) == served.cost


@pytest.mark.parametrize(
    ("given", "model", "expected"),
    [
        ({"judge": {"model": "simulated/judge"}}, None, "simulated/judge"),
        ({"judge": {"model": "simulated/judge"}}, "simulated/other", "simulated/other"),
        ({"agents": {"openai": {"model": "simulated/agent"}}}, None, "simulated/agent"),
    ],
)
@pytest.mark.usefixtures("simulated_here")
def test_the_model_is_the_one_that_is_named_or_the_judges_or_the_agents(
    given: dict[str, Any], model: str | None, expected: str
) -> None:
    async def scenario() -> tuple[str, bool, Cost]:
        async with ServedModel.open(evaluation(**given), model, Redactor()) as served:
            await served.ask(REQUEST, "key")
            return served.name, served.simulated, served.cost

    assert (expected, True, Cost(0.0)) == asyncio.run(scenario())


@pytest.mark.parametrize(
    ("given", "model", "told"),
    [
        ({}, None, "eval.yaml: the config names no model; name one with --model provider/name"),
        ({"judges": {"reader": {}}}, None, "lets its model be asked for nothing but judgements"),
        ({}, "nobody/model", "nobody"),
    ],
)
def test_a_config_without_a_model_to_ask_is_an_error(given: dict[str, Any], model: str | None, told: str) -> None:
    async def scenario() -> None:
        async with ServedModel.open(evaluation(**given), model, Redactor()):
            pass

    with pytest.raises(ConfigError) as raised:
        asyncio.run(scenario())

    assert told in str(raised.value)
