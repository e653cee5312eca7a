"""Rates: what a provider or a model is given a minute, by all who ask it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest

from keval.config.evaluation import Rate
from keval.execute.limits import RunLimits
from keval.execute.models import rate as rates
from keval.execute.models.rate import RateLimit
from keval.execute.models.streams import counting
from keval.plugin import Endpoint, ModelRequest, ModelResponse
from tests.conftest import Project

OPENAI = json.dumps({"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42}})
ANTHROPIC = (
    'data: {"type":"message_start","message":{"usage":{"input_tokens":30,"output_tokens":1}}}\n\n'
    'data: {"type":"content_block_delta","delta":{"text":"said \\"total_tokens\\": 999"}}\n\n'
    'data: {"type":"message_delta","usage":{"output_tokens":12}}\n\n'
)
GEMINI = json.dumps({"usageMetadata": {"promptTokenCount": 30, "totalTokenCount": 42}})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(rates, "monotonic", lambda: now[0])
    return now


def test_requests_are_spread_over_the_minute(clock: list[float]) -> None:
    limit = RateLimit(Rate(requests_per_minute=60))
    begun = []

    for _ in range(20):
        clock[0] += limit.seconds_to_wait()
        limit.begin()
        begun.append(clock[0])

    # Six at once, then one a second.
    assert [0.0] * 6 == begun[:6]
    assert [1.0] * 13 == [round(after - before, 6) for before, after in pairwise(begun[6:])]


def test_the_tokens_of_a_reply_are_made_up_for_by_the_next_requests(clock: list[float]) -> None:
    limit = RateLimit(Rate(tokens_per_minute=6_000))

    assert 0.0 == limit.seconds_to_wait()
    limit.spend(1_600)  # 600 may be used at once
    assert 10.0 == limit.seconds_to_wait()
    clock[0] = 10.0
    assert 0.0 == limit.seconds_to_wait()


def test_models_of_a_provider_share_its_rate_and_a_model_may_have_its_own() -> None:
    limits = RunLimits(rates={"openai": Rate(60), "openai/large": Rate(6), "other": Rate(1)})
    loads = {
        name: limits.load(Endpoint(name, {"openai-chat": "http://127.0.0.1:9"}, ""), f"openai/{name}")
        for name in ("small", "smaller", "large")
    }

    assert loads["small"].rate is loads["smaller"].rate is not None
    assert loads["large"].rate is not loads["small"].rate
    assert limits.load(Endpoint("free", {}, ""), "google/free").rate is None


@pytest.mark.parametrize(
    ("body", "tokens"), [(OPENAI, 42), (ANTHROPIC, 42), (GEMINI, 42), ("x" * 392, 100)], ids=lambda body: str(body)[:9]
)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_tokens_are_counted_as_a_reply_arrives(body: str, tokens: int, size: int) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), size):
            yield body[start : start + size].encode()

    async def counted() -> tuple[bytes, list[int]]:
        found: list[int] = []
        response = ModelResponse(200, {}, chunks())
        counting(ModelRequest("some", "openai-chat", "POST", "/chat", {}, b"12345678"), response, found.append)
        return await response.read(), found

    assert (body.encode(), [tokens]) == asyncio.run(counted())


def test_a_rate_of_nobody_is_told_at_its_place(project: Project) -> None:
    project.write(
        eval_yaml="""
        dataset: {path: questions.jsonl}
        agents: {openai: {model: simulated/any}}
        metrics: [basic/turns]
        execution: {rates: {simulatde: {requests_per_minute: 5}}}
        """,
        questions_jsonl='{"id": "a", "question": "a"}\n',
    )

    outcome = project.keval("validate", "eval.yaml")

    told = "eval.yaml:4:21: no agent or judge asks simulatde; did you mean 'simulated'?"
    assert (0, True) == (outcome.code, told in outcome.stderr), outcome.stderr
