"""keval listens for what a server without sessions tells of its changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from keval import Sample
from keval_mcp import Stdio
from keval_mcp.server import upstream
from keval_mcp.server.audience import is_within
from tests.contexts import started
from tests.plugins.mcp.agent_clients import connected, said


def test_server_that_drops_who_listens_is_listened_to_again(
    server: Callable[..., Stdio], sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream, "_LISTEN_PAUSE", 0.01)

    async def run() -> tuple[list[str], float]:
        async with started(server("listened"), "every") as source, source.open(sample, "t") as context:
            (reached,) = context.servers
            assert reached.channel is not None
            answers = []
            for _ in range(4):
                (block,) = (await reached.channel.call_tool("drop", {}))["content"]
                answers.append(block["text"])
                await asyncio.sleep(0.1)
            assert reached.log is not None
            assert reached.log.lost is None
            ending = time.perf_counter()
        return answers, time.perf_counter() - ending

    answers, took = asyncio.run(asyncio.wait_for(run(), 30))

    # The call after a drop is what says that the server is there; the next one finds keval listening again.
    assert ["1 listening", "0 listening", "1 listening", "0 listening"] == answers
    assert took < 1


def test_agent_that_listens_no_more_is_listened_for_no_more(server: Callable[..., Stdio], sample: Sample) -> None:
    async def run() -> None:
        async with (
            started(server("listened"), "every") as source,
            source.open(sample, "t") as context,
            connected(context.servers[0].url or "", {"mode": "auto"}) as client,
        ):
            async with client.listen(resource_subscriptions=["note://a"]):
                assert said(await client.call_tool("touch")) == "2 listening"
            while said(await client.call_tool("touch")) != "1 listening":
                pass  # it takes the tap a moment to see that the agent has hung up

    asyncio.run(asyncio.wait_for(run(), 30))


@pytest.mark.parametrize(
    ("uri", "is_heard"),
    [
        ("note://a", True),
        ("note://a/1", True),
        ("note://a#1", True),
        ("note://ab", False),
        ("note://b/", True),
        ("note://b/2", True),
        (None, False),
    ],
)
def test_subscriber_hears_of_parts_of_a_resource(uri: object, is_heard: bool) -> None:
    assert is_heard == is_within(uri, {"note://a", "note://b/"})
