"""A model endpoint that says what it is told to, for adapters that speak a vendor's API themselves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import attrs
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from keval import Sample, Transcript
from keval.plugin import Context, Endpoint, Model
from keval_loopback.serving import serve
from keval_testing.agent_stage import AgentStage
from tests.agents.stage import ADAPTERS, OTHER_WIRES, OWN_AGENTS, Adapter

Answer: TypeAlias = Response | dict[str, Any]


@attrs.frozen
class QuestionInput:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@attrs.define
class Scripted:
    """An endpoint at `base`; `answers` are given in order, whatever is asked."""

    base: str
    answers: list[Answer]
    asked: list[QuestionInput] = attrs.field(factory=list)

    @property
    def model(self) -> Model:
        wires: Any = ("openai-chat", "openai-responses", "anthropic")
        return Model("scripted", "m", Endpoint("the-model", dict.fromkeys(wires, self.base), "key"))

    async def answer(self, request: Request) -> Response:
        path = "/" + request.path_params["path"]
        self.asked.append(QuestionInput(path, dict(request.headers), await request.json()))
        answer = self.answers.pop(0)
        return answer if isinstance(answer, Response) else JSONResponse(answer)


@attrs.define
class Endpoints:
    """One server for all tests; every endpoint has a path of its own."""

    root: str = ""
    _served: dict[str, Scripted] = attrs.field(factory=dict)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[Endpoints]:
        async with serve(Starlette(routes=[Route("/{of}/{path:path}", self._answer, methods=["POST"])])) as self.root:
            yield self

    @asynccontextmanager
    async def scripted(self, *answers: Answer) -> AsyncIterator[Scripted]:
        name = str(len(self._served))
        self._served[name] = Scripted(f"{self.root}/{name}", list(answers))
        yield self._served[name]

    async def _answer(self, request: Request) -> Response:
        return await self._served[request.path_params["of"]].answer(request)


@attrs.frozen
class Played:
    """What came of a trial: its transcript, the error if it failed, and what the model was asked."""

    transcript: Transcript
    error: Exception | None
    asked: list[QuestionInput]

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [asked.body for asked in self.asked]


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    """The event loop in which the endpoints stay up between tests."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="session")
def endpoints(runner: asyncio.Runner) -> Iterator[Endpoints]:
    serving = Endpoints().serve()
    yield runner.run(serving.__aenter__())
    runner.run(serving.__aexit__(None, None, None))


@pytest.fixture
def scripted(endpoints: Endpoints) -> Callable[..., AbstractAsyncContextManager[Scripted]]:
    """Serve an endpoint, in a coroutine that `runner` runs: `async with scripted(answer, ...) as endpoint`."""
    return endpoints.scripted


@pytest.fixture
def play(runner: asyncio.Runner, endpoints: Endpoints) -> Callable[..., Played]:
    """Run a trial against an endpoint: `play(OpenAI, answer, ..., sample=..., context=..., api="responses")`."""

    async def trial(adapter: Callable[..., Any], *answers: Answer, **rest: Any) -> Played:
        sample, context = rest.pop("sample", Sample("s1", "How are you?")), rest.pop("context", Context())
        async with endpoints.scripted(*answers) as endpoint:
            agent = adapter(endpoint.model, **rest)
            error = None
            try:
                await agent.run(sample, context)
            except Exception as raised:  # noqa: BLE001 - the test looks at it
                error = raised
            await agent.aclose()
            return Played(context.builder.transcript(), error, endpoint.asked)

    return lambda *args, **rest: runner.run(trial(*args, **rest))


@pytest.fixture(scope="session")
def stage(runner: asyncio.Runner) -> Iterator[AgentStage]:
    """A scripted model and a server behind the tap, up for the tests of every adapter."""
    opening = AgentStage.open()
    yield runner.run(opening.__aenter__())
    runner.run(opening.__aexit__(None, None, None))


@pytest.fixture(params=[*ADAPTERS])
def adapter(request: pytest.FixtureRequest) -> Adapter:
    """Each adapter; a test may ask for one of `OTHER_WIRES` and `OWN_AGENTS` too, by `indirect`."""
    if request.param == "claude-code":
        pytest.importorskip("claude_agent_sdk", reason="keval-claude-code is installed apart")
    return {**ADAPTERS, **OTHER_WIRES, **OWN_AGENTS}[request.param]
