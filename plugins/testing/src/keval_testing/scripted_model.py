"""A model endpoint on loopback whose replies a test scripts, in every protocol that agents speak."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeAlias

import attrs

from keval.records.models import Endpoint, Model, Wire
from keval_testing.scripted_endpoint import ReceivedRequest, ScriptedReply, serve_script

Reply: TypeAlias = ScriptedReply | Callable[[ReceivedRequest], ScriptedReply | Awaitable[ScriptedReply]]
"""A reply, or a function that makes one of the request."""


def says(text: str, **rest: Any) -> ScriptedReply:
    """Return a reply that is a text: `says("It is", cut="length")`."""
    return ScriptedReply(text, **rest)


def calls_tools(*wanted: tuple[str, Mapping[str, Any]], **rest: Any) -> ScriptedReply:
    """Return a reply that calls tools: `calls_tools(("add", {"a": 2, "b": 3}), text="Let me add.")`."""
    return ScriptedReply(calls=wanted, **rest)


def refuses(status: int, message: str = "not today", retry_after: float | None = None) -> ScriptedReply:
    """Return a refusal of the endpoint: `refuses(429, retry_after=7)`."""
    return ScriptedReply(message, status=status, retry_after=retry_after)


_AT_ITS_END = ScriptedReply("the script of this model has no further reply", status=400)


@attrs.define(eq=False)
class Script:
    """The replies for whoever asks `model`, in order; `requests` are those that came."""

    model: Model
    _replies: Iterator[Reply]
    requests: list[ReceivedRequest] = attrs.field(factory=list, init=False)

    async def answer(self, request: ReceivedRequest) -> ScriptedReply:
        """Return the next reply, with its tools under the names that the agent offers them by."""
        self.requests.append(request)
        made = next(self._replies, _AT_ITS_END)
        if not isinstance(made, ScriptedReply):
            answered = made(request)
            made = answered if isinstance(answered, ScriptedReply) else await answered
        await asyncio.sleep(made.delay)
        named = tuple((offered_name(tool, request.tools), arguments) for tool, arguments in made.calls)
        return attrs.evolve(made, calls=named)


@attrs.define(eq=False)
class ScriptedModel:
    """A server of scripts; each has an API key of its own, so that late requests of one are not another's."""

    _urls: Mapping[Wire, str] = attrs.field(factory=dict, init=False)
    _scripts: dict[str, Script] = attrs.field(factory=dict, init=False)

    @classmethod
    @asynccontextmanager
    async def serve(cls) -> AsyncIterator[ScriptedModel]:
        """Serve in the loop that is running."""
        served = cls()
        async with serve_script(served._answer) as served._urls:
            yield served

    @classmethod
    @contextmanager
    def serve_in_thread(cls) -> Iterator[ScriptedModel]:
        """Serve in a thread of its own, for tests without a loop; functions among the replies are called there."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="scripted model")
        thread.start()
        try:
            serving = cls.serve()
            yield asyncio.run_coroutine_threadsafe(serving.__aenter__(), loop).result()
            asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def __call__(self, *replies: Reply) -> Script:
        """Return a script of these replies."""
        return self.script(replies)

    def script(self, replies: Iterable[Reply]) -> Script:
        """Return a script of replies, of which there may be no end."""
        key = f"scripted-key-{len(self._scripts):04}"
        model = Model("scripted", "model", Endpoint("model", self._urls, key, simulated=True, wants_trial=True))
        script = self._scripts[key] = Script(model, iter(replies))
        return script

    async def _answer(self, request: ReceivedRequest) -> ScriptedReply:
        script = self._scripts.get(request.key)
        return await script.answer(request) if script else refuses(401, "send the key of the model that you were given")


def offered_name(tool: str, offered: Iterable[str]) -> str:
    """Return the name by which an agent offers a server's tool; many a framework puts the server's name before it."""
    names = [*offered]
    return tool if tool in names else next((name for name in names if name.endswith(f"_{tool}")), tool)
