"""Middleware for tests: one that keeps a journal, and some that get between an agent and its model."""

import json
from pathlib import Path
from typing import Any

import attrs

from keval.plugin import ModelRequest, ModelResponse, Next


@attrs.frozen
class Counting:
    """Adds a line of JSON to `journal` for every request, and one when it is prepared and when it is closed."""

    journal: str

    async def prepare(self) -> None:
        self._note(event="prepared")

    async def handle(self, request: ModelRequest, next: Next) -> ModelResponse:
        status = None
        try:
            response = await next(request)
            status = response.status
        finally:
            self._note(
                event="request",
                asker=attrs.asdict(request.asker),
                model=request.model,
                wire=request.wire,
                path=request.path,
                headers=dict(request.headers),
                status=status,
            )
        return response

    async def aclose(self) -> None:
        self._note(event="closed")

    def _note(self, **entry: Any) -> None:
        with Path(self.journal).open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


@attrs.frozen
class Retrying:
    """Asks again at once, up to `times` times, when the model is busy or fails."""

    times: int = 1

    async def handle(self, request: ModelRequest, next: Next) -> ModelResponse:
        response = await next(request)
        for _ in range(self.times):
            if response.status != 429 and response.status < 500:
                break
            response = await next(request)
        return response


@attrs.frozen
class Rewriting:
    """Puts `new` in the place of `old` in every request."""

    old: str
    new: str

    async def handle(self, request: ModelRequest, next: Next) -> ModelResponse:
        body = request.body.replace(self.old.encode(), self.new.encode())
        return await next(attrs.evolve(request, body=body))


@attrs.frozen
class Misquoting:
    """Puts `new` in the place of `old` in every answer."""

    old: str
    new: str

    async def handle(self, request: ModelRequest, next: Next) -> ModelResponse:
        response = await next(request)
        body = (await response.read()).replace(self.old.encode(), self.new.encode())
        return ModelResponse.of(response.status, response.headers, body)


class Nameless:
    """Takes the ids from the tool calls of answers that are not streamed, as some endpoints give none."""

    async def handle(self, request: ModelRequest, next: Next) -> ModelResponse:
        response = await next(request)
        answered = json.loads(await response.read())
        body = json.dumps(answered if response.status != 200 else _without_ids(answered)).encode()
        return ModelResponse.of(response.status, response.headers, body)


def _without_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    is_call = "args" in value or "function" in value or value.get("type") in {"function_call", "tool_use"}
    blank = {name: "" for name in ("id", "call_id") if name in value} if is_call else {}
    return {**{name: _without_ids(item) for name, item in value.items()}, **blank}


class Failing:
    """Raises in place of an answer."""

    async def handle(self, request: ModelRequest, next: Next) -> ModelResponse:
        raise ValueError("out of order")
