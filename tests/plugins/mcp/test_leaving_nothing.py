"""However a run ends, no process, task, port or file stays behind."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from mcp import Client

from keval import Sample
from keval_mcp import Stdio
from tests.contexts import started


@pytest.fixture(autouse=True)
def _temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert [] == list(tmp_path.iterdir())


def _is_gone(pid: bytes | str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    return False


def _is_closed(url: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", urlsplit(url).port or 0)) != 0


def _only_this_task() -> bool:
    return asyncio.all_tasks() == {asyncio.current_task()}


def test_after_a_run_that_was_quiet_too(
    bare: Callable[..., Stdio],
    sample: Sample,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> tuple[bool, bool, bool]:
        async with started(bare(), "every") as source, source.open(sample, "t") as context:
            url = context.servers[0].url or ""
            async with Client(url) as client:
                result = await client.call_tool("pid", {})
        return _is_gone(result.content[0].text), _is_closed(url), _only_this_task()  # type: ignore[union-attr]

    assert (True, True, True) == asyncio.run(run())
    assert ("", "") == capfd.readouterr()
    assert [] == [record.message for record in caplog.records if record.levelno >= logging.WARNING]


def test_after_an_error_in_a_trial(bare: Callable[..., Stdio], attempt: Callable[..., Any], sample: Sample) -> None:
    pid = ""

    async def run() -> None:
        nonlocal pid
        async with started(bare(), "every") as source, source.open(sample, "t"):
            async with attempt(source) as tapped:
                pid = await tapped.call("pid")
            raise LookupError("of the agent")

    with pytest.raises(LookupError, match="of the agent"):
        asyncio.run(run())

    assert _is_gone(pid)


def test_after_cancelling_the_start(server: Callable[..., Stdio], doorbell: Callable[[], Any]) -> None:
    async def start(port: int) -> None:
        async with started(server("mute", str(port)), "mute"):
            pass

    async def run() -> tuple[bool, bool]:
        async with doorbell() as bell:
            starting = asyncio.create_task(start(bell.port))
            await bell.rung.wait()
            starting.cancel()
            await asyncio.wait({starting})
            return starting.cancelled(), _is_gone(bell.said)

    assert (True, True) == asyncio.run(run())


@pytest.mark.parametrize("options", [{"isolation": "condition"}, {"isolation": "trial"}])
def test_after_cancelling_in_the_middle_of_a_call(
    bare: Callable[..., Stdio], attempt: Callable[..., Any], doorbell: Callable[[], Any], options: dict[str, Any]
) -> None:
    pid = ""

    async def use(port: int) -> None:
        nonlocal pid
        async with started(bare(**options), "every") as source, attempt(source) as tapped:
            pid = await tapped.call("pid")
            await tapped.call("hang", port=port)

    async def run() -> tuple[bool, bool]:
        async with doorbell() as bell:
            using = asyncio.create_task(use(bell.port))
            await bell.rung.wait()
            using.cancel()
            await asyncio.wait({using})
        return using.cancelled(), _only_this_task()

    assert (True, True) == asyncio.run(run())
    assert _is_gone(pid)


def test_after_cancelling_while_it_is_being_closed(
    bare: Callable[..., Stdio], attempt: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from keval_mcp.server.upstream import Upstream

    pid = ""
    closing = asyncio.Event()
    close = Upstream.close

    async def announced(upstream: Upstream) -> None:
        closing.set()
        await close(upstream)

    async def use() -> None:
        nonlocal pid
        async with started(bare(), "every") as source, attempt(source) as tapped:
            pid = await tapped.call("pid")

    async def run() -> tuple[bool, bool]:
        monkeypatch.setattr(Upstream, "close", announced)
        using = asyncio.create_task(use())
        await closing.wait()
        using.cancel()
        await asyncio.wait({using})
        return using.cancelled(), _only_this_task()

    assert (True, True) == asyncio.run(run())
    assert _is_gone(pid)
