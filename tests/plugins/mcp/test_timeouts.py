"""A slow tool is not a lost server: its call ends with an error of its own kind, and progress gives it more time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from keval.records.servers import CallLog
from keval_mcp import Http, Stdio
from tests.contexts import started


def test_call_over_its_time_is_a_tool_error_and_the_server_lives_on(
    bare: Callable[..., Stdio], attempt: Callable[..., Any]
) -> None:
    async def run() -> tuple[Any, ...]:
        async with (
            started(bare(timeout=0.5, isolation="condition"), "every") as source,
            attempt(source, "slow") as slow,
            attempt(source, "well") as well,
        ):
            before, problem = await well.call("pid"), await slow.call("hang")
            return before, problem, await slow.call("pid"), await well.call("pid"), slow.log, well.log

    before, problem, after, beside, slow, well = asyncio.run(run())

    assert "server 'every' did not answer 'hang' within 0.5 s" == problem
    assert before == after == beside
    assert [("hang", problem, "tool_timeout", 1), ("pid", None, None, 1)] == [
        (call.name, call.error, call.error_kind, call.executions) for call in slow.calls
    ]
    assert (None, None) == (slow.lost, well.lost)


def test_call_that_is_answered_with_no_message_loses_the_server(
    bare: Callable[..., Stdio], outcomes: Callable[..., Any]
) -> None:
    (((before, problem), log),) = outcomes(bare(timeout=0.5), [("pid", {}), ("babble", {})])

    assert before.isdigit()
    assert "server 'every' did not answer 'babble' within 0.5 s" == problem
    assert [None, None] == [call.error_kind for call in log.calls]
    assert "has what is no MCP message: 'Welcome!'" in log.lost


def test_call_over_its_time_is_an_error_over_http(listening: Callable[..., Any], outcomes: Callable[..., Any]) -> None:
    url = listening("http").url

    (((problem, after), log),) = outcomes(Http(url=url, timeout=0.5), [("hang", {}), ("echo", {"text": "fine"})])

    assert "server 'every' did not answer 'hang' within 0.5 s" == problem
    assert ("fine", None) == (after, log.lost)
    assert ["tool_timeout", None] == [call.error_kind for call in log.calls]


async def _heard(progress: float, total: float | None, message: str | None) -> None:
    """Take progress: a client of the SDK asks for it by having a callback."""


@pytest.mark.parametrize(
    ("most", "callback", "said"),
    [
        (600.0, _heard, "done"),
        (0.8, _heard, "server 'every' did not answer 'work' within 0.8 s"),
        (600.0, None, "server 'every' did not answer 'work' within 0.6 s"),
    ],
)
def test_progress_gives_a_call_more_time_if_the_agent_asks_for_it(
    bare: Callable[..., Stdio], attempt: Callable[..., Any], most: float, callback: Any, said: str
) -> None:
    async def run() -> tuple[Any, str, CallLog]:
        provider = bare(timeout=0.6, max_timeout=most)
        async with started(provider, "every") as source, attempt(source) as tapped:
            worked = await tapped.client.call_tool("work", {"seconds": 1.2}, progress_callback=callback)
            return worked.content[0].text, await tapped.call("echo", text="fine"), tapped.log

    worked, after, log = asyncio.run(run())

    assert (said, "fine", None) == (worked, after, log.lost)
    assert ("done" == said) == (log.calls[0].error is None)
