"""The agents of `bench/own_agents.py` without keval: asks every question of `q.jsonl`, and keeps nothing.

python bare.py KIND AT_ONCE COMMAND…    the model is that of the environment, and COMMAND may be a URL
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

Ask: TypeAlias = Callable[[str], Awaitable[str]]


@asynccontextmanager
async def command(*program: str) -> AsyncIterator[Ask]:
    """Start the program for each question, in the environment that keval gives it."""

    async def ask(question: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *program, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=_environment()
        )
        output, _ = await process.communicate(question.encode())
        assert process.returncode == 0
        return output.decode()

    yield ask


@asynccontextmanager
async def acp(*program: str) -> AsyncIterator[Ask]:
    """Have a conversation with a program of its own for each question, by the SDK's client."""
    from acp import PROTOCOL_VERSION, spawn_agent_process, text_block

    class Client:
        """Keeps what the agent says."""

        def __init__(self) -> None:
            self.said = ""

        async def session_update(self, session_id: str, update: Any, **meta: Any) -> None:
            self.said += update.content.text

    async def ask(question: str) -> str:
        client: Any = Client()
        async with spawn_agent_process(client, *program, env=_environment()) as (agent, _):
            await agent.initialize(PROTOCOL_VERSION)
            session = await agent.new_session(os.getcwd(), mcp_servers=[])
            await agent.prompt(session_id=session.session_id, prompt=[text_block(question)])
        return str(client.said)

    yield ask


@asynccontextmanager
async def python(function: str) -> AsyncIterator[Ask]:
    """Call the function."""
    import functions

    from keval import Sample
    from keval.plugin import Context, ModelAccess

    url, key = os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]
    context = Context(model=ModelAccess("m", "openai-chat", url, key))

    async def ask(question: str) -> str:
        if function == "own_model":
            return await functions.own_model(question)
        sample = Sample("s", question)
        if function == "plain":
            return functions.plain(sample, context)
        return await functions.asynchronous(sample, context)

    yield ask


@asynccontextmanager
async def http(url: str) -> AsyncIterator[Ask]:
    """Post the question by aiohttp, over connections that are kept."""
    import aiohttp

    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    async with aiohttp.ClientSession(headers=headers) as session:

        async def ask(question: str) -> str:
            request = {"model": "m", "messages": [{"role": "user", "content": question}]}
            async with session.post(f"{url}/chat/completions", json=request) as response:
                return str((await response.json())["choices"][0]["message"]["content"])

        yield ask


def _questions() -> list[str]:
    return [json.loads(line)["question"] for line in Path("q.jsonl").read_text(encoding="utf-8").splitlines()]


def _environment() -> dict[str, str]:
    from keval_programs import environment

    model = {name: os.environ[name] for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY")}
    return environment(Path.cwd(), model)


KINDS: dict[str, Callable[..., AbstractAsyncContextManager[Ask]]] = {
    "command": command,
    "acp": acp,
    "python": python,
    "http": http,
    "openai": http,
}


async def main(kind: str, at_once: str, *given: str) -> None:
    left = iter(_questions())
    async with KINDS[kind](*given) as ask:

        async def lane() -> None:
            for question in left:
                assert await ask(question)

        await asyncio.gather(*(lane() for _ in range(int(at_once))))


asyncio.run(main(*sys.argv[1:]))
