"""The two requests of `keval.yaml` by aiohttp alone; nothing is kept of them."""

import asyncio
import json
import os
from typing import Any

import aiohttp
from two_requests import AT_ONCE, asked, judged, questions


async def main() -> None:
    left, headers = iter(questions()), {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=AT_ONCE)) as session:

        async def content(request: dict[str, Any]) -> Any:
            async with session.post(url, json=request) as response:
                return (await response.json())["choices"][0]["message"]["content"]

        async def work() -> None:
            for each in left:
                json.loads(await content(judged(each, await content(asked(each)))))

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))


asyncio.run(main())
