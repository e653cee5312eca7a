"""Who logs in in a browser comes back to keval, and nobody else does in their place."""

from __future__ import annotations

import asyncio
import sys

import httpx2
from mcp.client.auth import AuthorizationCodeResult

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
