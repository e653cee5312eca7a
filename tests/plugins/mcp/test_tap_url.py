"""The tap's URLs: one per attempt, gone with it, and for loopback only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx2

from keval import Sample
from keval.plugin import McpServer
from keval_mcp import Http
from tests.contexts import started

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
JSON = {"accept": "application/json, text/event-stream"}


def test_url_serves_its_trial_alone_and_no_longer_than_that(lasting: Callable[..., Http], sample: Sample) -> None:
    async def statuses() -> list[int]:
        async with started(lasting(), "every") as source, httpx2.AsyncClient(headers=JSON) as http:
            async with source.open(sample, "t") as context:
                url = context.servers[0].url or ""
                urls = [url, url.replace("/mcp", "x/mcp"), url.removesuffix("/mcp"), url[: url.index("/", 8)] + "/mcp"]
                responses = [await http.post(address, json=PING) for address in urls]
            responses.append(await http.post(url, json=PING))
            return [response.status_code for response in responses]

    assert [200, 404, 404, 404, 404] == asyncio.run(statuses())


def test_only_posts_to_loopback_are_served(lasting: Callable[..., Http], sample: Sample) -> None:
    async def statuses() -> list[int]:
        async with (
            started(lasting(), "every") as source,
            source.open(sample, "t") as context,
            httpx2.AsyncClient(headers=JSON) as http,
        ):
            url = context.servers[0].url or ""
            responses = [
                await http.get(url),
                await http.delete(url),
                await http.post(url.replace("127.0.0.1", "localhost"), json=PING),
                await http.post(url, json=PING, headers={"host": "evil.example"}),
                await http.post(url, json=PING, headers={"origin": "http://evil.example"}),
            ]
            return [response.status_code for response in responses]

    assert [405, 405, 200, 421, 403] == asyncio.run(statuses())


def test_attempts_at_one_trial_have_urls_and_logs_of_their_own(lasting: Callable[..., Http], sample: Sample) -> None:
    async def run() -> list[McpServer]:
        async with (
            started(lasting(timeout=5), "every") as source,
            source.open(sample, "t") as first,
            source.open(sample, "t") as second,
        ):
            return [*first.servers, *second.servers]

    first, second = asyncio.run(run())

    assert first.url != second.url
    assert first.log is not second.log
    assert ("every", "http", ("echo", "add")) == (first.name, first.transport, first.tools[:2])
    assert first.timeout > 5


def test_context_has_the_instructions_of_the_options(lasting: Callable[..., Http], sample: Sample) -> None:
    async def run() -> tuple[str, str]:
        async with started(lasting(instructions="Be brief."), "every") as source, source.open(sample, "t") as context:
            return context.trial, context.instructions

    assert ("t", "Be brief.") == asyncio.run(run())


def test_trial_and_facts_travel_with_every_call(lasting: Callable[..., Http], attempt: Callable[..., Any]) -> None:
    async def run() -> str:
        async with (
            started(lasting(), "every", facts=lambda sample: sample.facts) as source,
            attempt(source, "gadk/with ☂/1") as tapped,
        ):
            result = await tapped.client.call_tool("told", {}, meta={"acme/colour": "red", "keval/trial": "forged"})
            told: str = result.content[0].text
            return told

    told = json.loads(asyncio.run(run()))

    assert told["meta"].pop("keval/attempt")
    meta = {"keval/trial": "gadk/with ☂/1", "keval/mood": "żywy", "keval/preferences": {"dislikes_cold": True}}
    assert {**meta, "acme/colour": "red"} == told["meta"]
    assert {} == told["headers"]
