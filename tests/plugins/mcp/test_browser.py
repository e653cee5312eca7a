"""Who logs in in a browser comes back to keval, and nobody else does in their place."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import Any

import httpx2
import pytest
from mcp.client.auth import AuthorizationCodeResult

from keval_mcp.server import login
from keval_mcp.server.login import Browser

PAGE = "https://login.example/authorize?client_id=keval&state=only-we-know"


def test_only_who_knows_the_state_of_the_page_is_let_in() -> None:
    async def run() -> tuple[list[int], AuthorizationCodeResult]:
        browser = Browser("docs", (sys.executable, "-c", ""))
        await browser.open(PAGE)
        async with httpx2.AsyncClient(trust_env=False) as client:
            answers = [
                await client.get(browser.redirect_uri, params={"code": "evil", **given})
                for given in ({}, {"state": "guessed"})
            ]
            answers.append(await client.get(browser.redirect_uri.replace("callback", "other?state=only-we-know")))
            answers.append(await client.get(browser.redirect_uri, params={"code": "mine", "state": "only-we-know"}))
        return [answer.status_code for answer in answers], await browser.returned()

    statuses, back = asyncio.run(run())

    assert [403, 403, 403, 200] == statuses
    assert ("mine", "only-we-know") == (back.code, back.state)


@pytest.mark.parametrize("line", [b"", b"GET /" + b"a" * 100_000 + b"\r\n", b"GET http://[ HTTP/1.1\r\n"])
def test_what_is_no_request_is_answered_by_hanging_up(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "SECONDS", 0.1)
    errors: list[dict[str, Any]] = []

    async def run() -> bytes:
        asyncio.get_running_loop().set_exception_handler(lambda _, error: errors.append(error))
        browser = Browser("docs", (sys.executable, "-c", ""))
        await browser.open(PAGE)
        reader, writer = await asyncio.open_connection("127.0.0.1", browser.port)
        writer.write(line)
        said = b""
        with suppress(ConnectionError):  # of what it has not read
            said = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        monkeypatch.undo()
        async with httpx2.AsyncClient(trust_env=False) as client:
            await client.get(browser.redirect_uri, params={"code": "mine", "state": "only-we-know"})
        await browser.returned()
        return said

    assert (b"", []) == (asyncio.run(run()), errors)
