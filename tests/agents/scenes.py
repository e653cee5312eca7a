"""One trial at a time in front of a scripted model, for adapters whose framework reaches the model itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, TypeAlias

import attrs

from keval import Sample, Transcript
from keval.plugin import Context, Endpoint, McpServer, Model
from keval.seams.interfaces import Closable
from keval_gateway import ChatReply, ChatRequest, Respond, wire_urls
from keval_gateway.app import build_app
from keval_loopback.serving import serve

Script: TypeAlias = Respond | Sequence[ChatReply]
"""What the model says: a responder, or its replies in order, whatever it is asked."""

Staged: TypeAlias = Callable[..., AbstractAsyncContextManager["Scene"]]


@attrs.frozen
class Scene:
    """An adapter in front of a scripted model, and every request the model saw."""

    agent: Any
    requests: list[ChatRequest]


@attrs.frozen
class Outcome:
    """What came of one trial: its transcript, the error if it failed, and what the model was asked."""

    transcript: Transcript
    error: Exception | None
    requests: list[ChatRequest]


@attrs.define
class Models:
    """The responder of one gateway for all tests, at `base`; each scene has a script and a key of its own."""

    adapter: Callable[..., Any]
    runner: asyncio.Runner
    base: str = ""
    scripts: dict[str, tuple[Respond, list[ChatRequest]]] = attrs.field(factory=dict)

    @classmethod
    @contextmanager
    def serve(cls, adapter: Callable[..., Any], runner: asyncio.Runner) -> Iterator[Models]:
        """Serve the gateway in the runner's loop, in which it stays up between tests."""
        models = cls(adapter, runner)
        gateway = serve(build_app(models.respond))
        models.base = runner.run(gateway.__aenter__())
        yield models
        runner.run(gateway.__aexit__(None, None, None))

    def respond(self, request: ChatRequest) -> ChatReply | Awaitable[ChatReply]:
        key = request.headers.get("x-api-key") or request.headers["authorization"].removeprefix("Bearer ")
        respond, requests = self.scripts[key]
        requests.append(request)
        return respond(request)

    @asynccontextmanager
    async def stage(self, script: Script, **options: Any) -> AsyncIterator[Scene]:
        key, requests = f"key-{len(self.scripts)}", list[ChatRequest]()
        self.scripts[key] = (_responder(script), requests)
        endpoint = Endpoint("claude-sonnet-5-5", wire_urls(self.base), key, simulated=True, wants_trial=True)
        agent = self.adapter(model=Model("simulated", "scripted", endpoint), **options)
        try:
            yield Scene(agent, requests)
        finally:
            if isinstance(agent, Closable):
                await agent.aclose()

    def play(self, script: Script, *servers: McpServer, sample: Sample | None = None, **rest: Any) -> Outcome:
        """Run one trial: `play(script, *servers, max_turns=3, sample=..., context=...)`."""
        context = attrs.evolve(rest.pop("context", Context(trial="t1")), servers=servers)
        return self.runner.run(self._play(script, sample or Sample("s1", "How are you?"), context, **rest))

    async def _play(self, script: Script, sample: Sample, context: Context, **options: Any) -> Outcome:
        async with self.stage(script, **options) as scene:
            try:
                transcript = await scene.agent.run(sample, context)
            except Exception as error:  # noqa: BLE001 - the test looks at it
                return Outcome(context.builder.transcript(), error, scene.requests)
            return Outcome(transcript, None, scene.requests)


def _responder(script: Script) -> Respond:
    if callable(script):
        return script
    left = iter(script)
    return lambda request: next(left)
