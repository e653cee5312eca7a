"""The MCP clients of real agent frameworks list and call through the tap."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from keval import Sample
from keval.records.servers import CallLog
from keval_mcp import Http
from tests.contexts import started


def _through_the_tap(provider: Http, sample: Sample, use: Callable[[str], Any]) -> tuple[Any, CallLog | None]:
    async def run() -> tuple[Any, CallLog | None]:
        async with started(provider, "every") as source, source.open(sample, "t") as context:
            return await use(context.servers[0].url or ""), context.servers[0].log

    return asyncio.run(run())


@pytest.mark.parametrize("modern", ["0", "1"])
@pytest.mark.filterwarnings("ignore:.*MCP_MODERN_PROTOCOL is enabled:UserWarning")
def test_google_adk(lasting: Callable[..., Http], sample: Sample, monkeypatch: pytest.MonkeyPatch, modern: str) -> None:
    monkeypatch.setenv("GOOGLE_API_USE_CLIENT_CERTIFICATE", "false")
    monkeypatch.setenv("ADK_ENABLE_MCP_MODERN_PROTOCOL", modern)
    from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams

    async def use(url: str) -> tuple[list[str], Any]:
        toolset = McpToolset(connection_params=StreamableHTTPConnectionParams(url=url))
        try:
            tools = {tool.name: tool for tool in await toolset.get_tools()}
            answer = await tools["add"].run_async(args={"a": 2, "b": 3}, tool_context=None)
            return sorted(tools), answer
        finally:
            await toolset.close()

    (names, answer), log = _through_the_tap(lasting(), sample, use)

    assert ["add", "arguments"] == names[:2]
    assert {"total": 5, "missing": None} == answer["structuredContent"]
    assert log is not None
    assert [("add", {"a": 2, "b": 3}, 1)] == [(call.name, call.arguments, call.executions) for call in log.calls]


def test_microsoft_agent_framework(lasting: Callable[..., Http], sample: Sample) -> None:
    from agent_framework import MCPStreamableHTTPTool

    async def use(url: str) -> tuple[list[str], Any]:
        async with MCPStreamableHTTPTool(name="every", url=url, load_prompts=False) as tool:
            answer = await tool.call_tool("echo", text="hi", times=2)
            return [function.name for function in tool.functions], answer

    (names, answer), log = _through_the_tap(lasting(), sample, use)

    assert ["echo", "add"] == names[:2]
    assert "hihi" in str(answer if isinstance(answer, str) else answer[0].text)
    assert log is not None
    assert [("echo", {"text": "hi", "times": 2}, 1)] == [
        (call.name, call.arguments, call.executions) for call in log.calls
    ]
