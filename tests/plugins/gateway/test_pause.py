"""The pause between the events of an answer that somebody reads along."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from keval_gateway import ChatReply
from keval_gateway.app import build_app
from keval_loopback.serving import serve

ANSWER = "Once upon a time there was a gateway. " * 4


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("watched", [True, False])
def test_only_what_is_streamed_to_somebody_pauses(monkeypatch: pytest.MonkeyPatch, stream: bool, watched: bool) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    async def scenario() -> str:
        app = build_app(lambda request: ChatReply(ANSWER), pause=0.5)
        headers = {"x-keval-watched": "1"} if watched else {}
        body = {"model": "m", "messages": [{"role": "user", "content": "?"}], "stream": stream}
        async with serve(app) as base, httpx.AsyncClient(base_url=base) as client:
            return (await client.post("/openai/v1/chat/completions", json=body, headers=headers)).text

    monkeypatch.setattr("keval_gateway.app.asyncio.sleep", noted)
    told = asyncio.run(scenario())

    events = told.count("data: ")
    assert (events > len(ANSWER) // 24) == stream
    assert [0.5] * (events if stream and watched else 0) == [pause for pause in pauses if pause == 0.5]
