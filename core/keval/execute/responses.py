"""Responses of a model before anything of them is passed on: whether they can be, and what failed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import attrs

from keval.errors import MiddlewareError, ModelError, TrialError
from keval.models import ModelRequest, ModelResponse, Next, retry_after_seconds

__all__ = ["Failed", "sent"]

_CALLS = ("/chat/completions", "/responses", "/messages", ":generateContent", ":streamGenerateContent")
"""How the paths of model calls end; the responses to other requests may be anything."""
_REPEATED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_LONGEST_MESSAGE = 500


@attrs.frozen
class Failed:
    """A response that is not passed on unless it is the last, or the error in place of one."""

    status: int | None
    message: str
    retry_after: float | None = None
    response: ModelResponse | None = None
    error: Exception | None = None

    @classmethod
    def refused(cls, response: ModelResponse, body: bytes) -> Failed:
        told = body[:_LONGEST_MESSAGE].decode("utf-8", "replace").strip()
        wait = retry_after_seconds(response.headers.get("retry-after"))
        return cls(response.status, told, wait, response)

    @classmethod
    def broken(cls, error: Exception) -> Failed:
        return cls(None, str(error) or type(error).__name__, error=error)

    def passed_on(self) -> ModelResponse:
        """Return the response; raises the error where there is none."""
        if self.response is not None:
            return self.response
        if isinstance(self.error, ModelError):
            raise self.error
        raise ModelError(f"the response broke off: {self.message}") from self.error


async def sent(request: ModelRequest, send: Next) -> ModelResponse | Failed:
    """Send a request and return its response, as soon as that can be passed on, or what failed.

    Raises:
        MiddlewareError: a middleware failed.
        TrialError: the endpoint answered with what would be the same the next time.
    """
    try:
        response = await send(request)
        if response.status in _REPEATED:
            return Failed.refused(response, await response.read())
        await _begun(response)
        problem = await _unreadable(request, response)
    except MiddlewareError:
        raise
    except TrialError as error:
        if not isinstance(error, ModelError):
            raise
        return Failed.broken(error)
    except Exception as error:  # noqa: BLE001 - whatever breaks a response off before it is passed on
        return Failed.broken(error)
    return response if problem is None else Failed(response.status, problem, response=response)


async def _begun(response: ModelResponse) -> None:
    """Wait for a response as long as it can still be asked for again: for its end, or the first event of a stream."""
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        await response.read()
        return
    following = aiter(response.chunks)
    first = [chunk async for chunk in _first(following)]

    async def whole() -> AsyncIterator[bytes]:
        for chunk in first:
            yield chunk
        async for chunk in following:
            yield chunk

    response.chunks = whole()


async def _first(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        yield chunk
        return


async def _unreadable(request: ModelRequest, response: ModelResponse) -> str | None:
    """Say why a response that claims success cannot be an answer, or return `None`.

    An answer is JSON, or a stream of events. What Python reads beyond JSON (NaN, lone surrogates) is left to agents.
    The response has been read, unless it is a stream.
    """
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    called = request.method == "POST" and request.path.partition("?")[0].endswith(_CALLS)
    if not called or not 200 <= response.status < 300 or kind == "text/event-stream":
        return None
    try:
        json.loads(await response.read())
    except RecursionError:  # it is JSON so far, and whoever reads it will say more
        return None
    except ValueError as error:
        return f"the response of type {kind or 'unknown'} is no JSON: {error}"
    return None
