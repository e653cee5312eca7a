"""The client: one exchange after the other with a model's endpoint, through the middleware of the run."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

import attrs
import orjson

from keval.errors import ModelError, TrialError
from keval.records.models import Exchange, ModelRequest, ModelResponse, Next, Wire, retry_after_seconds
from keval_clients.replies import RefusedError, no_reply, quoted, read_json, what_failed
from keval_clients.sender import Sender

_HEADERS = {"accept": "application/json", "content-type": "application/json", "user-agent": "keval"}
_EVENTS = "text/event-stream"
_DONE = b"[DONE]"

_strictly = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


@attrs.frozen(eq=False)
class Client:
    """A client for one model.

    `wire` tells the protocol of a request by its path below the base URL. A request passes through `exchange`, if there
    is one, and is then sent by `sender`, with the key, which nobody else sees.

    Each agent and each judge has one of its own, though they ask the same endpoint: to share one would make the closing
    of one depend on the other.
    """

    model: str
    _sender: Sender
    _wire: Callable[[str], Wire]
    _exchange: Exchange | None = None
    _headers: Mapping[str, str] = attrs.field(factory=dict)

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        requested: Callable[[bytes], object] = lambda body: None,
    ) -> dict[str, Any]:
        """Send a request and return the reply, in which only lone surrogates are replaced.

        `requested` is told the body as it is sent.

        Raises:
            RefusedError: the endpoint refused.
            ModelError: it failed or could not be reached.
            TrialError: kind `bad_reply`, it did not answer with a JSON object; `reply_too_large`.
        """
        response = await self._ask(path, body, headers, requested, self._sender.send)
        return _read(await _content(response))

    async def stream(
        self,
        path: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        requested: Callable[[bytes], object] = lambda body: None,
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Send a request for a reply that is streamed, and yield the object in each event as it arrives.

        The mark `[DONE]`, with which OpenAI's streams end, is left out. A stream that ends before the reply does is not
        noticed here: only the protocol tells that. Close the iterator (`aclosing`) if you do not read it to its end.

        Raises, also while it is read:
            RefusedError: the endpoint refused.
            ModelError: it failed or could not be reached, or the response broke off.
            TrialError: kind `bad_reply`, it did not answer with events that are JSON objects; `reply_too_large`.
        """
        async with AsyncExitStack() as opened:

            async def send(request: ModelRequest) -> ModelResponse:
                answer = await self._sender.send(request)
                if isinstance(answer.chunks, AsyncGenerator):
                    opened.push_async_callback(answer.chunks.aclose)
                return answer

            response = await self._ask(path, body, headers, requested, send)
            if not response.headers.get("content-type", "").startswith(_EVENTS):
                raise no_reply((await _content(response)).decode("utf-8", "replace"))
            async for data in event_data(_arriving(response)):
                if data == _DONE:
                    return
                yield _read(data)

    async def aclose(self) -> None:
        """Close every connection, once or more often."""
        await self._sender.aclose()

    async def _ask(
        self,
        path: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        requested: Callable[[bytes], object],
        send: Next,
    ) -> ModelResponse:
        """Send a request and return a response that is no refusal."""
        content = _written(body)
        requested(content)
        request = ModelRequest(
            self.model, self._wire(path), "POST", path, {**_HEADERS, **self._headers, **headers}, content
        )
        try:
            response = await (send(request) if self._exchange is None else self._exchange(request, send))
        except TrialError:
            raise
        except Exception as error:  # the seam to the middleware
            raise ModelError(quoted(what_failed(error)), status=502) from error
        if response.status >= 400:
            raise _refused(response, await _content(response))
        return response


def _written(body: Mapping[str, Any]) -> bytes:
    """Write a request's body. Raises ValueError: it has a number that JSON has not."""
    try:
        content = orjson.dumps(body)
    except TypeError:  # a number of more than 64 bits, for example
        content = b"null"
    # orjson writes NaN as null, and takes a tenth of the time.
    return _strictly(body).encode() if b"null" in content else content


async def _content(response: ModelResponse) -> bytes:
    try:
        return await response.read()
    except TrialError:
        raise
    except Exception as error:  # of an iterator that middleware put in the body's place
        raise _broken_off(error) from error


async def _arriving(response: ModelResponse) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in response.chunks:
            yield chunk
    except TrialError:
        raise
    except Exception as error:  # as in `_content`
        raise _broken_off(error) from error


def _refused(response: ModelResponse, content: bytes) -> RefusedError:
    """Read a refusal, of which the vendors' APIs give `{"error": {"message": …}}`, and others anything."""
    said, field = content.decode("utf-8", "replace").strip(), None
    try:
        match read_json(content):
            case {"error": {"message": str(message), **others}}:
                said, field = message, others.get("param")
    except ValueError:
        pass  # then it is told as it is
    told = f"Error code: {response.status}" + (f" - {said}" if said else "")
    wait = retry_after_seconds(response.headers.get("retry-after"))
    return RefusedError(quoted(told), response.status, wait, field if isinstance(field, str) else None)


def _broken_off(error: Exception) -> ModelError:
    return ModelError(f"the model's endpoint gave no answer: the response broke off: {what_failed(error)}")


def _read(content: bytes) -> dict[str, Any]:
    try:
        reply = read_json(content)
    except ValueError as error:
        raise no_reply(content.decode("utf-8", "replace")) from error
    if not isinstance(reply, dict):
        raise no_reply(content.decode("utf-8", "replace"))
    return reply


async def event_data(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the data of each event of a stream (HTML Living Standard, section 9.2.6), without names and ids.

    What follows the last whole event is left out, as the standard has it.
    """
    # A line is put together once, at its end: to add each chunk to what came before takes the square of a long line.
    begun = bytearray()
    data: list[bytes] = []
    after_return = False
    async for chunk in chunks:
        if after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]  # noqa: PLW2901 - the second half of a line's end
        after_return = chunk.endswith(b"\r")
        *lines, rest = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for ending in lines:
            line = bytes(begun) + ending
            begun.clear()
            field, _, value = line.partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" "))
            elif not line:
                if told := b"\n".join(data):
                    yield told
                data = []
        begun += rest
