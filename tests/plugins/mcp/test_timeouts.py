"""A slow tool is not a lost server: its call ends with an error of its own kind, and progress gives it more time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

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


def test_progress_gives_a_call_more_time(bare: Callable[..., Stdio], outcomes: Callable[..., Any]) -> None:
    (((said,), log),) = outcomes(bare(timeout=1.0), [("work", {"seconds": 1.5})])

    assert ("done", None) == (said, log.calls[0].error)
    assert (log.calls[0].duration or 0) >= 1.5


def test_progress_gives_no_more_time_than_the_most(bare: Callable[..., Stdio], outcomes: Callable[..., Any]) -> None:
    (((problem, after), log),) = outcomes(
        bare(timeout=0.6, max_timeout=0.8), [("work", {"seconds": 1.2}), ("echo", {"text": "fine"})]
    )

    assert "server 'every' did not answer 'work' within 0.8 s" == problem
    assert ("fine", None) == (after, log.lost)
