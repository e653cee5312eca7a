"""What the way to an MCP server costs: CPU of a trial with two model calls and one call of a shared stdio server.

Each subject runs in a process of its own, against the same model and the same server, which are processes, too; only
the subject's own CPU counts. Beside keval's agents stand the bare frameworks, over stdio with a session kept open, and
Pydantic AI where it is installed.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

from fixed_model import ANSWER, fixed_model
from measure import part

WARM, TRIALS, REPETITIONS, AT_ONCE = part(20), part(150), part(3), 8
QUESTION = "Where is my key?"

_SERVER = str(Path(__file__).with_name("look_up_server.py"))

Ask: TypeAlias = Callable[[int], Awaitable[str]]
"""Runs one trial, and returns the answer."""


@asynccontextmanager
async def keval_agent(agent: Any, server: str) -> AsyncIterator[Ask]:
    """Run an agent of keval as a worker does: its context is opened for each trial, behind the tap."""
    from keval import Sample
    from keval.plugin import Context, ServerSpec, TrialInfo
    from keval.seams.contexts import ServerUse
    from keval_mcp import Stdio
    from keval_mcp.proxy import McpProxy

    sample = Sample("s", QUESTION)
    async with AsyncExitStack() as stack:
        source = await stack.enter_async_context(
            Stdio(command=sys.executable, args=(server,), isolation="condition").start("keys")
        )
        (spec,) = source.servers
        assert isinstance(spec, ServerSpec)
        connected = await stack.enter_async_context(McpProxy().connect(ServerUse(spec)))
        stack.push_async_callback(agent.aclose)
        await agent.prepare()

        async def ask(number: int) -> str:
            info = TrialInfo(f"t{number}", sample, "a", "c")
            async with AsyncExitStack() as trial:
                (given,) = (await trial.enter_async_context(source.open(info))).servers
                assert isinstance(given, ServerSpec)
                reached = await trial.enter_async_context(connected.open(ServerUse(given)))
                context = Context(f"t{number}", "Be brief.", (reached,), seed=number)
                transcript = await agent.run(sample, context)
            assert reached.log is not None
            assert len(reached.log.calls) == 1
            return str(transcript.output)

        yield ask


@asynccontextmanager
async def own_agent(url: str, server: str) -> AsyncIterator[Ask]:
    from keval_openai import OpenAI

    async with keval_agent(OpenAI(_model(url)), server) as ask:
        yield ask


@asynccontextmanager
async def adk_in_keval(url: str, server: str) -> AsyncIterator[Ask]:
    from keval_gadk import Gadk

    async with keval_agent(Gadk(_model(url), api="chat"), server) as ask:
        yield ask


@asynccontextmanager
async def adk(url: str, server: str) -> AsyncIterator[Ask]:
    from google.adk.agents import LlmAgent
    from google.adk.integrations.openai import OpenAILlm
    from google.adk.runners import Runner
    from google.adk.sessions import InMemorySessionService
    from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
    from google.genai import types
    from mcp import StdioServerParameters
    from openai import AsyncOpenAI

    parameters = StdioServerParameters(command=sys.executable, args=[server])
    toolset = McpToolset(connection_params=StdioConnectionParams(server_params=parameters, timeout=30))
    llm = OpenAILlm(model="m", client=AsyncOpenAI(base_url=url, api_key="key", max_retries=0))
    agent = LlmAgent(name="a", model=llm, instruction="Be brief.", tools=[toolset])
    sessions = InMemorySessionService()
    runner = Runner(app_name="a", agent=agent, session_service=sessions)

    async def ask(number: int) -> str:
        name = f"s{number}"
        await sessions.create_session(app_name="a", user_id="u", session_id=name)
        message = types.Content(role="user", parts=[types.Part(text=QUESTION)])
        said = ""
        async for event in runner.run_async(user_id="u", session_id=name, new_message=message):
            if event.is_final_response() and event.content:
                said = "".join(part.text or "" for part in event.content.parts or ())
        await sessions.delete_session(app_name="a", user_id="u", session_id=name)
        return said

    yield ask
    await runner.close()


@asynccontextmanager
async def ms_in_keval(url: str, server: str) -> AsyncIterator[Ask]:
    from keval_ms import Ms

    async with keval_agent(Ms(_model(url)), server) as ask:
        yield ask


@asynccontextmanager
async def ms(url: str, server: str) -> AsyncIterator[Ask]:
    from agent_framework import Agent, MCPStdioTool
    from agent_framework.openai import OpenAIChatCompletionClient

    client = OpenAIChatCompletionClient(model="m", api_key="key", base_url=url)
    async with MCPStdioTool("keys", sys.executable, args=[server], load_prompts=False) as tool:

        async def ask(number: int) -> str:
            agent = Agent(client=client, instructions="Be brief.", tools=[tool])
            return (await agent.run(QUESTION)).text

        yield ask


@asynccontextmanager
async def pydantic_ai(url: str, server: str) -> AsyncIterator[Ask]:
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=url, api_key="key"))
    agent = Agent(model, instructions="Be brief.", toolsets=[MCPToolset(Path(server))])
    async with agent:

        async def ask(number: int) -> str:
            return str((await agent.run(QUESTION)).output)

        yield ask


SUBJECTS = {
    "openai": own_agent,
    "adk": adk,
    "adk in keval": adk_in_keval,
    "ms": ms,
    "ms in keval": ms_in_keval,
    "pydantic ai": pydantic_ai,
}


def _model(url: str) -> Any:
    from keval.plugin import Endpoint, Model

    return Model("bench", "m", Endpoint("m", {"openai-chat": url}, "key"))


async def _measured(subject: str, url: str, server: str) -> float:
    """Return the CPU of a trial in ms, with some trials at once; the first trials do not count."""

    async def run(numbers: range) -> None:
        left = iter(numbers)

        async def lane() -> None:
            for number in left:
                assert await ask(number) == ANSWER

        await asyncio.gather(*(lane() for _ in range(AT_ONCE)))

    async with SUBJECTS[subject](url, server) as ask:
        await run(range(WARM))
        began = time.process_time()
        await run(range(WARM, WARM + TRIALS))
        return (time.process_time() - began) / TRIALS * 1000


def main() -> None:
    found: dict[str, list[float]] = {name: [] for name in SUBJECTS}
    if find_spec("pydantic_ai") is None:
        del found["pydantic ai"]
    with fixed_model() as url:
        for _ in range(REPETITIONS):
            for name, costs in found.items():
                done = subprocess.run(
                    [sys.executable, __file__, name, url, _SERVER], stdout=subprocess.PIPE, check=True, timeout=120
                )
                costs.append(json.loads(done.stdout.splitlines()[-1]))
    cost = {name: median(costs) for name, costs in found.items()}
    print(f"CPU of a trial, {AT_ONCE} at once, median of {REPETITIONS} runs of {TRIALS} trials:")
    print(f"  openai: {cost['openai']:.1f} ms; wanted: at most 10")
    for name, full in (("adk", "ADK"), ("ms", "Agent Framework")):
        mine, bare = cost[f"{name} in keval"], cost[name]
        print(f"  {full} in keval: {mine:.1f} ms, by itself over stdio {bare:.1f} ms: {mine / bare:.2f} times,")
        print(f"    {mine - bare:+.1f} ms; wanted: at most +5")
    if "pydantic ai" in cost:
        share = cost["openai"] / cost["pydantic ai"]
        print(f"  Pydantic AI by itself over stdio: {cost['pydantic ai']:.1f} ms; openai takes {share:.2f} times that")
    else:
        print("  Pydantic AI is not installed")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(asyncio.run(_measured(*sys.argv[1:4]))))
    else:
        main()
