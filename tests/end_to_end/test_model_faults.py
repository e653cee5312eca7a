"""A model that is busy or broken for a moment costs a trial time, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from keval_gateway import ChatReply, ChatRequest, ModelFault
from tests.conftest import Project
from tests.end_to_end.servers.model import gateway


@pytest.mark.parametrize("agent", ["{type: ms, model: openai/gpt-test}", "{type: gadk, model: google/gemini-test}"])
def test_a_busy_model_is_asked_again_once_and_by_keval_alone(weather: Callable[..., Project], agent: str) -> None:
    asked: list[ChatRequest] = []

    def busy_at_first(request: ChatRequest) -> ChatReply:
        asked.append(request)
        if len(asked) == 1:
            raise ModelFault(429, "too many requests", retry_after=0)
        return ChatReply("It is mild.")

    project = weather(("gadk: {model: simulated/weather}", f"it: {agent}"))
    with gateway(busy_at_first) as environ:
        flags = ["--condition", "baseline", "--sample-id", "helsinki-now"]
        outcome = project.run("eval.yaml", *flags, env=environ)

    (trial,) = project.lines("trials.jsonl")
    assert (0, "It is mild.", 2) == (outcome.code, trial["output"], len(asked))
    assert ([], [429]) == (trial["attempts"], [refusal["status"] for refusal in trial["transcript"]["refusals"]])


@pytest.mark.parametrize("agent", ["{type: ms, model: openai/gpt-test}", "{type: gadk, model: google/gemini-test}"])
def test_a_model_that_stays_down_is_asked_as_often_as_the_config_says(
    weather: Callable[..., Project], agent: str
) -> None:
    asked: list[ChatRequest] = []

    def down(request: ChatRequest) -> ChatReply:
        asked.append(request)
        raise ModelFault(503, "down for a moment")

    bounds = "retry: {max_attempts: 1, max_request_attempts: 2, "
    project = weather(("gadk: {model: simulated/weather}", f"it: {agent}"), ("retry: {", bounds))
    with gateway(down) as environ:
        flags = ["--condition", "baseline", "--sample-id", "helsinki-now"]
        outcome = project.run("eval.yaml", *flags, env=environ)

    (trial,) = project.lines("trials.jsonl")
    assert (3, "http_503", 2) == (outcome.code, trial["failure"]["kind"], len(asked))
