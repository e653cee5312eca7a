"""The client: a vendor's SDK, asked for the bytes of replies, over keval's transport."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, cast

import attrs
import httpx2

from keval.errors import ModelError, TrialError
from keval_clients.replies import (
    REQUEST,
    no_reply,
    quoted,
    read_json,
    refused,
    request_id,
    request_of,
    strictly,
    what_failed,
    write_json,
)
from keval_clients.transport import Body

_EVENTS = "text/event-stream"
_DEFAULTS: Mapping[str, Any] = {"params": {}, "max_retries": 0, "timeout": None}
"""Options as the SDK has them anyway: where they are left out, it copies them deeply."""


@attrs.frozen(eq=False)
class Client:
    """A client for one model.

    Requests and replies are written and read here: the SDK's own records of them cost more than all else of a judged
    sample, and leave out what other vendors have.

    Each agent and each judge has one of its own, though they ask the same endpoint: to share one would make the closing
    of one depend on the other.
    """

    model: str
    _sdk: Any
    _url: str
    _stream: Callable[..., Any]

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
            ModelError: the endpoint refused, failed or could not be reached.
            TrialError: kind `bad_reply`, it did not answer with a JSON object; `reply_too_large`.
        """
        return await _whole(await self._ask(path, body, headers, requested))

    async def stream(
        self,
        path: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        requested: Callable[[bytes], object],
        assemble: Callable[[AsyncGenerator[dict[str, Any], None]], Awaitable[dict[str, Any]]],
    ) -> dict[str, Any]:
        """Send a request for a reply that is streamed, and return what `assemble` makes of its events.

        An event that tells of an error is one like any other. The mark `[DONE]`, with which OpenAI's streams end, is
        left out. A stream that ends before the reply does is not noticed here: only the protocol tells that. A reply
        that is not streamed, as endpoints send that do not know how, is returned as it is.

        Raises as `post` does, and:
            ModelError: the response broke off.
        """
        response = await self._ask(path, body, headers, requested)
        headers = _body(response).headers
        if not headers.get("content-type", "").startswith(_EVENTS):
            return await _whole(response)
        try:
            async with aclosing(self._events(response)) as events:
                return _noted(await assemble(events), headers)
        except TrialError as error:
            _name_request(error, headers)
            raise
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Close every connection, once or more often."""
        await self._sdk.close()

    async def _events(self, response: httpx2.Response) -> AsyncGenerator[dict[str, Any], None]:
        try:
            async for event in self._stream(cast_to=object, response=response, client=self._sdk):
                yield _checked(event)
        except TrialError:
            raise
        except ValueError as error:
            raise no_reply(getattr(error, "doc", error)) from error
        except Exception as error:
            # The SDKs raise errors that a stream tells, each with its vendor's object.
            told = getattr(error, "body", None)
            if told is None:  # of an iterator that middleware put in the body's place
                raise _broken_off(error) from error
            yield told if isinstance(told, dict) and "error" in told else {"error": told}
            return

    async def _ask(
        self,
        path: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        requested: Callable[[bytes], object],
    ) -> httpx2.Response:
        """Send a request and return a response that is no refusal, and may still have to be read."""
        content = write_json(body)
        requested(content)
        try:
            response: httpx2.Response = await self._sdk.post(
                self._url + path,  # the SDK would take apart its base URL, and put it together, for each request
                cast_to=httpx2.Response,
                content=content,
                options={"headers": headers, **_DEFAULTS},
                stream=True,
                stream_cls=self._stream,
            )
        except TrialError:
            raise
        except Exception as error:  # the seam to the middleware
            if (answer := getattr(error, "response", None)) is not None:
                raise refused(answer.status_code, answer.headers, answer.content) from error
            # Anthropic's SDK makes an error of its own, which has the request, of any other.
            cause = getattr(error, "request", None) and error.__cause__
            if isinstance(cause, TrialError):
                raise cause from None
            failed = cause if isinstance(cause, Exception) else error
            raise ModelError(quoted(what_failed(failed)), status=502) from error
        return response


def _body(response: httpx2.Response) -> Body:
    return cast(Body, response.stream)


async def _whole(response: httpx2.Response) -> dict[str, Any]:
    """Read a reply that is not streamed."""
    body = _body(response)
    try:
        return _noted(_read(await body.read()), body.headers)
    except TrialError as error:
        _name_request(error, body.headers)
        raise
    except Exception as error:  # of an iterator that middleware put in the body's place
        raise _broken_off(error) from error


def _broken_off(error: Exception) -> ModelError:
    return ModelError(f"the model's endpoint gave no answer: the response broke off: {what_failed(error)}")


def _name_request(error: TrialError, headers: Mapping[str, str]) -> None:
    """Name the request in what is said of a reply that was begun and is wrong."""
    if error.stage == "model":
        error.args = (f"{error}{request_of(_noted({}, headers))}",)


def _noted(reply: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
    if request := request_id(headers):
        reply[REQUEST] = request
    return reply


def _read(content: bytes) -> dict[str, Any]:
    try:
        reply = read_json(content)
    except ValueError as error:
        raise no_reply(content.decode("utf-8", "replace")) from error
    if not isinstance(reply, dict):
        raise no_reply(content.decode("utf-8", "replace"))
    return reply


def _checked(event: object) -> dict[str, Any]:
    """Return an event that the SDK read, as `read_json` would have read it."""
    try:
        content = strictly(event).encode()
    except UnicodeEncodeError:  # a lone surrogate
        content = strictly(event).encode("utf-8", "replace")
        event = read_json(content)
    except (ValueError, RecursionError) as error:
        raise no_reply(event) from error
    if not isinstance(event, dict):
        raise no_reply(event)
    return event
