"""The model provider `simulated`: which models it serves, and how a run is repeated."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from keval.plugin import Endpoint, ModelProvider, PreflightError
from keval_simulator import SimulatedProvider

QUESTION = "What's the weather in Rome?"
SCRIPT = "{script: [{text: 'I am {model}.'}]}"


async def asked(endpoint: Endpoint, question: str = QUESTION, repetition: int = 1) -> httpx.Response:
    headers = {"authorization": f"Bearer {endpoint.api_key}", "x-keval-repetition": str(repetition)}
    body = {"model": endpoint.model, "messages": [{"role": "user", "content": question}]}
    async with httpx.AsyncClient(headers=headers) as client:
        return await client.post(f"{endpoint.urls['openai-chat']}/chat/completions", json=body)


def said(response: httpx.Response) -> str:
    return str(response.json()["choices"][0]["message"]["content"])


def test_every_name_is_served_on_every_wire_and_said_to_be_simulated() -> None:
    async def scenario() -> Any:
        async with SimulatedProvider().open(["weather", "x/y"], seed=3) as endpoints:
            return endpoints, [(await asked(endpoint)).status_code for endpoint in endpoints.values()]

    endpoints, statuses = asyncio.run(scenario())

    assert isinstance(SimulatedProvider(), ModelProvider)
    assert ["weather", "x/y"] == [endpoints[name].model for name in ("weather", "x/y")]
    assert [200, 200] == statuses
    assert {"openai-chat", "openai-responses", "anthropic", "gemini"} == set(endpoints["weather"].urls)
    assert endpoints["weather"].simulated
    assert endpoints["weather"].wants_trial
    assert endpoints["weather"].api_key not in repr(endpoints)


@pytest.mark.usefixtures("simulated_here")
def test_a_run_is_repeated_by_its_seed_and_varies_with_the_repetition() -> None:
    async def answers(seed: int) -> list[str]:
        async with SimulatedProvider().open(["weather"], seed) as endpoints:
            return [said(await asked(endpoints["weather"], repetition=number)) for number in range(1, 9)]

    first, again, other = (asyncio.run(answers(seed)) for seed in (1, 1, 2))

    assert first == again
    assert first != other
    assert len(set(first)) > 2


@pytest.mark.usefixtures("doubles_installed")
def test_a_responder_of_another_package_answers_to_its_name_and_a_broken_one_breaks_no_other() -> None:
    async def scenario() -> dict[str, httpx.Response]:
        async with SimulatedProvider().open(["double/absent", "double/scripted", "weather"], 0) as endpoints:
            return {name: await asked(endpoint, SCRIPT) for name, endpoint in endpoints.items()}

    answers = asyncio.run(scenario())

    assert [404, 200, 200] == [answer.status_code for answer in answers.values()]
    assert "the responder 'double/absent' of keval-doubles 1.0 does not import" in answers["double/absent"].text
    assert "I am double/scripted." == said(answers["double/scripted"])
    assert "I am" not in said(answers["weather"])


def test_a_name_that_two_packages_answer_to_is_refused_before_the_run(ship: Callable[[str, str], None]) -> None:
    ship("acme-forgets", "forgetful")

    async def scenario() -> None:
        async with SimulatedProvider().open(["weather", "forgetful"], 0):
            pytest.fail("it came up")

    with pytest.raises(PreflightError) as caught:
        asyncio.run(scenario())

    told = "the responder 'forgetful' is shipped by acme-forgets and keval-simulator; uninstall one of them"
    assert [told] == caught.value.problems


def test_the_provider_is_cheap_to_import() -> None:
    heavy = ("starlette", "uvicorn", "asyncio", "keval_simulator.model")
    code = f"import sys, keval_simulator\nprint([name for name in {heavy!r} if name in sys.modules])"

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert "[]" == shown.strip()
