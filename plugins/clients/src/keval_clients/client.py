"""The client: one exchange after the other with a model's endpoint, over a vendor's SDK."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import attrs
import httpx2

from keval.plugin import ModelError, TrialError, retry_after_seconds
from keval_clients.replies import no_reply, quoted, read_json

if TYPE_CHECKING:
    import anthropic
    import openai


_SDK: TypeAlias = "openai.AsyncOpenAI | anthropic.AsyncAnthropic"
_Refused: TypeAlias = "type[openai.APIStatusError | anthropic.APIStatusError]"
_Failed: TypeAlias = "type[openai.APIConnectionError | anthropic.APIConnectionError]"
_Stream: TypeAlias = "type[openai.AsyncStream[object]] | type[anthropic.AsyncStream[object]]"

_DONE = b"[DONE]"


@attrs.frozen(eq=False)
class Client:
    """An SDK's client for one model; `refused` and `failed` are the SDK's errors with and without an HTTP status, and
    `stream` its class for streamed replies.

    Each agent and each judge has one of its own, though they ask the same endpoint: to share one would make the closing
    of one depend on the other, and what takes time to build, they share (see `transport`).
    """

    model: str
    _sdk: _SDK
    _refused: _Refused
    _failed: _Failed
    _stream: _Stream

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        requested: Callable[[bytes], object] = lambda body: None,
    ) -> dict[str, Any]:
        """Send a request and return the reply, in which only lone surrogates are replaced.

        `requested` is told the body as it is sent.

        The SDKs' own methods take 1 to 1.5 ms of CPU more, to check a request and a reply against their types.

        Raises:
            ModelError: the endpoint refused, failed or could not be reached.
            TrialError: kind `bad_reply`, it did not answer with a JSON object; `reply_too_large`.
        """
        content = _written(body)
        requested(content)
        with self._explained():
            response = await self._sdk.post(
                path, cast_to=httpx2.Response, content=content, options={"headers": dict(headers)}
            )
        return _read(response.content)

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
            ModelError: the endpoint refused, failed or could not be reached, or the response broke off.
            TrialError: kind `bad_reply`, it did not answer with events that are JSON objects; `reply_too_large`.
        """
        content = _written(body)
        requested(content)
        with self._explained():
            stream = await self._sdk.post(
                path,
                cast_to=object,
                content=content,
                options={"headers": dict(headers)},
                stream=True,
                stream_cls=cast(Any, self._stream),  # each SDK takes its own
            )
            async with aclosing(stream.response) as response:
                if not response.headers.get("content-type", "").startswith("text/event-stream"):
                    raise no_reply((await response.aread()).decode("utf-8", "replace"))
                async for data in event_data(response.aiter_bytes()):
                    if data == _DONE:
                        return
                    yield _read(data)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise the errors of the SDK, and of the HTTP client below it, in keval's words."""
        try:
            yield
        except self._refused as refused:
            wait = retry_after_seconds(refused.response.headers.get("retry-after"))
            raise ModelError(quoted(_told(refused)), status=refused.status_code, retry_after=wait) from refused
        except (self._failed, httpx2.TransportError) as failed:
            # The SDKs say no more than "Connection error."; what really failed is the cause. The second comes out of a
            # stream, where the cause is one of middleware, and says no more.
            cause = failed.__cause__
            if isinstance(cause, TrialError) and not isinstance(cause, ModelError):
                raise cause from failed
            told = failed if isinstance(failed, httpx2.TransportError) else cause or failed
            raise ModelError(f"the model's endpoint gave no answer: {told}") from failed

    async def aclose(self) -> None:
        """Close every connection, once or more often."""
        await self._sdk.close()


def _written(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _read(content: bytes) -> dict[str, Any]:
    try:
        reply = read_json(content)
    except ValueError as error:
        raise no_reply(content.decode("utf-8", "replace")) from error
    if not isinstance(reply, dict):
        raise no_reply(content.decode("utf-8", "replace"))
    return reply


def _told(refused: openai.APIStatusError | anthropic.APIStatusError) -> str:
    """Return what an endpoint said; OpenAI's SDK tells nothing of a body that has not OpenAI's own shape."""
    told, body = str(refused), refused.response.text.strip()
    return f"{told} - {body}" if told == f"Error code: {refused.status_code}" and body else told


_LINE_END = re.compile(rb"\r\n|\n|\r(?!$)")
"""The end of a line; a carriage return at the end of a chunk may be the first half of one."""


async def event_data(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the data of each event of a stream (HTML Living Standard, section 9.2.6), without names and ids.

    What follows the last whole event is left out, as the standard has it.
    """
    rest = b""
    data: list[bytes] = []
    async for chunk in chunks:
        *lines, rest = _LINE_END.split(rest + chunk)
        for line in lines:
            field, _, value = line.partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" "))
            elif not line:
                if told := b"\n".join(data):
                    yield told
                data = []
