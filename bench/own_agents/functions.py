"""Functions that answer a question by one request to a model."""

from __future__ import annotations

import os

import aiohttp
from program import ask

from keval import Sample
from keval.plugin import Context, ModelAccess


def plain(sample: Sample, context: Context) -> str:
    """Ask the model of the trial."""
    model = _known(context.model)
    return ask(sample.question, model.base_url, model.api_key)


async def asynchronous(sample: Sample, context: Context) -> str:
    """Ask the model of the trial."""
    model = _known(context.model)
    return await _asked(sample.question, model.base_url, model.api_key)


async def own_model(question: str) -> str:
    """Ask a model that keval knows nothing of."""
    return await _asked(question, os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"])


async def _asked(question: str, url: str, key: str) -> str:
    request = {"model": "m", "messages": [{"role": "user", "content": question}]}
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session,
        session.post(f"{url}/chat/completions", json=request) as response,
    ):
        answer: str = (await response.json())["choices"][0]["message"]["content"]
    return answer


def _known(model: ModelAccess | None) -> ModelAccess:
    assert model is not None
    return model
