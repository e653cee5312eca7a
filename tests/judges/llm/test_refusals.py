"""Models that refuse an option: they are asked without it, and the scores say so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from keval import Score
from keval.plugin import JudgeContext, ModelError
from keval_gateway import ChatReply, ChatRequest, ModelFault, Respond
from tests.judges.llm.conftest import GOOD, GRADED, RUBRICS, TRIAL, Grade, Staged, said

TEMPERATURE = "`temperature` is deprecated for this model."
FORMAT = "output_config.format: Extra inputs are not permitted"


def refusing(status: int = 400, **fields: str) -> Respond:
    """Make a model that refuses the first of these fields that it is sent, with its message."""

    def respond(request: ChatRequest) -> ChatReply:
        for name, message in fields.items():
            if name in request.raw:
                raise ModelFault(status, message)
        return said(request, GOOD)

    return respond


def without(*refused: str) -> dict[str, Score]:
    """Return the good scores, as they are when the model refused these fields."""
    return {name: Score(score.value, score.reason, details={"refused": [*refused]}) for name, score in GRADED.items()}


CASES = [
    ("openai", refusing(temperature=TEMPERATURE), ["temperature"]),
    ("openai", refusing(temperature="No temperature here; but a seed is fine."), ["temperature"]),
    ("anthropic", refusing(temperature=TEMPERATURE), ["temperature"]),
    ("anthropic", refusing(output_config=FORMAT), ["output_config"]),
    ("anthropic", refusing(output_config="'claude' does not support output format."), ["output_config"]),
    ("anthropic", refusing(temperature=TEMPERATURE, output_config=FORMAT), ["temperature", "output_config"]),
]


@pytest.mark.parametrize(("vendor", "script", "refused"), CASES, ids=range(len(CASES)))
def test_a_refused_option_is_left_out_from_then_on_and_the_scores_say_so(
    runner: asyncio.Runner, staged: Staged, vendor: str, script: Respond, refused: list[str]
) -> None:
    async def scenario() -> list[Any]:
        async with staged(script, vendor) as scene:
            builders = [JudgeContext(), JudgeContext()]
            scores = [await scene.judge.grade(TRIAL, RUBRICS, context) for context in builders]
            return [scores, [context.builder.judgement() for context in builders], scene.requests]

    scores, judgements, requests = runner.run(scenario())

    assert [without(*refused)] * 2 == scores
    assert 2 + len(refused) == len(requests)
    assert set() == {*refused} & requests[-1].raw.keys()
    assert [(1, ())] * 2 == [(judgement.model_calls, judgement.rejected) for judgement in judgements]


def test_a_model_that_refuses_the_schema_is_made_to_call_the_tool(grade: Grade) -> None:
    asked, again = grade(refusing(output_config=FORMAT), "anthropic").requests

    assert asked.response_schema is not None
    assert ("grade", asked.response_schema) == (again.forced_tool, again.tools[0].parameters)


def test_requests_that_are_refused_at_once_are_each_sent_again(runner: asyncio.Runner, staged: Staged) -> None:
    everybody, refusals = asyncio.Event(), list[None]()

    async def respond(request: ChatRequest) -> ChatReply:
        if "temperature" not in request.raw:
            return said(request, GOOD)
        refusals.append(None)
        if len(refusals) == 5:
            everybody.set()
        await everybody.wait()
        raise ModelFault(400, TEMPERATURE)

    async def scenario() -> list[Any]:
        async with staged(respond) as scene:
            return await asyncio.gather(*(scene.judge.grade(TRIAL, RUBRICS, JudgeContext()) for _ in range(5)))

    assert [without("temperature")] * 5 == runner.run(scenario())


def test_a_score_says_what_was_refused_when_its_own_reply_was_asked_for(grade: Grade) -> None:
    broken_tone = {**GOOD, "acme_tone": {"reasoning": "warm", "score": 7}}

    def respond(request: ChatRequest) -> ChatReply:
        again = "could not be used" in request.messages[-1].text
        if again and "temperature" in request.raw:
            raise ModelFault(400, TEMPERATURE)
        return said(request, GOOD if again else broken_tone)

    outcome = grade(respond)

    assert {"accuracy": GRADED["accuracy"], "acme/tone": without("temperature")["acme/tone"]} == outcome.graded
    assert 2 == outcome.judgement.model_calls


@pytest.mark.parametrize(
    "fault",
    [
        lambda: ModelFault(400, "the prompt is too long"),
        lambda: ModelFault(400, "the temperatures are too long"),
        lambda: ModelFault(500, TEMPERATURE),
    ],
    ids=["another", "part of a word", "another status"],
)
def test_another_error_is_raised_as_it_is(grade: Grade, fault: Callable[[], ModelFault]) -> None:
    outcome = grade([fault()])

    assert isinstance(outcome.error, ModelError)
    assert (fault().status, 1) == (outcome.error.status, len(outcome.requests))


def test_an_option_that_an_error_names_by_chance_is_sent_again(runner: asyncio.Runner, staged: Staged) -> None:
    async def scenario() -> object:
        fault = ModelFault(400, "the answer 'The temperature is 3 °C.' is not allowed")
        async with staged([fault, fault, GOOD]) as scene:
            with pytest.raises(ModelError, match="is not allowed"):
                await scene.judge.grade(TRIAL, RUBRICS, JudgeContext())
            return await scene.judge.grade(TRIAL, RUBRICS, JudgeContext())

    assert GRADED == runner.run(scenario())
